// A second management process over the data and the databases of a running stack, without a
// supervisor.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { type Handover, HANDOVER_VARIABLE } from '../../../shared/settings/load.ts';
import { answersPing, eventually, freeOffset, home, type TestStack } from './embedded.ts';

export interface SecondManagement {
  api: string;
  portal: string;
  /** What it wrote so far. */
  log(): string;
  kill(): Promise<void>;
}

const started: ChildProcess[] = [];
afterAll(async () => {
  for (const child of started.splice(0)) await ended(child, 'SIGKILL');
});

/** It is told what the stack's own was told, but for its number, its ports and these settings. */
export async function startSecondManagement(
  stack: TestStack,
  settings: Record<string, string> = {},
): Promise<SecondManagement> {
  const offset = await freeOffset();
  const env = environmentOf(stack.pid('management'));
  const handover = JSON.parse(env[HANDOVER_VARIABLE] ?? '') as Handover;
  const own = { MANAGEMENT_REPLICA: '2', API_PORT: String(8080 + offset), PORTAL_PORT: String(3000 + offset) };
  handover.layers.unshift({ source: 'command line', values: { ...settings, ...own } });
  const child = spawn(process.execPath, [join(home, 'dist/management.js')], {
    env: { ...env, [HANDOVER_VARIABLE]: JSON.stringify(handover) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  started.push(child);
  let log = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (log += chunk.toString()));
  const api = `http://127.0.0.1:${own.API_PORT}`;
  await eventually('the second management answers', () => answersPing(api), 60_000);
  return {
    api,
    portal: `http://127.0.0.1:${own.PORTAL_PORT}`,
    log: () => log,
    kill: () => ended(child, 'SIGKILL'),
  };
}

/** As the process was started. */
function environmentOf(pid: number): Record<string, string> {
  const entries = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').filter(Boolean);
  const pairs = entries.map((each) => [each.slice(0, each.indexOf('=')), each.slice(each.indexOf('=') + 1)] as const);
  return Object.fromEntries(pairs.filter(([name]) => !name.startsWith('NODE_CHANNEL')));
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill(signal);
  await exit;
}
