// Every page of the console and the portal with 10,000 users: how long the server takes, against
// the time for /api/ping in the same run, and what the first visit transfers.

import { Agent, request } from 'node:http';
import { crawl, type Place } from '../test/e2e/browser/crawl.ts';
import { report, reportAim } from './measure.ts';
import { benchStack, type BenchStack, OFFSET } from './stack.ts';
import { fillUsers } from './users.ts';

const USERS = 10_000;
const ROUNDS = 40;
const WARM_ROUNDS = 3;
const MAX_MS = 100;
const MAX_BYTES = 150_000;
const PORTAL_PORT = 3000;

interface Answer {
  ms: number;
  /** As sent, head and body. */
  bytes: number;
  status: number;
}

interface Timed {
  path: string;
  p50: number;
  p95: number;
  firstVisit: number;
}

export async function run(): Promise<void> {
  const stack = await benchStack({ UPDATES_URL: 'off' });
  try {
    await fillUsers(stack, USERS);
    const pings = await timesOf({ base: stack.api, cookie: '' }, '/api/ping');
    const ping = quantile(pings, 0.5);
    report('GET /api/ping, p50 and p95', `${ping.toFixed(2)} and ${quantile(pings, 0.95).toFixed(2)} ms`);
    for (const base of [stack.api, `http://127.0.0.1:${PORTAL_PORT + OFFSET}`]) {
      const place = { base, cookie: await sessionOf(stack, base) };
      const pages: Timed[] = [];
      for (const { path, html, status } of await crawl(place, 1)) {
        if (status !== 200) report(path, `${status}: not measured`);
        else pages.push(await timed(place, path, html));
      }
      tell(pages, ping);
    }
  } finally {
    stack.stop();
  }
}

function tell(pages: readonly Timed[], ping: number): void {
  for (const { path, p50, p95, firstVisit } of pages.toSorted((one, other) => other.p95 - one.p95)) {
    const times = `${p50.toFixed(1)} and ${p95.toFixed(1)} ms, ${(p50 / ping).toFixed(1)} times a ping`;
    report(path, `${times}; first visit ${(firstVisit / 1000).toFixed(1)} KB`);
  }
  reportAim('  slowest page, p95', Math.max(...pages.map(({ p95 }) => p95)), MAX_MS, 'ms', { digits: 1 });
  reportAim(
    '  largest first visit',
    Math.max(...pages.map(({ firstVisit }) => firstVisit)) / 1000,
    MAX_BYTES / 1000,
    'KB',
    { digits: 1 },
  );
}

async function sessionOf({ password }: BenchStack, base: string): Promise<string> {
  const body = new URLSearchParams({ username: 'webadmin', password });
  const answer = await fetch(`${base}/sign-in`, {
    method: 'POST',
    body,
    headers: { origin: base },
    redirect: 'manual',
  });
  const cookie = answer.headers.get('set-cookie')?.split(';')[0];
  if (answer.status !== 303 || cookie === undefined) throw new Error(`${base}/sign-in: ${answer.status}`);
  return cookie;
}

/** One connection, kept. */
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

function ask({ base, cookie }: Place, path: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const began = performance.now();
    const headers = { cookie, accept: 'text/html', 'accept-encoding': 'gzip, br' };
    const sent = request(`${base}${path}`, { agent, headers }, (answer) => {
      let bytes = answer.rawHeaders.join('    ').length;
      answer.on('data', (chunk: Buffer) => (bytes += chunk.length));
      answer.on('end', () => resolve({ ms: performance.now() - began, bytes, status: answer.statusCode ?? 0 }));
    });
    sent.on('error', reject).end();
  });
}

async function timesOf(place: Place, path: string): Promise<number[]> {
  const times: number[] = [];
  for (let round = -WARM_ROUNDS; round < ROUNDS; round += 1) {
    const { ms, status } = await ask(place, path);
    if (status !== 200) throw new Error(`${path}: ${status}`);
    if (round >= 0) times.push(ms);
  }
  return times;
}

/**
 * What a browser that has nothing yet gets for the page: itself, its styles, scripts and pictures.
 */
async function timed(place: Place, path: string, html: string): Promise<Timed> {
  const times = await timesOf(place, path);
  const parts = [...html.matchAll(/<(?:link|script|img)\b[^>]*?\s(?:href|src)="(\/[^"]+)"/g)].map(
    ([, part = '']) => part,
  );
  const answers = await Promise.all([path, ...new Set(parts)].map((each) => ask(place, each)));
  const firstVisit = answers.reduce((sum, { bytes }) => sum + bytes, 0);
  return { path, p50: quantile(times, 0.5), p95: quantile(times, 0.95), firstVisit };
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
