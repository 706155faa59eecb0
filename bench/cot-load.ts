// The load of the CoT benchmark, in a process of its own so that the server's CPU time stands
// apart: node bench/cot-load.ts JSON, where the JSON is a CotOrder; prints a CotResult as JSON.
// Publishers and readers share the process, so that no more is sent than the readers take.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createSecureContext, type TLSSocket } from 'node:tls';
import {
  type CotOrder,
  type CotResult,
  type Flood,
  type Latency,
  preparedEvent,
  type Steady,
  writeNumber,
} from './cot-order.ts';
import { countingReceiver, numberReceiver, type Receiver } from './cot-receiver.ts';
import { cpuSecondsOf, residentMb } from './measure.ts';

/**
 * Events in one write of a publisher: they fit into one record of TLS. Single ones are joined by
 * the socket just as well.
 */
const BATCH = 32;
/** After the last event, those on their way come at the latest so long one after the other. */
const SETTLED_WITHIN_MS = 10_000;
const WATCH_EVERY_MS = 200;
const SEND_EVERY_MS = 5;
/** For what the server sends by itself after connect. */
const CALM_MS = 500;
const WARM_MS = 2_000;

const order = JSON.parse(process.argv[2] ?? '{}') as CotOrder;
const pids = [order.pid, ...(order.others ?? []).map(({ pid }) => pid)];
const fanOut = order.connections - 1;
const sockets = await connected();
let ended = 0;
for (const socket of sockets) socket.once('close', () => ended++);
await pause(CALM_MS);
const result = order.work.kind === 'flood' ? await flood(order.work) : await steady(order.work);
process.stdout.write(JSON.stringify(result), () => process.exit(0));

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}

/** A few handshakes at a time; every one is through. */
async function connected(): Promise<TLSSocket[]> {
  const { ca, certificate, key } = order;
  const secureContext = createSecureContext({
    ca: readFileSync(ca),
    cert: readFileSync(certificate),
    key: readFileSync(key),
    minVersion: 'TLSv1.3',
    ecdhCurve: 'X25519',
  });
  const open: TLSSocket[] = [];
  for (let n = 0; n < order.connections; n++) {
    const socket = connect({ host: '127.0.0.1', port: portOf(n), secureContext });
    socket.setNoDelay(true);
    await once(socket, 'secureConnect');
    // One that was refused is told only now; whoever ends during the work is counted.
    socket.on('error', () => socket.destroy());
    open.push(socket);
  }
  return open;
}

type Watched = Pick<CotResult, 'cpuSeconds' | 'cpuAtEnd' | 'begunAtMs' | 'seconds' | 'idleMb' | 'quietMb' | 'maxMb'>;

function portOf(connection: number): number {
  const { port, others = [], isApart = false, publishing } = order;
  const ports = [port, ...others.map((each) => each.port)];
  if (!isApart) return ports[connection % ports.length] ?? port;
  return connection < publishing ? port : (ports[1 + ((connection - publishing) % others.length)] ?? port);
}

function cpuSeconds(): number {
  return pids.reduce((sum, pid) => sum + cpuSecondsOf(pid), 0);
}

function resident(): number {
  return pids.reduce((sum, pid) => sum + residentMb(pid), 0);
}

/** What the server does from now on. */
function watched(): { stalls: () => void; end: () => Watched } {
  const idleMb = resident();
  let maxMb = idleMb;
  const watch = setInterval(() => (maxMb = Math.max(maxMb, resident())), WATCH_EVERY_MS);
  const cpu = cpuSeconds();
  const begunAtMs = Date.now();
  const begun = performance.now();
  let quietMb = Number.NaN;
  return {
    stalls: () => void (quietMb = maxMb),
    end() {
      clearInterval(watch);
      const cpuAtEnd = cpuSeconds();
      const seconds = (performance.now() - begun) / 1000;
      maxMb = Math.max(maxMb, resident());
      return { cpuSeconds: cpuAtEnd - cpu, cpuAtEnd, begunAtMs, seconds, idleMb, quietMb, maxMb };
    },
  };
}

async function flood({ window, forMs = Infinity, events = Infinity }: Flood): Promise<CotResult> {
  let delivered = 0;
  let sent = 0;
  let turn = false;
  let over = false;
  const finished = Promise.withResolvers<void>();
  const publishers = sockets.slice(0, order.publishing).map((socket, n) => publisherOf(socket, n));
  for (const socket of sockets) {
    const { take } = countingReceiver((found) => {
      delivered += found;
      if (!turn) setImmediate(goOn);
      turn = true;
    });
    socket.on('data', take);
  }

  /** Each publisher in its turn, as long as the window lets them and their sockets take it. */
  function goOn(): void {
    turn = false;
    if (over) return;
    for (let idle = 0, n = 0; idle < publishers.length; n++) {
      const room = Math.min(window - sent + Math.floor(delivered / fanOut), events - sent, BATCH);
      if (room < 1) break;
      const wrote = publishers[n % publishers.length]?.(room, sent) ?? 0;
      sent += wrote;
      idle = wrote === 0 ? idle + 1 : 0;
    }
    if (sent >= events && delivered >= sent * fanOut) finished.resolve();
  }

  for (const socket of sockets.slice(0, order.publishing)) socket.on('drain', goOn);
  const watch = watched();
  goOn();
  await (forMs === Infinity ? Promise.race([finished.promise, stuck(() => delivered)]) : pause(forMs));
  over = true;
  // With what was on its way: the server has spent CPU time on it already.
  await settled(() => delivered, sent * fanOut);
  return { sent, delivered, expected: sent * fanOut, ...watch.end(), ended };
}

/**
 * Batches of one publisher; answers how many events it has written, none while its socket is full.
 */
function publisherOf(socket: TLSSocket, n: number): (room: number, first: number) => number {
  const { event, numberAt } = preparedEvent(n);
  const batch = Buffer.concat(Array.from({ length: BATCH }, () => event));
  return (room, first) => {
    if (socket.writableNeedDrain || socket.destroyed) return 0;
    const bytes = Buffer.from(batch.subarray(0, room * event.length));
    for (let k = 0; k < room; k++) writeNumber(bytes, k * event.length + numberAt, first + k);
    socket.write(bytes);
    return room;
  };
}

async function settled(heard: () => number, expected: number): Promise<void> {
  let [last, atMs] = [-1, 0];
  for (let now = heard(); now < expected; now = heard()) {
    if (now !== last) [last, atMs] = [now, performance.now()];
    if (performance.now() - atMs >= SETTLED_WITHIN_MS) return;
    await pause(20);
  }
}

/** Resolves when nothing has come for a while. */
async function stuck(value: () => number): Promise<void> {
  for (let last = -1; last !== value(); await pause(SETTLED_WITHIN_MS)) last = value();
}

async function steady({ perSecond, forMs, stallAfterMs, padding = 0, isWarm = false }: Steady): Promise<CotResult> {
  if (isWarm) await warmUp();
  const times: number[] = [];
  const stalled: number[] = [];
  let stalledSinceUs = Infinity;
  const idle = stallAfterMs === undefined ? undefined : sockets.at(-1);
  const numbered = (sentUs: number): void => {
    (sentUs >= stalledSinceUs ? stalled : times).push((nowUs() - sentUs) / 1000);
  };
  const readers = sockets.map((socket): Receiver => {
    const reader = socket === idle ? countingReceiver(() => undefined) : numberReceiver(numbered);
    socket.on('data', reader.take);
    return reader;
  });
  const events = Array.from({ length: order.publishing }, (_, n) => preparedEvent(n, padding));
  const watch = watched();
  const begun = performance.now();
  const heard = (): number => readers.reduce((sum, reader, n) => sum + (sockets[n] === idle ? 0 : reader.count), 0);
  const receivers = fanOut - (idle === undefined ? 0 : 1);
  let sent = 0;
  for (let elapsed = 0; elapsed < forMs; elapsed = performance.now() - begun) {
    if (idle !== undefined && stalledSinceUs === Infinity && elapsed >= (stallAfterMs ?? 0)) {
      idle.pause();
      stalledSinceUs = nowUs();
      watch.stalls();
    }
    for (; sent < (elapsed * perSecond) / 1000; sent++) sendOne(sent);
    await pause(SEND_EVERY_MS);
  }

  function sendOne(nth: number): void {
    const prepared = events[nth % events.length];
    if (prepared === undefined) return;
    writeNumber(prepared.event, prepared.numberAt, nowUs());
    sockets[nth % events.length]?.write(Buffer.from(prepared.event));
  }

  await settled(heard, sent * receivers);
  return {
    sent,
    delivered: heard(),
    expected: sent * receivers,
    ...watch.end(),
    ended,
    latency: latencyOf(times),
    ...(idle === undefined ? {} : { stalled: latencyOf(stalled) }),
  };
}

/** What comes back is dropped. */
async function warmUp(): Promise<void> {
  const drop = (): void => undefined;
  for (const socket of sockets) socket.on('data', drop);
  for (let n = 0; n < order.publishing; n++) {
    sockets[n]?.write(preparedEvent(n).event);
    await pause(SEND_EVERY_MS);
  }
  await pause(WARM_MS);
  for (const socket of sockets) socket.off('data', drop);
}

function nowUs(): number {
  return Math.round(performance.now() * 1000);
}

function latencyOf(times: readonly number[]): Latency {
  const sorted = Float64Array.from(times).toSorted();
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0;
  return { p50: at(0.5), p99: at(0.99) };
}
