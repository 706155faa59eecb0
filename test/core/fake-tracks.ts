// Positions of the connected devices of a core in memory, and tracks with a limit as the core has
// one.

import { AppError } from '@holdfast/kit/app-error';
import type { CorePosition, CoreTrackPorts } from '../../shared/core/tracks/port.ts';
import type { FakeCore } from './fake-core.ts';

export interface StoredPoint {
  uid: string;
  callsign: string;
  group: string;
  atMs: number;
  lat: number;
  lon: number;
  height: number | null;
}

export interface FakeTracks extends CoreTrackPorts {
  /** By uid. */
  positions: Map<string, CorePosition>;
  points: StoredPoint[];
  /** Points of one answer. */
  most: number;
  /** How often tracks were read. */
  calls: number;
}

export function fakeTracks(theCore: Pick<FakeCore, 'core'>): FakeTracks {
  const fake: FakeTracks = {
    positions: new Map(),
    points: [],
    most: 50_000,
    calls: 0,
    coreTracks: {
      async positions() {
        const clients = await theCore.core.clients();
        return clients.map((client) => ({ ...client, position: fake.positions.get(client.uid) ?? null }));
      },
      async find({ sinceMs, untilMs, group }) {
        fake.calls += 1;
        if (group !== undefined && !fake.points.some((point) => point.group === group))
          throw new AppError('not_found', `The core has no group ${group}.`);
        const wanted = fake.points
          .filter(({ atMs, group: of }) => atMs >= sinceMs && atMs <= untilMs && (group === undefined || of === group))
          .toSorted((one, other) => other.atMs - one.atMs)
          .slice(0, fake.most)
          .toReversed();
        const byUid = Map.groupBy(wanted, ({ uid }) => uid);
        const tracks = [...byUid].map(([uid, points]) => ({
          uid,
          callsign: points[0]?.callsign ?? uid,
          points: points.map(({ atMs, lat, lon, height }) => [atMs, lat, lon, height] as const),
        }));
        return { tracks, isCut: wanted.length >= fake.most };
      },
    },
  };
  return fake;
}
