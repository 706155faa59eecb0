// GET /api/health, signed in, against a bare node:http server that serves the same bytes:
// alternating rounds, then a million requests and the memory after them. With two cores, servers
// and load have one each.

import { BARE_PORT, load as loadWith, pin, startBare } from './against-bare.ts';
import type { LoadOrder, LoadResult } from './load.ts';
import { report, reportAim, residentMb, sampleOf, show } from './measure.ts';
import { benchStack, type BenchStack } from './stack.ts';

const ROUNDS = 7;
const SECONDS = 2;
const MILLION = 1_000_000;

export async function run(): Promise<void> {
  const stack = await benchStack();
  const answer = await fetch(`${stack.api}/api/health`, { headers: { authorization: stack.authorization } });
  const bare = await startBare({ headers: { 'Content-Type': 'application/json' }, body: await answer.text() });
  try {
    pin(stack.pid('management'), 0);
    pin(bare.pid, 0);
    for (const connections of [16, 64]) await compare(stack, connections);
    await memory(stack);
  } finally {
    bare.end();
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
  return loadWith({ port, request, connections, seconds: SECONDS, ...more });
}
