// Enrolls at the core's port 8446: name, password and a new key become a certificate.

import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { urlsIn } from '@holdfast/kit/addresses';
import { AppError, messageOf } from '@holdfast/kit/app-error';
import { nameKey } from '@holdfast/kit/names';
import { base64, foreignWords } from '@holdfast/kit/text';
import { serialIn } from '@holdfast/pki/parts';
import type { Answer } from '../answers.ts';
import { type CoreCalls, CorePort, WITHIN_MS } from '../request.ts';
import type { CoreEnrollment, CoreTokenAnswer, CoreTokenOrder, EnrolledCertificate, EnrollmentOrder } from './port.ts';
import type { NameEntry } from './signing-rules.ts';

/** Base64 without header lines; some cores send them anyway. */
const certificate = z.string().transform((text, issues) => {
  try {
    return new X509Certificate(Buffer.from(text.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64'));
  } catch {
    issues.addIssue({ code: 'custom', message: 'cannot be read as a certificate' });
    return z.NEVER;
  }
});

const CA_MEMBER = /^ca(\d{1,3})$/;

/**
 * Checks the core's signed response against the request: the key is ours, the name is the user's,
 * the issuer is the CA that we trust. `signedCert`, `ca0`, `ca1`, ..., of which two may be the
 * same.
 */
export const signedAnswer = z.looseObject({ signedCert: certificate }).transform((read, issues) => {
  const above: X509Certificate[] = [];
  for (const [name, value] of Object.entries(read)) {
    if (!CA_MEMBER.test(name)) continue;
    const found = certificate.safeParse(value);
    if (found.success) above.push(found.data);
    else issues.addIssue({ code: 'custom', path: [name], message: 'cannot be read as a certificate' });
  }
  return { signed: read.signedCert, above };
});

export interface Expected {
  username: string;
  /** SubjectPublicKeyInfo, DER. */
  publicKey: Buffer;
  authorities: readonly X509Certificate[];
}

/** The fault of the certificate, as a predicate; undefined when there is none. */
export function faultOf(signed: X509Certificate, { username, publicKey, authorities }: Expected): string | undefined {
  if (!signed.publicKey.export({ type: 'spki', format: 'der' }).equals(publicKey)) return 'has a different key';
  const names = [signed.toLegacyObject().subject.CN].flat();
  if (names.length !== 1 || nameKey(names[0] ?? '') !== nameKey(username)) return `is not issued to ${username}`;
  if (!authorities.some((each) => isIssuedBy(signed, each))) return 'is not signed by the CA of ca.pem';
  return undefined;
}

/**
 * The issuer, its issuer and so on, as far as they are among these; each once, in whatever order
 * they came.
 */
export function chainOf(signed: X509Certificate, among: readonly X509Certificate[]): X509Certificate[] {
  const chain: X509Certificate[] = [];
  const next = (of: X509Certificate): X509Certificate | undefined =>
    among.find((each) => isIssuedBy(of, each) && !isSame(of, each) && !chain.some((other) => isSame(other, each)));
  for (let issuer = next(signed); issuer !== undefined; issuer = next(issuer)) chain.push(issuer);
  return chain;
}

const isSame = (a: X509Certificate, b: X509Certificate): boolean => a.fingerprint256 === b.fingerprint256;

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

const TLS = '/Marti/api/tls';
const CONNECTIONS = 4;
const MAX_BYTES = 256 * 1024;
const LOOPBACK = /^127\./;
/**
 * Rule `ownAddress`: 8446 locks an address after wrong passwords. A core on this machine sees local
 * people (a tunnel, a browser, a test) at 127.0.0.1; their typing mistakes must not lock us out, so
 * we use another source address.
 */
const OUR_ADDRESS = '127.0.0.2';

const REFUSED_TOKEN = JSON.stringify({
  error: 'invalid_grant',
  error_description: 'The core refused the username or the password.',
});

export interface HttpEnrollmentOptions {
  /** CORE_ENROLLMENT_URL. */
  url: string;
  /** CORE_DATA_DIR: `ca.pem` is in `certs/files`. */
  dataDir: string;
  now?: () => Date;
}

type Credentials = Omit<EnrollmentOrder, 'clientUid'>;

/**
 * The certificate of 8446 may be publicly trusted, so that devices accept it; certificates that it
 * signs must come from the CA in `ca.pem`.
 */
export class HttpEnrollment implements CoreEnrollment {
  readonly #now: NonNullable<HttpEnrollmentOptions['now']>;
  readonly #port: CorePort;

  constructor({ url, dataDir, now = () => new Date() }: HttpEnrollmentOptions) {
    this.#now = now;
    this.#port = new CorePort({
      url,
      variable: 'CORE_ENROLLMENT_URL',
      name: "The core's enrollment service",
      dataDir,
      trust: 'public',
      connections: CONNECTIONS,
      localAddress: urlsIn(url).every((each) => LOOPBACK.test(new URL(each).hostname)) ? OUR_ADDRESS : undefined,
    });
  }

  #basic({ username, password }: Credentials): Record<string, string> {
    mustFitBasic(username);
    return { authorization: `Basic ${base64(`${username}:${password}`)}` };
  }

  #secretsOf({ username, password }: Credentials): string[] {
    return [password, base64(`${username}:${password}`)];
  }

  #refusal(what: string, answer: Answer, credentials: Credentials): AppError {
    if (answer.status !== 401) return this.#port.failure(what, answer, this.#secretsOf(credentials));
    const name = foreignWords(credentials.username, []);
    return new AppError('forbidden', `The core refused the username ${name} or its password`);
  }

  async #entries(calls: CoreCalls, credentials: Credentials): Promise<NameEntry[]> {
    const what = `GET ${TLS}/config`;
    const answer = await calls.ask('GET', `${TLS}/config`, {
      headers: { ...this.#basic(credentials), accept: 'application/xml, text/xml;q=0.9, */*;q=0.5' },
      maxBytes: MAX_BYTES,
      secrets: this.#secretsOf(credentials),
    });
    if (answer.status !== 200) throw this.#refusal(what, answer, credentials);
    const { readSigningRules } = await import('./signing-rules.ts');
    const read = answer.kind === 'text' ? readSigningRules(answer.text) : undefined;
    if (read === undefined) throw this.#port.wrong(`answered ${what} without rules for signing requests`);
    return read;
  }

  /** A request that satisfies the rules. */
  async #requestFor(credentials: Credentials, wanted: readonly NameEntry[]) {
    const { signingRequest } = await import('./signing-request.ts');
    return signingRequest(credentials.username, wanted).catch((error: unknown) => {
      const words = foreignWords(messageOf(error), this.#secretsOf(credentials));
      throw this.#port.wrong(`asks for signing requests that cannot be made: ${words}`);
    });
  }

  async rules(credentials: Credentials): Promise<Record<string, string>> {
    const found = await this.#entries(this.#port.within(WITHIN_MS), credentials);
    return Object.fromEntries(found.map(({ name, value }) => [name, value]));
  }

  async enroll({ username, password, clientUid }: EnrollmentOrder): Promise<EnrolledCertificate> {
    const credentials = { username, password };
    const calls = this.#port.within(WITHIN_MS);
    const wanted = await this.#entries(calls, credentials);
    const { request, publicKey, keyPem } = await this.#requestFor(credentials, wanted);
    const what = `POST ${TLS}/signClient/v2`;
    const answer = await calls.ask('POST', `${TLS}/signClient/v2`, {
      query: { clientUid, version: '3' },
      // As the clients of this field send it; the server would parse a form before the core sees
      // it.
      headers: { ...this.#basic(credentials), 'content-type': 'text/plain;charset=UTF-8' },
      body: request,
      maxBytes: MAX_BYTES,
      secrets: this.#secretsOf(credentials),
    });
    if (answer.status !== 200) throw this.#refusal(what, answer, credentials);
    const { signed, above } = calls.read(what, answer, signedAnswer);
    const { authorities } = await this.#port.connections.current();
    const fault = faultOf(signed, { username, publicKey, authorities });
    if (fault !== undefined) throw this.#port.wrong(`signed a certificate that ${fault}`);
    return {
      hash: signed.fingerprint256,
      serial: serialIn(signed.serialNumber) ?? '',
      // It starts earlier, for devices whose clock is behind.
      issuedAt: this.#now().toISOString(),
      expiresAt: signed.validToDate.toISOString(),
      certificatePem: pemOf(signed),
      chainPem: chainOf(signed, [...authorities, ...above]).map(pemOf),
      keyPem,
    };
  }

  async token({ username, password, further }: CoreTokenOrder): Promise<CoreTokenAnswer> {
    // Re-encoded: the core and we must not read the same bytes as two different names.
    const form = new URLSearchParams([
      ['grant_type', 'password'],
      ['username', username],
      ['password', password],
      ...further,
    ]);
    const answer = await this.#port.within(WITHIN_MS).ask('POST', '/oauth/token', {
      headers: { 'content-type': 'application/x-www-form-urlencoded;charset=UTF-8' },
      body: form.toString(),
      maxBytes: MAX_BYTES,
      secrets: [password],
    });
    const { status, json, text: given, tokenCookies: cookies } = answer;
    // A lockout would hit us, not the client.
    if (status === 429 || status === 404 || status >= 500)
      throw this.#port.failure('POST /oauth/token', answer, [password]);
    if (json !== undefined) return { status, json: given, cookies };
    // A release refuses with an empty body or a page, our own core with JSON.
    if (status === 401) return { status, json: REFUSED_TOKEN, cookies: [] };
    throw this.#port.wrong('answered POST /oauth/token without JSON');
  }

  /** Closes the pooled connections. */
  close(): Promise<void> {
    return this.#port.connections.close();
  }
}

/** Read as another name, it would count as a wrong password of our address. */
function mustFitBasic(username: string): void {
  if (!/[:\p{Cc}]/u.test(username)) return;
  throw new AppError(
    'invalid',
    `The core accepts no username with a colon or a control character (${JSON.stringify(username.slice(0, 80))}), so that person cannot enroll. Rename the account at the identity provider.`,
  );
}

const pemOf = (certificate: X509Certificate): string => `${certificate.toString().trim()}\n`;
