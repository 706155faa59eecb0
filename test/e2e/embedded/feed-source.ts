// A receiver of aircraft for tests: serves `aircraft.json` as readsb has it, to who knows the key.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basic } from '../../http/fake-deps.ts';
import type { TestStack } from './embedded.ts';

export interface Receiver {
  url: string;
  /** In its answers from now on. */
  aircraft: object[];
  close(): void;
}

export const KEY = { name: 'X-Api-Key', value: 'key-of-the-receiver' };

export async function receiver(): Promise<Receiver> {
  const server = createServer((request, response) => {
    const isKnown = request.headers[KEY.name.toLowerCase()] === KEY.value;
    response.writeHead(isKnown ? 200 : 403, { 'content-type': 'application/json' });
    response.end(isKnown ? JSON.stringify({ now: Date.now() / 1000, aircraft: made.aircraft }) : '{}');
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const made: Receiver = {
    url: `http://127.0.0.1:${port}/data/aircraft.json`,
    aircraft: [],
    close: () => void server.close(),
  };
  return made;
}

export function plane(hex: string, lat: number): object {
  return { hex, flight: 'SWR1<&>', lat, lon: 8.5, alt_geom: 10_000, gs: 250, track: 90, seen_pos: 1 };
}

export interface FeedAnswer {
  active: boolean;
  problem: string | null;
  state: { connected: boolean; sent_today: number; refused_today: number; bytes_today: number } | null;
}

/** The answer of /api/feeds/NAME…; throws what it refuses. */
export async function changeFeed(
  stack: TestStack,
  method: string,
  path: string,
  body?: object,
): Promise<FeedAnswer | undefined> {
  const { api, webadmin } = stack.file();
  const answer = await fetch(`${api}/api/feeds/${path}`, {
    method,
    headers: { authorization: basic(webadmin.username, webadmin.password), 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text === '' ? undefined : (JSON.parse(text) as FeedAnswer);
}

export async function feedNamed(stack: TestStack, name: string): Promise<FeedAnswer | undefined> {
  const list = (await changeFeed(stack, 'GET', '')) as unknown as (FeedAnswer & { name: string })[];
  return list.find((feed) => feed.name === name);
}
