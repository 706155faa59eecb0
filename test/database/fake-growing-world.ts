// A world in which the core's database and its disk grow, with a clock: samples as the job keeps them, and the modules over them.

import { DAY_MS, MINUTE_MS } from '@holdfast/kit/time';
import type { Measurement } from '../../shared/health/port.ts';
import { measureIn } from '../health/fake-measure.ts';
import { mount, type World, world } from '../health/fake-monitored.ts';

export const GB = 1e9;

export interface GrowingWorld {
  of: World;
  /** Free on the disk that holds the database. */
  freeBytes: number;
  databaseBytes: number;
  walBytes: number;
  /** Goes on so many minutes; in each, what is said is written, and a sample is kept. */
  minutes(count: number, each?: () => void): Promise<void>;
  /** A sample of that many days ago; without it what is now stays. */
  past(daysAgo: number, databaseBytes: number, besideBytes?: number): void;
  write(bytes: number): void;
  measure(module: string): Promise<Measurement>;
}

const TOTAL = 200 * GB;
const MAX_WAL = 1 * GB;

export function growingWorld(freeBytes = 80 * GB): GrowingWorld {
  const of = world();
  const sampleAt = (at: string, database: number, free: number): void =>
    void of.growth.samples.push({
      at,
      database_bytes: database,
      wal_bytes: made.walBytes,
      max_wal_bytes: MAX_WAL,
      mounts: [{ mount: '/', total_bytes: TOTAL, free_bytes: free, holds_database: true, holds_wal: true }],
    });
  const made: GrowingWorld = {
    of,
    freeBytes,
    databaseBytes: 20 * GB,
    walBytes: MAX_WAL,
    async minutes(count, each = () => undefined) {
      for (let minute = 0; minute < count; minute++) {
        of.now = new Date(of.now.getTime() + MINUTE_MS);
        each();
        sampleAt(of.now.toISOString(), made.databaseBytes, made.freeBytes);
        if (minute % 720 === 0) await of.growth.growthHistory.thin(of.now.toISOString());
      }
      of.mounts = [{ ...mount('/', 60), total_bytes: TOTAL, free_bytes: made.freeBytes }];
    },
    past(daysAgo, database, beside = 0) {
      const used = database - made.databaseBytes + beside;
      sampleAt(new Date(of.now.getTime() - daysAgo * DAY_MS).toISOString(), database, made.freeBytes - used);
    },
    write(bytes) {
      made.databaseBytes += bytes;
      made.freeBytes -= bytes;
    },
    measure: (name) => measureIn(name, of),
  };
  of.mounts = [{ ...mount('/', 60), total_bytes: TOTAL, free_bytes: freeBytes }];
  of.growth.fillers = (seconds) => ({
    seconds,
    sampled: 2000,
    rows: 100_000,
    bytes: (0.11 * GB * seconds) / 60,
    types: [{ name: 'a-f-G-U-C', share: 0.97, rows: 97_000, bytes: 0 }],
    uids: [{ name: 'FEED-7', share: 0.96, rows: 96_000, bytes: 0, cot_type: 'a-f-G-U-C', callsign: 'WESTBANK' }],
  });
  return made;
}
