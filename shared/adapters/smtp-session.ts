// One session with a mail server: connect, encrypt and log in as far as the trust rule says, hand over, say goodbye.

import { once } from 'node:events';
import { connect, type LookupFunction, type Socket } from 'node:net';
import type { NodemailerError } from 'nodemailer';
import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import { Readable } from 'node:stream';
import { AppError } from '../domain/app-error.ts';
import type { SmtpServer } from './smtp-server.ts';
import { withinMs } from './time-limit.ts';

/** How long the server may take to say goodbye once it has the mail. */
export const GOODBYE_MS = 500;
const MOST_BYTES_OF_AN_ANSWER = 65_536;

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
    maxResponseSize: MOST_BYTES_OF_AN_ANSWER,
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
  await withinMs(quietMs, once(socket, 'connect'), late);
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
