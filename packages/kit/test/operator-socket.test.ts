// The private way into the management process: who may open it, what it takes, and what it says when nobody is there.

import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { AppError } from '../app-error.ts';
import { askOperator, NobodyAnswers, OPERATOR_SOCKET, type OperatorSocket, serveOperator } from '../operator-socket.ts';

let directory: string;
let served: OperatorSocket | undefined;

beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'holdfast-operator-'))));
afterEach(() => {
  served?.close();
  served = undefined;
  rmSync(directory, { recursive: true, force: true });
});

const serve = async (answer: (request: unknown) => Promise<unknown>, at = directory): Promise<void> => {
  served = await serveOperator(at, answer, memoryLog());
};

/** What comes back on what is written by hand. */
async function replyTo(text: string): Promise<string> {
  const socket = connect(join(directory, OPERATOR_SOCKET));
  let reply = '';
  socket.on('data', (chunk: Buffer) => (reply += chunk.toString()));
  socket.end(text);
  await new Promise((ended) => socket.once('close', ended));
  return reply;
}

describe('the socket of the operator', () => {
  it('answers one line of JSON with one line, for its own account alone', async () => {
    await serve(async (request) => ({ requested: request }));
    expect(await askOperator(directory, { ask: 'health', text: 'Zürich\n' }, 5000)).toEqual({
      requested: { ask: 'health', text: 'Zürich\n' },
    });
    expect(statSync(join(directory, OPERATOR_SOCKET)).mode & 0o777).toBe(0o600);
  });

  it('hands on a refusal with its code, and of what is unexpected the message', async () => {
    await serve(async (query) => {
      if ((query as { n: number }).n === 1) throw new AppError('not_found', 'There is none.');
      throw new Error('broken');
    });
    await expect(askOperator(directory, { n: 1 }, 5000)).rejects.toMatchObject({
      code: 'not_found',
      message: 'There is none.',
    });
    await expect(askOperator(directory, { n: 2 }, 5000)).rejects.toMatchObject({ code: 'internal', message: 'broken' });
  });

  it('takes nothing that is no JSON, that is too long, or that is not ended', async () => {
    await serve(async () => 'reached');
    expect(await replyTo('hello\n')).toMatch(/"invalid".*not a line of JSON/);
    expect(await replyTo(`"${'x'.repeat(20_000)}"\n`)).toMatch(/"invalid".*longer than 16384 bytes/);
    expect(await replyTo('"half')).toMatch(/hung up/);
  });

  it('hangs up when it has answered, on who stays and on who goes on talking', { timeout: 20_000 }, async () => {
    await serve(async () => 'x'.repeat(1_000_000));
    const held = await Promise.all(
      Array.from({ length: 8 }, async (_, index) => {
        const socket = connect({ path: join(directory, OPERATOR_SOCKET), allowHalfOpen: true });
        socket.on('error', () => undefined);
        const closed = new Promise<number>((resolve) => {
          let bytes = 0;
          socket.on('data', (chunk: Buffer) => (bytes += chunk.length)).once('end', () => resolve(bytes));
        });
        socket.write(index < 4 ? '{}\n' : 'x'.repeat(20_000));
        return { socket, bytes: await closed };
      }),
    );
    for (const { bytes } of held.slice(0, 4)) expect(bytes).toBeGreaterThan(1_000_000);
    expect(await askOperator(directory, {}, 5000)).toHaveLength(1_000_000);
    for (const { socket } of held) socket.destroy();
  });

  it('takes the place of a socket that a crash left behind', async () => {
    writeFileSync(join(directory, OPERATOR_SOCKET), '');
    await serve(async () => 1);
    expect(await askOperator(directory, {}, 5000)).toBe(1);
  });

  it('is that of another process in the same directory when the first does not answer', async () => {
    const second = await serveOperator(directory, async () => 'second', memoryLog(), 'operator-2.sock');
    expect(await askOperator(directory, {}, 5000)).toBe('second');
    await serve(async () => 'first');
    expect(await askOperator(directory, {}, 5000)).toBe('first');
    second.close();
  });

  it('works in a directory whose path is longer than a socket may have', async () => {
    const deep = join(directory, 'd'.repeat(120));
    mkdirSync(deep);
    await serve(async () => 'deep', deep);
    expect(await askOperator(deep, {}, 5000)).toBe('deep');
  });

  it('says that nobody answers where no process listens', async () => {
    await expect(askOperator(directory, {}, 5000)).rejects.toBeInstanceOf(NobodyAnswers);
    await expect(askOperator(join(directory, 'none'), {}, 5000)).rejects.toBeInstanceOf(NobodyAnswers);
  });

  it('waits for an answer no longer than it was told', async () => {
    await serve(() => new Promise(() => undefined));
    await expect(askOperator(directory, {}, 50)).rejects.toThrow(/within 0.05 s/);
  });
});
