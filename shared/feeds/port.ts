// Defines feeds: sources of events that the flow engine brings to a group, each with an account, a
// rate and a disk budget.

import { z } from 'zod';
import type { Exclusive } from '../identity/port.ts';

/**
 * `adsb`, `ais`: JSON of receivers of aircraft and ships. `weather`: alerts as GeoJSON. `json`: any
 * list, with a mapping. `cot`: events over HTTP or TCP.
 */
export const FEED_KINDS = ['adsb', 'ais', 'weather', 'json', 'cot'] as const;
export type FeedKind = (typeof FEED_KINDS)[number];

/** Degrees. `west` greater than `east` crosses the date line. */
export interface FeedArea {
  south: number;
  west: number;
  north: number;
  east: number;
}

/** Where the values of a `json` feed are: `a.b.0.c`. The empty path is the whole answer. */
export interface FeedMapping {
  items: string;
  uid: string;
  lat: string;
  lon: string;
  /** Empty: the uid. */
  callsign: string;
  /** Empty: none. */
  remarks: string;
  /** The CoT type of all, `a-f-G`. */
  type: string;
}

export interface Feed {
  name: string;
  kind: FeedKind;
  /** `tcp://host:port` for `cot`, else of HTTP. May hold a key in its query. */
  url: string;
  /** A secret of the source, sent with each request. */
  header: { name: string; value: string } | null;
  interval_s: number;
  area: FeedArea | null;
  /** The whole name of the channel. */
  group: string;
  events_per_minute: number;
  megabytes_per_day: number;
  /** Of the kind `json` only. */
  mapping: FeedMapping | null;
  active: boolean;
}

const time = z.iso.datetime().nullable();
const count = z.number().int().nonnegative();

/** What the flow engine writes about a feed that is on. Days are of UTC. */
export const feedStateSchema = z.object({
  /** To the core. */
  connected: z.boolean(),
  read_at: time,
  /** Events in the last answer, inside the area. */
  items: count,
  sent_at: time,
  day: z.string().max(10),
  sent_today: count,
  /** Events without room in the budget of the day, or in the queue. */
  refused_today: count,
  bytes_today: count,
  error: z.string().max(400).nullable(),
});
export type FeedState = z.infer<typeof feedStateSchema>;

export const feedReportSchema = z.object({
  /** When the engine wrote it, at least every half a minute. */
  at: z.iso.datetime(),
  feeds: z.record(z.string(), feedStateSchema),
});
export type FeedReport = z.infer<typeof feedReportSchema>;

export interface Feeds {
  /** By name. Throws `unavailable` if they can't be read. */
  list(): Promise<Feed[]>;
  /** Replaces all of them, or none. */
  write(feeds: readonly Feed[]): Promise<void>;
  /** Undefined if the flow engine has not reported yet. */
  report(): Promise<FeedReport | undefined>;
}

/** What this feature needs from outside, by the names in Deps. */
export interface FeedPorts {
  feeds: Feeds;
  /** Held while a feed is changed, also by whoever holds `deviceLock` meanwhile. */
  feedLock: Exclusive;
}
