// GET /api/health, signed in, against a bare node:http server that serves the same bytes: alternating rounds, then a
// million requests and the memory after them. With two cores, servers and load have one each.

import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { LoadOrder, LoadResult } from './load.ts';
import { report, reportAim, residentMb, sampleOf, show } from './measure.ts';
import { benchStack, type BenchStack } from './stack.ts';

const ROUNDS = 7;
const SECONDS = 2;
const MILLION = 1_000_000;
const BARE_PORT = 39_402;
const home = resolve(import.meta.dirname, '..');

export async function run(): Promise<void> {
  const stack = await benchStack();
  const place = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  const bare = await startBare(stack, place);
  try {
    pin(stack.pid('management'), 0);
    pin(bare.pid ?? 0, 0);
    for (const connections of [16, 64]) await compare(stack, connections);
    await memory(stack);
  } finally {
    bare.kill('SIGKILL');
    rmSync(place, { recursive: true, force: true });
    stack.stop();
  }
}

async function compare(stack: BenchStack, connections: number): Promise<void> {
  const series = { bare: [] as LoadResult[], ours: [] as LoadResult[] };
  await load(stack.apiPort, stack, connections);
  await load(BARE_PORT, stack, connections);
  for (let round = 0; round < ROUNDS; round++) {
    series.bare.push(await load(BARE_PORT, stack, connections));
    series.ours.push(await load(stack.apiPort, stack, connections));
  }
  const per = (of: LoadResult[], figure: 'perSecond' | 'p99') => sampleOf(of.map((each) => each[figure]));
  report(`bare node:http, ${connections} connections`, show(per(series.bare, 'perSecond'), 'a second'));
  report(`/api/health signed in, ${connections} connections`, show(per(series.ours, 'perSecond'), 'a second'));
  const ratios = series.ours.map((each, round) => each.perSecond / (series.bare[round]?.perSecond ?? 0));
  report('  ratio of each round', show(sampleOf(ratios), '', 2));
  reportAim(
    '  ratio of the medians',
    per(series.ours, 'perSecond').median / per(series.bare, 'perSecond').median,
    0.85,
    '',
    { least: true },
  );
  report('  p99', `bare ${show(per(series.bare, 'p99'), 'ms', 2)}, ours ${show(per(series.ours, 'p99'), 'ms', 2)}`);
  reportAim('  ratio of the p99', per(series.ours, 'p99').median / per(series.bare, 'p99').median, 1.5, 'times');
}

async function memory(stack: BenchStack): Promise<void> {
  stack.restartManagement();
  await stack.answering();
  await new Promise((rest) => setTimeout(rest, 5000));
  const pid = stack.pid('management');
  pin(pid, 0);
  const idle = residentMb(pid);
  await load(stack.apiPort, stack, 16, { seconds: 600, requests: MILLION });
  await new Promise((rest) => setTimeout(rest, 5000));
  const after = residentMb(pid);
  report('management, resident memory idle', `${idle.toFixed(1)} MB`);
  report('  after a million requests', `${after.toFixed(1)} MB`);
  reportAim('  ratio', after / idle, 1.5, 'times');
}

async function load(
  port: number,
  stack: BenchStack,
  connections: number,
  more: Partial<LoadOrder> = {},
): Promise<LoadResult> {
  const request = `GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${stack.authorization}\r\n\r\n`;
  const order: LoadOrder = { port, request, connections, seconds: SECONDS, ...more };
  const [program, ...args] = [...onCore(1), process.execPath, join(home, 'bench/load.ts'), JSON.stringify(order)];
  const { stdout } = await promisify(execFile)(program ?? '', args);
  return JSON.parse(stdout) as LoadResult;
}

async function startBare(stack: BenchStack, place: string): Promise<ChildProcess> {
  const answer = await fetch(`${stack.api}/api/health`, { headers: { authorization: stack.authorization } });
  writeFileSync(join(place, 'body'), await answer.text());
  const program = `
    const body = require('node:fs').readFileSync(${JSON.stringify(join(place, 'body'))}, 'utf8');
    require('node:http').createServer((_, response) => {
      response.setHeader('Content-Type', 'application/json');
      response.end(body);
    }).listen(${BARE_PORT}, '127.0.0.1', () => process.stdout.write('listening'));`;
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((listening) => child.stdout.once('data', listening));
  return child;
}

/** Words that put a program on one core, where there are two. */
function onCore(core: number): string[] {
  return availableParallelism() >= 2 ? ['taskset', '-c', String(core)] : [];
}

function pin(pid: number, core: number): void {
  if (availableParallelism() >= 2) spawnSync('taskset', ['-a', '-cp', String(core), String(pid)], { stdio: 'ignore' });
}
