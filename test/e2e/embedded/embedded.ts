// Starts real embedded stacks for the tests, each in a directory and on ports of its own.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import postgres from 'postgres';
import { afterAll } from 'vitest';
import { type Outcome, type RunOptions, secretsOf, type StackFile, type TestStack } from './stack-file.ts';
import { prepareData } from './prepared-data.ts';
import { isRunning, refuseToStop, runningStack, stands } from './running-stack.ts';

export { eventually } from './eventually.ts';
export { type Outcome, type RunOptions, secretsOf, type StackFile, type TestStack };

export const home = resolve(import.meta.dirname, '../../..');
export const asRoot = process.getuid?.() === 0;

const directories: string[] = [];

/**
 * A data directory that does not exist yet, with everything below its parent removed after the
 * tests of the file.
 */
export function newDataDirectory(): string {
  const parent = mkdtempSync(join(tmpdir(), 'holdfast-test-'));
  directories.push(parent);
  return join(parent, 'data');
}

afterAll(async () => {
  await Promise.all(
    directories.splice(0).map(async (parent) => {
      // Many tests keep files of their own there and start no stack.
      if (existsSync(join(parent, 'data/run/lock'))) await stop(join(parent, 'data'));
      await rm(parent, { recursive: true, force: true });
    }),
  );
  for (const claim of claims.splice(0)) claim.close();
});

/**
 * Every base port of a stack and of what stands beside one. No two of them are a multiple of
 * SLOT_WIDTH apart.
 */
const BASE_PORTS = [1880, 3000, 3389, 4223, 5432, 8080, 8081, 8089, 8090, 8443, 8446, 9000];
const SLOT_WIDTH = 101;
const SLOTS = 188;
const claims: Server[] = [];

/**
 * An offset whose ports are free now, and that nobody else gets until the tests of this file have
 * ended: files run at the same time. The claim is a socket without a file, which ends with its
 * process at the latest.
 */
export async function freeOffset(): Promise<number> {
  for (;;) {
    const slot = Math.floor(Math.random() * SLOTS);
    const claim = await claimOf(slot);
    if (claim === undefined) continue;
    const offset = 1000 + slot * SLOT_WIDTH;
    const free = await Promise.all(BASE_PORTS.map((port) => isFree(port + offset)));
    if (free.every(Boolean)) {
      claims.push(claim);
      return offset;
    }
    claim.close();
  }
}

async function claimOf(slot: number): Promise<Server | undefined> {
  const server = createServer().unref();
  return new Promise((resolve) => {
    server.once('error', () => resolve(undefined));
    server.listen(`\0holdfast-test-slot-${slot}`, () => resolve(server));
  });
}

export async function isFree(port: number, address = '127.0.0.1'): Promise<boolean> {
  return new Promise((answer) => {
    const server = createServer();
    server.once('error', () => answer(false));
    server.listen(port, address, () => server.close(() => answer(true)));
  });
}

/** An environment without any setting of ours. The stacks of all files compile our programs once. */
export function cleanEnvironment(env: Record<string, string> = {}): Record<string, string> {
  const NODE_COMPILE_CACHE = join(home, 'node_modules/.cache/programs');
  return { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '/', NODE_COMPILE_CACHE, ...env };
}

/** Starts a script of ours; the caller waits for its end. */
export function run(script: string, args: string[], { env = {}, under = [] }: RunOptions = {}): ChildProcess {
  const [program = '', ...rest] = [...under, join(home, 'scripts', script), ...args];
  return spawn(program, rest, { env: cleanEnvironment(env), stdio: ['ignore', 'pipe', 'pipe'], detached: true });
}

/** Waits for the end of a script and collects what it said. */
export async function outcomeOf(child: ChildProcess): Promise<Outcome> {
  let output = '';
  child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output };
}

/**
 * A stack that is not started yet, and is stopped after the tests of the file at the latest; or the
 * one that stands. Without `data` its database cluster is there already. Nothing of a person's own
 * .env is read.
 */
export async function newStack(data?: string): Promise<TestStack> {
  if (data !== undefined) return ownStack(data);
  if (stands) return runningStack();
  const prepared = newDataDirectory();
  await prepareData(prepared);
  return ownStack(prepared);
}

async function ownStack(data: string): Promise<TestStack> {
  const offset = await freeOffset();
  const file = (): StackFile => JSON.parse(readFileSync(join(data, 'stack.json'), 'utf8')) as StackFile;
  return {
    data,
    offset,
    start: (args = [], options = {}) =>
      outcomeOf(run('start.sh', startArguments(data, offset, ['--detach', ...args]), options)),
    file,
    pid: (role) => file().pids.find((each) => each.role === role)?.pid ?? 0,
  };
}

export function startArguments(data: string, offset: number, args: string[]): string[] {
  return [
    '--embedded',
    '--data',
    data,
    '--offset',
    String(offset),
    ...(args.includes('--env') ? [] : ['--env', '/dev/null']),
    ...args,
  ];
}

export async function stop(data: string, options: RunOptions = {}): Promise<Outcome> {
  if (isRunning(data)) return refuseToStop();
  if (!existsSync(data)) return { code: 0, output: '' };
  return outcomeOf(run('stop.sh', ['--data', data], options));
}

/** One query on a connection of its own. */
export async function query<T extends object>(url: string, text: string): Promise<T[]> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    return (await sql.unsafe(text)) as unknown as T[];
  } finally {
    await sql.end({ timeout: 2 });
  }
}

/** The three tuning settings as the server has them in force. */
export async function tuningOf(url: string): Promise<string[]> {
  const names = ['autovacuum_vacuum_scale_factor', 'autovacuum_vacuum_cost_limit', 'maintenance_work_mem'];
  const rows = await query<{ value: string }>(
    url,
    `SELECT current_setting(name) AS value FROM unnest('{${names.join()}}'::text[]) WITH ORDINALITY AS n(name, place) ORDER BY place`,
  );
  return rows.map(({ value }) => value);
}

/** The core's database as the reader that health uses. */
export function readerUrl(stack: Pick<TestStack, 'data' | 'file'>): string {
  const url = new URL(stack.file().database);
  url.username = 'holdfast_ro';
  url.password = secretsOf(stack)['CORE_READER_PASSWORD'] ?? '';
  return url.href;
}

/** True while a process of that number lives (zombies do not). */
export function lives(pid: number): boolean {
  if (!existsSync(`/proc/${pid}/stat`)) return false;
  return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
}

export async function answersPing(api: string): Promise<boolean> {
  return fetch(`${api}/api/ping`, { signal: AbortSignal.timeout(10_000) }).then(
    (response) => response.ok,
    () => false,
  );
}
