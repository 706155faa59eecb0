// The program of simulate.sh: simulated clients in a channel of their own, a report, and removal of
// everything at the end.

import { formatBytes } from '@holdfast/kit/format';
import { argumentsOrUsage, type Invocation, parseCommandLine, say, UsageError } from '@holdfast/kit/command';
import { SECOND_MS } from '@holdfast/kit/time';
import { isComplete, missingOf, type SimulationReport } from '../../../shared/simulation/port.ts';
import { reportOf, simulateForManagement, WORKER_ARGUMENT } from './worker.ts';
import { Crowd } from './crowd.ts';
import { ExerciseManagement, listOf, type Removal } from './management.ts';
import { cpuSeconds, type ExercisePlace, exercisePlace } from './place.ts';

interface SimulateArguments {
  place: ExercisePlace;
  /** Only removes what an earlier exercise has left behind. */
  clean: boolean;
  clients: number;
  seconds: number;
  ramp: number;
  every: number;
  center: { lat: number; lon: number };
}

const USAGE = `Usage: ./scripts/simulate.sh [--clients N] [--seconds S] [--data DIR | --url URL]
       ./scripts/simulate.sh --clean [--data DIR | --url URL]

Connects simulated clients that move, chat and set marks in a channel of their own, EXERCISE. Prints a report, then
removes the channel, the account svc_exercise and its certificate. Exit codes: 0 nothing was lost, 1 something was lost
or failed, 2 wrong arguments.

  --clients N           clients, 2 to 10000 (default 50)
  --seconds S           how long they send once all are connected (default 60)
  --ramp S              time over which they connect (default 10)
  --every S             time between two positions of a client (default 5)
  --center LAT,LON      where they move (default 46.8,8.2)
  --data DIR            data directory of a running embedded stack
  --url URL             API of any stack; HOLDFAST_TOKEN has an API token of an administrator
  --stream HOST:PORT    the stream, if not that of the stack, or port 8089 of the URL's host
  --clean               only remove what an interrupted exercise has left behind
  --help                show this help
`;
const MAX_CLIENTS = 10_000;
const MAX_SECONDS = 86_400;

/** Resolves with the exit code. */
export async function simulate(call: Invocation): Promise<number> {
  if (call.argv[0] === WORKER_ARGUMENT) return simulateForManagement();
  const args = argumentsOrUsage(() => readArguments(call), USAGE);
  if (typeof args === 'number') return args;
  const management = new ExerciseManagement(args.place.management);
  if (args.clean) {
    const removal = await management.clean();
    say(removalText(removal) || 'Nothing is left of an exercise.\n');
    return removal.members.length === 0 ? 0 : 1;
  }
  await management.clear();
  const stop = new AbortController();
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const interrupt = (): void => {
    say('Stopping; removing the exercise ...\n');
    stop.abort();
  };
  for (const signal of signals) process.on(signal, interrupt);
  // A closed terminal or pipe takes no text; the removal must go on.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined);
  try {
    return await exercise(args, management, stop.signal);
  } finally {
    say(removalText(await management.remove()));
    for (const signal of signals) process.off(signal, interrupt);
  }
}

/** Empty when there was nothing. */
export function removalText({ account, channel, members }: Removal): string {
  const parts = account ? ['The account svc_exercise and its certificate are removed.'] : [];
  if (channel) parts.push('The channel EXERCISE is removed.');
  if (members.length > 0)
    parts.push(`The channel EXERCISE stays: its members are ${listOf(members)}. Remove them, then use --clean.`);
  return parts.map((part) => `${part}\n`).join('');
}

async function exercise(args: SimulateArguments, management: ExerciseManagement, stop: AbortSignal): Promise<number> {
  const { place, clients, seconds, ramp, every, center } = args;
  say('Setting up the channel EXERCISE and the account svc_exercise ...\n');
  const { pem } = await management.prepare();
  const { host, port, pids } = place;
  const crowd = new Crowd({
    places: [{ host, port }],
    pem,
    clients,
    center,
    rampMs: ramp * SECOND_MS,
    everyMs: every * SECOND_MS,
  });
  try {
    say(`Connecting ${clients} clients to ${host}:${port} over ${ramp} s ...\n`);
    await crowd.arrive(stop);
    say(`${crowd.connected} clients are connected. They send for ${seconds} s ...\n`);
    const [cpu, begun] = [cpuSeconds(pids), performance.now()];
    await crowd.work(seconds * SECOND_MS, stop);
    await crowd.settle();
    const elapsed = (performance.now() - begun) / SECOND_MS;
    const used = pids.length === 0 ? undefined : (cpuSeconds(pids) - cpu) / elapsed;
    const { memoryBytes, thinningSeconds } = await management.core();
    const report = reportOf(crowd, 'done', null);
    process.stdout.write(textOf(report, { used, memoryBytes, thinningSeconds }));
    const isWhole = isComplete({ ...report, ...missingOf(report), thinning_seconds: thinningSeconds });
    return !stop.aborted && isWhole ? 0 : 1;
  } finally {
    await crowd.leave();
  }
}

interface Load {
  /** CPU-seconds a second of the core; undefined: not on this machine. */
  used: number | undefined;
  memoryBytes: number | undefined;
  thinningSeconds: number;
}

function textOf(report: SimulationReport, { used, memoryBytes, thinningSeconds }: Load): string {
  const { connected, sent, expected, delivered, ended, p50_ms: p50, p99_ms: p99 } = report;
  const { lost, lost_urgent: urgent } = missingOf(report);
  const ms = (value: number | null): string => (value === null ? 'none' : `${value} ms`);
  const thinned = `${lost} positions left out (thinning: ${thinningSeconds} s), ${urgent} of chat and marks`;
  const lines: [string, string][] = [
    ['Clients', `${connected} connected at the end, ${ended} disconnected`],
    ['Events sent', String(sent)],
    ['Delivered', `${delivered} of ${expected}`],
    ['Lost', thinningSeconds > 0 ? thinned : String(lost)],
    ['Latency', `p50 ${ms(p50)}, p99 ${ms(p99)}`],
    ['CPU of the core', used === undefined ? 'not on this machine' : `${(used * 100).toFixed(1)} % of a core`],
    ['Memory of the core', memoryBytes === undefined ? 'not reported' : formatBytes(memoryBytes)],
  ];
  return lines.map(([name, value]) => `${name.padEnd(20)}${value}\n`).join('');
}

function readArguments(call: Invocation): SimulateArguments | 'help' {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const { values } = parseCommandLine({
    args: call.argv,
    options: {
      clients: text,
      seconds: text,
      ramp: text,
      every: text,
      center: text,
      data: text,
      url: text,
      stream: text,
      clean: flag,
      help: flag,
    },
  });
  if (values.help === true) return 'help';
  return {
    clean: values.clean === true,
    clients: numberOf('--clients', values.clients ?? '50', 2, MAX_CLIENTS),
    seconds: numberOf('--seconds', values.seconds ?? '60', 1, MAX_SECONDS),
    ramp: numberOf('--ramp', values.ramp ?? '10', 0, MAX_SECONDS),
    every: numberOf('--every', values.every ?? '5', 1, MAX_SECONDS),
    center: centerOf(values.center ?? '46.8,8.2'),
    place: exercisePlace({ data: values.data, url: values.url, stream: values.stream }, call),
  };
}

function numberOf(option: string, text: string, least: number, most: number): number {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : NaN;
  if (value >= least && value <= most) return value;
  throw new UsageError(`${option} ${text} is not a whole number from ${least} to ${most}`);
}

function centerOf(text: string): { lat: number; lon: number } {
  const [, lat, lon] = /^(-?\d{1,2}(?:\.\d+)?),(-?\d{1,3}(?:\.\d+)?)$/.exec(text) ?? [];
  if (lat === undefined || lon === undefined || Math.abs(Number(lat)) > 85 || Math.abs(Number(lon)) > 180)
    throw new UsageError(`--center ${text} is not LAT,LON with at most 85 and 180 degrees`);
  return { lat: Number(lat), lon: Number(lon) };
}
