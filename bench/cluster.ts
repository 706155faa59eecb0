// Several core nodes over NATS, without a database: latency from node to node, what a node pays for
// groups that have no member on it, and deliveries for each CPU-second of three nodes. Then how
// soon a revoked device is off every node of a real stack. The reference is one node in the same run.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { natsProgram } from '../packages/stack/cluster.ts';
import type { CotOrder, CotResult, CotShape } from './cot-order.ts';
import { type BothFiles, freePort, load, madeFiles, startStream, type StreamServer } from './cot-servers.ts';
import { cpuSecondsOf, report, reportAim, sampleOf, show } from './measure.ts';
import { revocation } from './cluster-revocation.ts';

const PARTS = ['latency', 'idle', 'positions', 'flood', 'revocation'];
const wanted = (process.env['HOLDFAST_BENCH_CLUSTER'] ?? PARTS.join(',')).split(',');
const rounds = Number(process.env['HOLDFAST_BENCH_CLUSTER_ROUNDS'] ?? 5);
const STEADY_MS = 8_000;
const FLOOD_MS = 4_000;
const WINDOW = 1_000;
const JOINED_MS = 3_000;

type Nats = { url: string; username: string; password: string };

export async function run(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-bench-cluster-'));
  try {
    if (wanted.some((part) => part !== 'revocation')) await withoutDatabase(directory);
    if (wanted.includes('revocation')) await revocation(rounds);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function withoutDatabase(directory: string): Promise<void> {
  const files = await madeFiles(join(directory, 'files'));
  const { nats, child } = await startNats(directory, files);
  const one = await startStream(files);
  const apart = [one, await startStream(files), await startStream(files)];
  const nodes: StreamServer[] = [];
  try {
    for (const index of [0, 1, 2]) nodes.push(await startNode(files, nats, index, 0));
    const stranger = await startNode(files, nats, 3, 1);
    nodes.push(stranger);
    await pause(JOINED_MS);
    const three = nodes.slice(0, 3) as Nodes;
    if (wanted.includes('latency')) await latency(one, three);
    if (wanted.includes('idle')) await withoutMembers(one, three, stranger);
    const spread = { apart, three, nats: child };
    if (wanted.includes('positions')) await fanOut(spread, POSITIONS);
    if (wanted.includes('flood')) for (const publishing of [1, 10]) await fanOut(spread, floodOf(publishing));
  } finally {
    for (const node of [...nodes, ...apart]) await node.end();
    child.kill('SIGTERM');
  }
}

type Nodes = [StreamServer, StreamServer, StreamServer];

function startNode(files: BothFiles, nats: Nats, index: number, place: number): Promise<StreamServer> {
  return startStream(files, { cluster: { node: `core-${index + 1}`, index, place, nats } });
}

/** One publishes at 50 events a second; the 100 readers are on the same node, or all on another. */
async function latency(one: StreamServer, [first, second]: Nodes): Promise<void> {
  const figures = { oneP50: [], oneP99: [], twoP50: [], twoP99: [] } as Record<string, number[]>;
  const order = { connections: 101, publishing: 1, work: { kind: 'steady', perSecond: 50, forMs: STEADY_MS } } as const;
  let missing = 0;
  for (let round = 0; round < rounds; round++) {
    const alone = await load(one, order);
    const across = await load(first, { ...order, others: [second], isApart: true });
    missing += across.expected - across.delivered;
    figures['oneP50']?.push(alone.latency?.p50 ?? Number.NaN);
    figures['oneP99']?.push(alone.latency?.p99 ?? Number.NaN);
    figures['twoP50']?.push(across.latency?.p50 ?? Number.NaN);
    figures['twoP99']?.push(across.latency?.p99 ?? Number.NaN);
  }
  const median = (name: string): number => sampleOf(figures[name] ?? []).median;
  const what = 'cluster: 1 x 100, 50 events a second';
  for (const [name, label] of [
    ['oneP50', 'one node, p50'],
    ['twoP50', 'from node to node, p50'],
    ['oneP99', 'one node, p99'],
    ['twoP99', 'from node to node, p99'],
  ] as const)
    report(`${what}, ${label}`, show(sampleOf(figures[name] ?? []), 'ms', 2));
  report(`${what}: missing`, String(missing));
  report(`${what}: p50, ratio to one node`, (median('twoP50') / median('oneP50')).toFixed(2));
  reportAim(`${what}: p99, ratio to one node`, median('twoP99') / median('oneP99'), 2, '');
}

/**
 * CPU time of a node with clients of another group, while 30 clients on the three others exchange
 * 1,000 events a second, or 30 clients of a node outside of the cluster do. Both share the machine
 * with it alike.
 */
async function withoutMembers(one: StreamServer, [first, second, third]: Nodes, stranger: StreamServer): Promise<void> {
  const figures = { outside: [] as number[], inside: [] as number[] };
  const own = { connections: 10, publishing: 10, work: { kind: 'steady', perSecond: 400, forMs: STEADY_MS } } as const;
  const traffic = {
    connections: 30,
    publishing: 30,
    work: { kind: 'steady', perSecond: 1_000, forMs: STEADY_MS + 2_000 },
  } as const;
  for (let round = 0; round < rounds; round++)
    for (const where of ['outside', 'inside'] as const) {
      const busy = where === 'outside' ? load(one, traffic) : load(first, { ...traffic, others: [second, third] });
      const { cpuSeconds, seconds } = await load(stranger, own);
      await busy;
      figures[where].push((cpuSeconds / seconds) * 1000);
    }
  const what = 'cluster: CPU of a node without a member';
  report(`${what}, traffic outside of the cluster`, show(sampleOf(figures.outside), 'ms/s', 1));
  report(`${what}, traffic on the other nodes`, show(sampleOf(figures.inside), 'ms/s', 1));
  reportAim(`${what}: ratio`, sampleOf(figures.inside).median / sampleOf(figures.outside).median, 1.05, '');
}

interface FanOut extends CotShape {
  called: string;
  /** On the three nodes together. */
  spread: number;
  work: CotOrder['work'];
}

/** Each client sends its position every 15 s: events seldom meet in one write, on a busy machine too. */
const POSITIONS: FanOut = {
  called: '300 clients, positions every 15 s',
  connections: 300,
  spread: 300,
  publishing: 300,
  work: { kind: 'steady', perSecond: 20, forMs: 2 * STEADY_MS, isWarm: true },
};

/** As many readers on each node, and as many events on their way to each of them. */
const floodOf = (publishing: number): FanOut => ({
  called: `flood, ${publishing} x 100 on each node`,
  connections: 100,
  spread: 300,
  publishing,
  work: { kind: 'flood', window: WINDOW, forMs: FLOOD_MS },
});

interface Spread {
  /** Three without NATS, of which the first is the reference. */
  apart: readonly StreamServer[];
  three: Nodes;
  nats: ChildProcess;
}

/**
 * Deliveries for each CPU-second of the core: of one node, of three in a cluster, and of three that
 * know nothing of each other. The last ones show what three processes cost on this machine.
 */
async function fanOut(
  { apart, three: [first, ...others], nats }: Spread,
  { called, connections, spread, publishing, work }: FanOut,
): Promise<void> {
  const figures = { one: [] as number[], apart: [] as number[], three: [] as number[], nats: [] as number[] };
  const [one] = apart;
  if (one === undefined) throw new Error('there is no reference');
  let missing = 0;
  // The first round is not counted: three nodes have more code to compile than one.
  for (let round = -1; round < rounds; round++) {
    const alone = await load(one, { connections, publishing, work });
    const separate = { connections: spread / 3, publishing: Math.ceil(publishing / 3), work };
    const each = await Promise.all(apart.map((server) => load(server, separate)));
    const before = cpuSecondsOf(nats.pid ?? 0);
    const shared = await load(first, { connections: spread, publishing, work, others });
    if (round < 0) continue;
    figures.one.push(rateOf([alone]));
    figures.apart.push(rateOf(each));
    figures.three.push(rateOf([shared]));
    figures.nats.push(((cpuSecondsOf(nats.pid ?? 0) - before) / shared.cpuSeconds) * 100);
    missing += shared.expected - shared.delivered;
  }
  const what = `cluster: ${called}`;
  report(`${what}, one node`, show(sampleOf(figures.one), 'k/CPU-s'));
  report(`${what}, three nodes without NATS, summed`, show(sampleOf(figures.apart), 'k/CPU-s'));
  report(`${what}, three nodes, summed`, show(sampleOf(figures.three), 'k/CPU-s'));
  report(`${what}, CPU of NATS in percent of theirs`, show(sampleOf(figures.nats), '%', 1));
  report(`${what}: missing`, String(missing));
  const [alone, lone, three] = [figures.one, figures.apart, figures.three].map((each) => sampleOf(each).median);
  const ratio = (to = Number.NaN): number => (three ?? Number.NaN) / to;
  reportAim(`${what}: ratio to three without NATS`, ratio(lone), 0.8, '', { least: true });
  reportAim(`${what}: ratio to one node`, ratio(alone), 0.8, '', { least: true });
}

/** Thousands of deliveries for each CPU-second. */
function rateOf(results: readonly CotResult[]): number {
  const sum = (of: 'delivered' | 'cpuSeconds'): number => results.reduce((all, result) => all + result[of], 0);
  return sum('delivered') / sum('cpuSeconds') / 1000;
}

async function startNats(directory: string, { server }: BothFiles): Promise<{ nats: Nats; child: ChildProcess }> {
  const port = await freePort();
  const file = join(directory, 'nats.conf');
  const lines = [
    `host: "127.0.0.1"`,
    `port: ${port}`,
    `tls { cert_file: ${JSON.stringify(server.certificate)}, key_file: ${JSON.stringify(server.key)} }`,
    'authorization { user: core, password: bench }',
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  const child = spawn(natsProgram(), ['-c', file], { stdio: 'ignore' });
  for (let tries = 0; tries < 50; tries++) {
    const socket = connectSocket({ host: '127.0.0.1', port }).on('error', () => undefined);
    const isUp = await Promise.race([
      once(socket, 'data').then(
        () => true,
        () => false,
      ),
      pause(200).then(() => false),
    ]);
    socket.destroy();
    if (isUp) break;
  }
  return { nats: { url: `tls://127.0.0.1:${port}`, username: 'core', password: 'bench' }, child };
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
