// Defines positions of connected devices, and the tracks of all devices from stored history.

import type { CoreClient } from '../port.ts';

export interface CorePosition {
  lat: number;
  lon: number;
  /** Meters above the ellipsoid; null when unknown. */
  height: number | null;
  /** Of the report, ISO 8601. */
  at: string | null;
}

export interface PositionedClient extends CoreClient {
  /** Null: it has reported none. */
  position: CorePosition | null;
}

/** Milliseconds since 1970, latitude, longitude, height in meters or null. */
export type TrackPoint = readonly [atMs: number, lat: number, lon: number, height: number | null];

export interface CoreTrack {
  uid: string;
  callsign: string;
  /** By time. */
  points: TrackPoint[];
}

export interface TrackQuery {
  /** Milliseconds since 1970. */
  sinceMs: number;
  untilMs: number;
  /** As devices see it, without a prefix; default: of all groups. */
  group?: string | undefined;
}

export interface FoundTracks {
  tracks: CoreTrack[];
  /** There are older points in the time asked for: ask again until the oldest one. */
  isCut: boolean;
}

/** Errors as of `Core`. */
export interface CoreTracks {
  /** Connected clients. From a core that does not report positions: of the last 15 minutes. */
  positions(): Promise<PositionedClient[]>;
  /** The newest 50,000 points; `not_found` for an unknown group. */
  find(query: TrackQuery): Promise<FoundTracks>;
}

/** What this feature needs from outside, by the names in Deps. */
export interface CoreTrackPorts {
  coreTracks: CoreTracks;
}
