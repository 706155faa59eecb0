// What foreign systems say and how they fail, as short lines that people can read and that give no secret away.

import { causeOf } from './app-error.ts';
import { oneLine, shortened } from './text.ts';

const MOST_CHARACTERS = 240;
const UNTRUSTED = /CERT|SIGNATURE|UNABLE_TO_|ALTNAME|REVOKED/;
const NOT_TLS = /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)$/;
const FAILURES: Record<string, string> = {
  ECONNREFUSED: 'refused the connection',
  ENOTFOUND: 'has a host name that is not known',
  EAI_AGAIN: 'has a host name that no name server answers for now',
  ECONNRESET: 'closed the connection',
  EPIPE: 'closed the connection',
  UND_ERR_SOCKET: 'closed the connection',
  ETIMEDOUT: 'does not answer',
};

/** Foreign text as one line of at most 240 characters, with each of the secrets as `***`. */
export function foreignWords(text: string, secrets: readonly string[]): string {
  // The longer ones first: they may hold a shorter one.
  const given = secrets.filter((secret) => secret !== '').toSorted((a, b) => b.length - a.length);
  const shown = given.reduce((all, secret) => all.replaceAll(secret, '***'), text);
  return shortened(oneLine(shown), MOST_CHARACTERS);
}

/** Why a system could not be talked to: a predicate whose subject is the system (`refused the connection`). */
export function failureWords(error: unknown, secrets: readonly string[]): string {
  const cause = causeOf(error);
  if (FAILURES[cause] !== undefined) return FAILURES[cause];
  if (NOT_TLS.test(cause)) return 'does not speak TLS';
  if (/^[A-Z_]+$/.test(cause) && UNTRUSTED.test(cause)) return `shows a certificate that is not trusted (${cause})`;
  return `cannot be talked to: ${foreignWords(cause, secrets)}`;
}
