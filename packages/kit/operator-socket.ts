// The private way into the running management process: a Unix socket in DATA_DIR that its own
// account alone can open. One line of JSON in, one out; limited in size and time, and never a way
// for anybody who is not on this machine already.

import { closeSync, openSync, readdirSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { z } from 'zod';
import { AppError, ERROR_CODES, messageOf } from './app-error.ts';
import type { Log } from './log.ts';
import { withTimeout } from './timeout.ts';

export const OPERATOR_SOCKET = 'operator.sock';
/** Also of other management processes that share the directory. */
const OPERATOR_SOCKETS = /^operator(-\d)?\.sock$/;
const MAX_REQUEST_BYTES = 16 * 1024;
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;
const REQUEST_WITHIN_MS = 5_000;
const MAX_CONCURRENT = 8;

const answerSchema = z.union([
  z.object({ done: z.unknown() }),
  z.object({ failed: z.object({ code: z.enum(ERROR_CODES), message: z.string() }) }),
]);

/** What nobody has opened: management does not run there, or is of an older release. */
export class NobodyAnswers extends Error {}

export interface OperatorSocket {
  close(): void;
}

/**
 * Listens in that directory. `answer` gets what was asked, unchecked; what it rejects with goes to
 * whoever asked.
 */
export async function serveOperator(
  directory: string,
  answer: (request: unknown) => Promise<unknown>,
  log: Pick<Log, 'warn'>,
  name = OPERATOR_SOCKET,
): Promise<OperatorSocket> {
  rmSync(join(directory, name), { force: true });
  const server = createServer({ allowHalfOpen: true }, (socket) => void attend(socket, answer, log));
  server.maxConnections = MAX_CONCURRENT;
  await listening(server, directory, name);
  server.on('error', (error) => log.warn('operator.socket_failed', { error: messageOf(error) }));
  server.unref();
  return { close: () => void server.close() };
}

/** A path of a socket has 107 bytes at most; that of the open directory is always short. */
function shortened<T>(directory: string, name: string, use: (path: string) => T): T {
  const descriptor = openSync(directory, 'r');
  try {
    return use(`/proc/self/fd/${descriptor}/${name}`);
  } finally {
    // Binding and connecting are done when the call returns.
    closeSync(descriptor);
  }
}

async function listening(server: Server, directory: string, name: string): Promise<void> {
  const begun = new Promise((resolve, reject) => server.once('listening', resolve).once('error', reject));
  const before = process.umask(0o177);
  try {
    shortened(directory, name, (path) => server.listen(path));
  } finally {
    process.umask(before);
  }
  await begun;
}

async function attend(
  socket: Socket,
  answer: (request: unknown) => Promise<unknown>,
  log: Pick<Log, 'warn'>,
): Promise<void> {
  socket.on('error', () => undefined);
  const reply = (text: object): void => {
    socket.end(`${JSON.stringify(text)}\n`);
    // Whoever does not hang up holds one of the few places no longer.
    socket.destroySoon();
  };
  try {
    const line = await lineOf(socket, MAX_REQUEST_BYTES, REQUEST_WITHIN_MS);
    reply({ done: (await answer(parsed(line))) ?? null });
  } catch (error) {
    if (!(error instanceof AppError)) log.warn('operator.failed', { error: messageOf(error) });
    const { code, message } = error instanceof AppError ? error : { code: 'internal', message: messageOf(error) };
    reply({ failed: { code, message } });
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch {
    throw new AppError('invalid', 'The request is not a line of JSON.');
  }
}

/** The first line; rejects when it is too long, comes too late or never ends. */
async function lineOf(socket: Socket, maxBytes: number, withinMs: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const silent = (): AppError => new AppError('unavailable', `Nothing was said within ${withinMs / 1000} s.`);
  const chunks: Buffer[] = [];
  let bytes = 0;
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    chunks.push(chunk);
    if (bytes > maxBytes) reject(new AppError('invalid', `The message is longer than ${maxBytes} bytes.`));
    else if (chunk.includes(0x0a)) resolve(Buffer.concat(chunks).toString('utf8').split('\n', 1)[0] ?? '');
  });
  socket.once('end', () => reject(new AppError('unavailable', 'The other side hung up.')));
  socket.once('error', (error) => reject(new AppError('unavailable', `The other side hung up (${messageOf(error)}).`)));
  try {
    return await withTimeout(withinMs, silent, promise);
  } finally {
    socket.removeAllListeners('data').resume();
  }
}

/**
 * Asks the management process of that DATA_DIR, or one of several. Rejects with NobodyAnswers, or
 * with the AppError that it answered.
 */
export async function askOperator(directory: string, request: object, withinMs: number): Promise<unknown> {
  const socket = await connected(directory);
  try {
    const answered = lineOf(socket, MAX_ANSWER_BYTES, withinMs);
    socket.write(`${JSON.stringify(request)}\n`);
    const answer = answerSchema.parse(parsed(await answered));
    if ('done' in answer) return answer.done;
    throw new AppError(answer.failed.code, answer.failed.message);
  } finally {
    socket.destroy();
  }
}

async function connected(directory: string): Promise<Socket> {
  const others = namesIn(directory).filter((name) => OPERATOR_SOCKETS.test(name) && name !== OPERATOR_SOCKET);
  let first: unknown;
  for (const name of [OPERATOR_SOCKET, ...others.toSorted()]) {
    try {
      const socket = shortened(directory, name, (path) => connect(path));
      await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
      return socket;
    } catch (error) {
      first ??= error;
    }
  }
  throw new NobodyAnswers(messageOf(first), { cause: first });
}

/** None of a directory that is missing: connecting then tells why. */
function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
