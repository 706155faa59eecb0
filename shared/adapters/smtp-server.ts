// The mail server that SMTP_URL names, and the rule of what may be told to it.

import { base64 } from '../domain/base64.ts';
import { isLoopbackHost } from '../domain/host-name.ts';
import type { Secret } from '../domain/secret.ts';

/** A mail server. */
export interface SmtpServer {
  host: string;
  port: number;
  /** TLS from the start. */
  secure: boolean;
  login: { user: string; pass: string } | undefined;
  /**
   * A password leaves this machine only over TLS with a certificate that verifies. Without one, STARTTLS is taken when
   * it is offered and its certificate is not looked at: whoever could forge it could as well hide the offer.
   */
  trust: 'none' | 'opportunistic' | 'verified';
  /** `host:port`, for people. */
  place: string;
  /** Whatever would give the password away. */
  secrets: string[];
}

/** Ports: 465 for smtps://, 587 for smtp:// with a user, else 25. Throws for what is no URL. */
export function readSmtpUrl(secret: Secret): SmtpServer {
  const url = new URL(secret.reveal());
  const secure = url.protocol === 'smtps:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const login = url.username === '' ? undefined : { user: decoded(url.username), pass: decoded(url.password) };
  const port = Number(url.port) || defaultPort(secure, login !== undefined);
  return {
    host,
    port,
    secure,
    login,
    trust: trustIn(host, secure || login !== undefined),
    place: `${url.hostname}:${port}`,
    secrets: login === undefined ? [] : spellings(login, url.password),
  };
}

const decoded = (text: string): string => decodeURIComponent(text);

function defaultPort(secure: boolean, withLogin: boolean): number {
  if (secure) return 465;
  return withLogin ? 587 : 25;
}

function trustIn(host: string, demanded: boolean): SmtpServer['trust'] {
  if (isLoopbackHost(host)) return 'none';
  return demanded ? 'verified' : 'opportunistic';
}

/** A server may repeat what it was told, in any of these. */
function spellings({ user, pass }: { user: string; pass: string }, inUrl: string): string[] {
  return pass === '' ? [] : [base64(`\0${user}\0${pass}`), base64(pass), inUrl, pass];
}
