// One session with a mail server: connect, encrypt and log in as far as the trust rule says, hand over, say goodbye.

import { once } from 'node:events';
import { connect, type LookupFunction, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { NodemailerError } from 'nodemailer';
import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import { isLoopbackHost } from '@holdfast/kit/addresses';
import { AppError } from '@holdfast/kit/app-error';
import type { Secret } from '@holdfast/kit/secret';
import { base64 } from '@holdfast/kit/text';
import { withTimeout } from '@holdfast/kit/timeout';

/** How long the server may take to say goodbye once it has the mail. */
export const GOODBYE_MS = 500;
const MAX_ANSWER_BYTES = 65_536;

export interface Limits {
  quietMs: number;
  lookup: LookupFunction | undefined;
  /** Cuts the connection at once, at whatever point; what is not on the wire yet is dropped. */
  over: AbortSignal;
}

export interface Envelope {
  from: string;
  to: string[];
}

/** A mail that the server has taken. */
export interface Handover {
  /** What it said at the end. */
  response: string;
  /** The recipients that it did not take. */
  refused: NodemailerError[];
  /** Leaves politely, soon. */
  goodbye(): Promise<void>;
}

/** Opens a session; rejects with what the system, the library or the trust rule says. */
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
    // A little more, so that a missing greeting is called that.
    socketTimeout: limits.quietMs + 100,
    socketCloseTimeout: GOODBYE_MS,
    maxResponseSize: MAX_ANSWER_BYTES,
  });
  await step(connection, (done) => connection.connect(done));
  await logIn(connection, server);

  /** Calls `given` when the mail is out; the server may be silent after that, and look at it. */
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

/** A socket of our own: it finds names as the rest of the system does, and can be cut without asking the library. */
async function dial(server: SmtpServer, { quietMs, lookup, over }: Limits): Promise<Socket> {
  over.throwIfAborted();
  const { host, port } = server;
  const socket = connect({ host, port, noDelay: true, ...(lookup === undefined ? {} : { lookup }) });
  // Each step listens for itself; what fails between them and after the last is of no interest.
  socket.on('error', () => {});
  over.addEventListener('abort', () => cut(socket));
  const late = (): Error => new AppError('unavailable', `${server.place} did not answer within ${quietMs / 1000} s`);
  await withTimeout(quietMs, late, once(socket, 'connect'));
  return socket;
}

/** A socket that is already shutting down cannot be reset: its handle would stay open for ever. */
function cut(socket: Socket): void {
  if (socket.connecting || socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}

async function logIn(connection: SMTPConnection, { login, trust, place }: SmtpServer): Promise<void> {
  if (login === undefined) return;
  if (trust === 'verified' && !connection.secure)
    throw new AppError('upstream', `${place} does not encrypt, and a password is not sent without it`);
  // What wants no login gets none; what wants one and does not offer it refuses the mail, and says so.
  if (!connection.allowsAuth) return;
  await step(connection, (done) => connection.login(login, done));
}

/** One step of the session, which ends by its callback, by an error of the connection, or by its end. */
function step<T>(
  connection: SMTPConnection,
  begin: (done: (error?: Error | null, result?: T) => void) => void,
): Promise<T | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<T | undefined>();
  // The library closes the connection before it hands on what a closing server said.
  const ended = (): unknown => setImmediate(reject, new Error('Connection closed unexpectedly'));
  connection.on('error', reject).on('end', ended);
  begin((error, result) => (error ? reject(error) : resolve(result)));
  return promise;
}

async function leave(connection: SMTPConnection, socket: Socket): Promise<void> {
  if (socket.closed) return;
  const closed = once(socket, 'close', { signal: AbortSignal.timeout(GOODBYE_MS) });
  connection.quit();
  // The server has the mail: how it says goodbye changes nothing.
  await closed.catch(() => {});
}

/**
 * The mail server that SMTP_URL names, and the rule of what may be told to it.
 * A mail server.
 */
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
