// Runs one session with a mail server: connect, encrypt and log in by the trust rule, hand over the
// mail, quit.

import { once } from 'node:events';
import { connect, type LookupFunction, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { NodemailerError } from 'nodemailer';
import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import { bareHost, isLoopbackHost } from '@holdfast/kit/addresses';
import { AppError } from '@holdfast/kit/app-error';
import type { Secret } from '@holdfast/kit/secret';
import { base64 } from '@holdfast/kit/text';
import { withTimeout } from '@holdfast/kit/timeout';

/** How long the server may take to close once it has the mail. */
export const GOODBYE_MS = 500;
const MAX_ANSWER_BYTES = 65_536;

export interface Limits {
  quietMs: number;
  lookup: LookupFunction | undefined;
  /** Closes the connection at once, at any point; unsent data is dropped. */
  over: AbortSignal;
}

export interface Envelope {
  from: string;
  to: string[];
}

/** A mail that the server accepted. */
export interface Handover {
  /** The final response of the server. */
  response: string;
  /** The recipients that it rejected. */
  refused: NodemailerError[];
  /** Quits the session, within a short time. */
  goodbye(): Promise<void>;
}

/** Opens a session; rejects with the error of the system, the library or the trust rule. */
export async function callServer(server: SmtpServer, limits: Limits) {
  const { default: Connection } = await import('nodemailer/lib/smtp-connection');
  const socket = await dial(server, limits);
  const connection = new Connection({
    connection: socket,
    host: server.host,
    port: server.port,
    secure: server.secure,
    requireTLS: server.trust === 'verified',
    opportunisticTLS: server.trust !== 'verified',
    tls: { rejectUnauthorized: server.trust === 'verified' },
    connectionTimeout: limits.quietMs,
    greetingTimeout: limits.quietMs,
    // Slightly longer, so that a missing greeting is reported as such.
    socketTimeout: limits.quietMs + 100,
    socketCloseTimeout: GOODBYE_MS,
    maxResponseSize: MAX_ANSWER_BYTES,
  });
  await step(connection, (done) => connection.connect(done));
  await logIn(connection, server);

  /** Calls `given` once the mail is sent; the server may then be silent while it checks it. */
  async function handOver(envelope: Envelope, mail: Buffer, given: () => void): Promise<Handover> {
    const source = Readable.from([mail]).once('end', () => {
      if (connection._socket) connection._socket.setTimeout(0);
      given();
    });
    const info = await step<{ response: string; rejectedErrors?: NodemailerError[] | undefined }>(connection, (done) =>
      connection.send(envelope, source, done),
    );
    const goodbye = (): Promise<void> => leave(connection, socket);
    return { response: info?.response ?? '', refused: info?.rejectedErrors ?? [], goodbye };
  }

  return { handOver };
}

/**
 * Our own socket: it resolves names like the rest of the system, and can be closed without the
 * library.
 */
async function dial(server: SmtpServer, { quietMs, lookup, over }: Limits): Promise<Socket> {
  over.throwIfAborted();
  const { host, port } = server;
  const socket = connect({ host, port, noDelay: true, ...(lookup === undefined ? {} : { lookup }) });
  // Each step has its own listener; errors between steps and after the last are ignored.
  socket.on('error', () => {});
  over.addEventListener('abort', () => cut(socket));
  const late = (): Error => new AppError('unavailable', `${server.place} did not answer within ${quietMs / 1000} s`);
  await withTimeout(quietMs, late, once(socket, 'connect'));
  return socket;
}

/** A socket that is shutting down can't be reset: its handle would stay open forever. */
function cut(socket: Socket): void {
  if (socket.connecting || socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}

async function logIn(connection: SMTPConnection, { login, trust, place }: SmtpServer): Promise<void> {
  if (login === undefined) return;
  if (trust === 'verified' && !connection.secure)
    throw new AppError('upstream', `${place} does not encrypt, and the password is not sent without encryption`);
  // A server without AUTH gets no login; if it requires one, it rejects the mail with a reason.
  if (!connection.allowsAuth) return;
  await step(connection, (done) => connection.login(login, done));
}

/**
 * One step of the session, which ends with its callback, a connection error, or the end of the
 * connection.
 */
function step<T>(
  connection: SMTPConnection,
  begin: (done: (error?: Error | null, result?: T) => void) => void,
): Promise<T | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<T | undefined>();
  // The library closes the connection before it delivers the last response of the server.
  const ended = (): unknown => setImmediate(reject, new Error('Connection closed unexpectedly'));
  connection.on('error', reject).on('end', ended);
  begin((error, result) => (error ? reject(error) : resolve(result)));
  return promise;
}

async function leave(connection: SMTPConnection, socket: Socket): Promise<void> {
  if (socket.closed) return;
  const closed = once(socket, 'close', { signal: AbortSignal.timeout(GOODBYE_MS) });
  connection.quit();
  // The server has the mail: the way it closes does not matter.
  await closed.catch(() => {});
}

/** The mail server of SMTP_URL, with the rule for sending it a password. */
export interface SmtpServer {
  host: string;
  port: number;
  /** TLS from the start. */
  secure: boolean;
  login: { user: string; pass: string } | undefined;
  /**
   * A password leaves this machine only over TLS with a verified certificate. Without a password,
   * an offered STARTTLS is used without checking the certificate: an attacker who could forge it
   * could also hide the offer.
   */
  trust: 'none' | 'opportunistic' | 'verified';
  /** `host:port`, for people. */
  place: string;
  /** Texts that would reveal the password. */
  secrets: string[];
}

/**
 * Default ports: 465 for smtps://, 587 for smtp:// with a user, else 25. Throws for an invalid URL.
 */
export function readSmtpUrl(secret: Secret): SmtpServer {
  const url = new URL(secret.reveal());
  const secure = url.protocol === 'smtps:';
  const host = bareHost(url.hostname);
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

/** The encodings in which a server may repeat the password. */
function spellings({ user, pass }: { user: string; pass: string }, inUrl: string): string[] {
  return pass === '' ? [] : [base64(`\0${user}\0${pass}`), base64(pass), inUrl, pass];
}
