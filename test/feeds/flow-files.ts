// The code of the flow engine, for tests: the same files that it runs.

import { createRequire } from 'node:module';
import type { Feed } from '../../shared/feeds/port.ts';

export interface FeedEvent {
  uid: string;
  staleMs: number;
  lat: number;
  lon: number;
  xml: string;
}

export interface TestAllowance {
  readonly spent: { day: string; bytes: number };
  refused: number;
  offer(events: readonly FeedEvent[]): void;
  take(limits: Pick<Feed, 'events_per_minute' | 'megabytes_per_day'>, nowMs: number): string[];
}

export interface TestFeeds {
  load(): boolean;
  nodes(): { id: string; type: string; [property: string]: unknown }[];
  read(name: string): Promise<string | undefined>;
  offer(name: string, answer: string | Buffer): Promise<void>;
  take(name: string, isConnected: boolean): string;
  report(nowMs?: number): void;
}

const fromHere = createRequire(import.meta.url);

export const { eventsOf } = fromHere('../../compose/flows/feed-events.js') as {
  eventsOf: (feed: Feed, answer: string, nowMs: number) => FeedEvent[];
};
export const { Allowance } = fromHere('../../compose/flows/feed-allowance.js') as {
  Allowance: new (spent?: { day: string; bytes: number; refused?: number }) => TestAllowance;
};
export const { Feeds } = fromHere('../../compose/flows/feeds.js') as {
  Feeds: new (directory: string) => TestFeeds;
};

export const FEED: Feed = {
  name: 'planes',
  kind: 'adsb',
  url: 'http://192.0.2.9/data/aircraft.json',
  header: null,
  interval_s: 30,
  area: null,
  group: 'core_Blue',
  events_per_minute: 60,
  megabytes_per_day: 1,
  mapping: null,
  active: true,
};
