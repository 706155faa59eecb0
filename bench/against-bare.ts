// What benchmarks of HTTP share: a bare node:http server that serves the same bytes, load from a
// process of its own, and one core each for servers and load where there are two.

import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { LoadOrder, LoadResult } from './load.ts';

export const BARE_PORT = 31_402;
const home = resolve(import.meta.dirname, '..');

export interface BareAnswer {
  status?: number;
  headers: Record<string, string>;
  body: string;
}

export interface BareServer {
  pid: number;
  end(): void;
}

/** Answers everything with this, on BARE_PORT. */
export async function startBare(answer: BareAnswer): Promise<BareServer> {
  const place = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  writeFileSync(join(place, 'answer.json'), JSON.stringify(answer));
  const program = `
    const { status = 200, headers, body } = JSON.parse(require('node:fs').readFileSync(${JSON.stringify(join(place, 'answer.json'))}, 'utf8'));
    require('node:http').createServer((_, response) => {
      response.statusCode = status;
      for (const name in headers) response.setHeader(name, headers[name]);
      response.end(body);
    }).listen(${BARE_PORT}, '127.0.0.1', () => process.stdout.write('listening'));`;
  const child: ChildProcess = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((listening) => child.stdout?.once('data', listening));
  return {
    pid: child.pid ?? 0,
    end() {
      child.kill('SIGKILL');
      rmSync(place, { recursive: true, force: true });
    },
  };
}

/** Runs load.ts to its end. */
export async function load(order: LoadOrder): Promise<LoadResult> {
  const [program, ...args] = [...onCore(1), process.execPath, join(home, 'bench/load.ts'), JSON.stringify(order)];
  const { stdout } = await promisify(execFile)(program ?? '', args);
  return JSON.parse(stdout) as LoadResult;
}

/** Words that put a program on one core, where there are two. */
function onCore(core: number): string[] {
  return availableParallelism() >= 2 ? ['taskset', '-c', String(core)] : [];
}

export function pin(pid: number, core: number): void {
  if (availableParallelism() >= 2) spawnSync('taskset', ['-a', '-cp', String(core), String(pid)], { stdio: 'ignore' });
}
