// A load generator for one address: keep-alive connections that ask again as soon as they are
// answered. Run as a process of its own: node bench/load.ts JSON, where the JSON is a LoadOrder;
// prints a LoadResult as JSON.

import { connect } from 'node:net';

export interface LoadOrder {
  port: number;
  /** The whole request, with its empty line. */
  request: string;
  connections: number;
  /** What every answer must have; default 200. */
  status?: number;
  /** Ends after this time, or after that many answers. */
  seconds: number;
  requests?: number;
}

export interface LoadResult {
  perSecond: number;
  answers: number;
  /** Milliseconds. */
  p50: number;
  p99: number;
}

/** Bounds each latency by the end of its bucket of 10 microseconds. */
const BUCKET_MS = 0.01;

async function run(order: LoadOrder): Promise<LoadResult> {
  const { port, request, connections, seconds, requests = Infinity, status = 200 } = order;
  const buckets = new Uint32Array(200_000);
  let answers = 0;
  const begun = performance.now();
  const until = begun + seconds * 1000;

  const one = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1');
      socket.setNoDelay(true);
      let sent = 0;
      let expected = 0;
      let received = 0;
      const ask = (): void => {
        received = 0;
        sent = performance.now();
        socket.write(request);
      };
      socket.on('connect', ask);
      socket.on('error', reject);
      socket.on('data', (chunk) => {
        if (received === 0 && chunk.length !== expected) expected = sizeOfAnswer(chunk, status);
        received += chunk.length;
        if (received < expected) return;
        if (received > expected) {
          reject(new Error('more than one answer to a request'));
          return;
        }
        const now = performance.now();
        const bucket = Math.min(Math.floor((now - sent) / BUCKET_MS), buckets.length - 1);
        buckets[bucket] = (buckets[bucket] ?? 0) + 1;
        answers++;
        if (now < until && answers < requests) ask();
        else {
          socket.destroy();
          resolve();
        }
      });
    });

  await Promise.all(Array.from({ length: connections }, one));
  const elapsed = (performance.now() - begun) / 1000;
  return { perSecond: answers / elapsed, answers, p50: percentile(buckets, 0.5), p99: percentile(buckets, 0.99) };
}

/** From the first piece of an answer, which must hold its whole head. */
function sizeOfAnswer(chunk: Buffer, status: number): number {
  const head = chunk.subarray(0, chunk.indexOf('\r\n\r\n') + 4).toString();
  const length = /^content-length: (\d+)\r$/im.exec(head)?.[1];
  if (!head.startsWith(`HTTP/1.1 ${status}`) || length === undefined)
    throw new Error(`not an answer ${status} with a length: ${head}`);
  return head.length + Number(length);
}

function percentile(buckets: Uint32Array, share: number): number {
  const total = buckets.reduce((sum, count) => sum + count, 0);
  let seen = 0;
  for (const [index, count] of buckets.entries()) {
    seen += count;
    if (seen >= total * share) return (index + 1) * BUCKET_MS;
  }
  return 0;
}

const order = process.argv[2];
if (order !== undefined) process.stdout.write(JSON.stringify(await run(JSON.parse(order) as LoadOrder)));
