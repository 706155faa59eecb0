// How long until Holdfast answers, and what it takes in memory: the management process against a
// bare node:http server in alternating rounds, then the whole embedded stack, first and second
// start.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { report, reportAim, residentMb, sampleOf, show } from './measure.ts';
import { script } from './stack.ts';

const home = resolve(import.meta.dirname, '..');
const ROUNDS = 11;
const STACK_ROUNDS = 5;
const OFFSET = 22_800;
const PORT = 31_301;
const BARE = `require('node:http').createServer((_, response) => response.end('ok')).listen(${PORT}, '127.0.0.1')`;

export async function run(): Promise<void> {
  const parent = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  try {
    const starts = wholeStack(parent);
    await management(parent);
    reportAim('whole stack, first start (median)', sampleOf(starts.first).median / 1000, 15, 's');
    report('  range', show(sampleOf(starts.first), 'ms'));
    reportAim('whole stack, second start (median)', sampleOf(starts.second).median / 1000, 4, 's');
    report('  range', show(sampleOf(starts.second), 'ms'));
  } finally {
    rmSync(parent, { recursive: true, force: true });
  }
}

/** Milliseconds of start.sh --detach on fresh directories, and on the same ones again. */
function wholeStack(parent: string): { first: number[]; second: number[] } {
  const starts = { first: [] as number[], second: [] as number[] };
  script('start.sh', ['--help']);
  for (let round = 0; round < STACK_ROUNDS; round++) {
    const data = join(parent, `stack-${round}`);
    for (const series of [starts.first, starts.second]) {
      const begun = performance.now();
      script('start.sh', ['--embedded', '--detach', '--data', data, '--offset', String(OFFSET), '--env', '/dev/null']);
      series.push(performance.now() - begun);
      script('stop.sh', ['--data', data]);
    }
  }
  return starts;
}

async function management(parent: string): Promise<void> {
  const data = join(parent, 'stack-0');
  script('start.sh', ['--embedded', '--detach', '--data', data, '--offset', String(OFFSET), '--env', '/dev/null']);
  const { state_database: database } = JSON.parse(readFileSync(join(data, 'stack.json'), 'utf8')) as {
    state_database: string;
  };
  const environment = {
    PATH: process.env['PATH'] ?? '',
    NODE_COMPILE_CACHE: join(data, 'run/cache'),
    SERVER_ADDRESS: '127.0.0.1',
    DEPLOY_MODE: 'direct',
    DATABASE_URL: database,
    AUDIT_KEY: randomBytes(32).toString('hex'),
    SESSION_KEY: randomBytes(32).toString('hex'),
    API_PORT: String(PORT),
    PORTAL_PORT: String(PORT + 1),
  };
  const startManagement = (): ChildProcess =>
    spawn(process.execPath, [join(home, 'dist/management.js')], { env: environment, stdio: 'ignore' });
  const startBare = (): ChildProcess => spawn(process.execPath, ['-e', BARE], { stdio: 'ignore' });
  const bare: number[] = [];
  const ours: number[] = [];
  await untilAnswers(startManagement, '/api/ping');
  for (let round = 0; round < ROUNDS; round++) {
    bare.push((await untilAnswers(startBare, '/')).ms);
    ours.push((await untilAnswers(startManagement, '/api/ping')).ms);
  }
  report('bare node:http, start to first answer', show(sampleOf(bare), 'ms'));
  report('management, start to first answer', show(sampleOf(ours), 'ms'));
  reportAim('  ratio of the medians', sampleOf(ours).median / sampleOf(bare).median, 3, 'times');
  const idle = {
    bare: (await untilAnswers(startBare, '/', 5000)).residentMb,
    ours: (await untilAnswers(startManagement, '/api/ping', 5000)).residentMb,
  };
  report('bare node:http, resident memory after 5 s idle', `${idle.bare.toFixed(1)} MB`);
  reportAim('management, resident memory after 5 s idle', idle.ours, 84, 'MB', { digits: 1 });
  script('stop.sh', ['--data', data]);
}

/**
 * Milliseconds from the start of a process to its first answer; its memory after `restMs`; then it
 * is ended.
 */
async function untilAnswers(
  start: () => ChildProcess,
  path: string,
  restMs = 0,
): Promise<{ ms: number; residentMb: number }> {
  const begun = performance.now();
  const child = start();
  while (!(await answers(path))) await new Promise((tick) => setTimeout(tick, 1));
  const ms = performance.now() - begun;
  if (restMs > 0) await new Promise((tick) => setTimeout(tick, restMs));
  const resident = residentMb(child.pid ?? 0);
  child.kill('SIGKILL');
  await once(child, 'exit');
  return { ms, residentMb: resident };
}

async function answers(path: string): Promise<boolean> {
  return new Promise((answer) => {
    get({ host: '127.0.0.1', port: PORT, path, agent: false }, (response) => {
      response.resume();
      answer(response.statusCode === 200);
    }).once('error', () => answer(false));
  });
}
