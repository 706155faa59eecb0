// Whether there is room for a vacuum: what the disks, the server and the settings say together.

import { AppError, messageOf } from '@holdfast/kit/app-error';
import type { Disks } from '../../host/port.ts';
import type { OpsJobs } from '../../jobs/port.ts';
import type { VacuumFacts, VacuumMode, VacuumTable } from '../port.ts';
import { readResult, VACUUM_JOB } from './jobs.ts';
import { type DatabasePlace, mostDemanding, rateOf, roomFor, type RoomVerdict, type WriteRate } from './rules.ts';

export interface RoomDeps {
  vacuumFacts: Pick<VacuumFacts, 'server'>;
  monitored: { disks: Disks; wanted: { databaseDirectory: string | undefined } };
}

/** Rejects only as `VacuumFacts` does. */
export async function databasePlace({ vacuumFacts, monitored }: RoomDeps): Promise<DatabasePlace> {
  const [{ max_wal_bytes: maxWalBytes }, mounts] = await Promise.all([
    vacuumFacts.server(),
    monitored.disks.use().catch(messageOf),
  ]);
  return { directory: monitored.wanted.databaseDirectory, mounts, maxWalBytes };
}

/** One table after the other: what the most demanding one needs is enough for all. Undefined without tables. */
export function roomForAll(
  mode: VacuumMode,
  tables: readonly VacuumTable[],
  place: DatabasePlace,
): RoomVerdict | undefined {
  const most = mostDemanding(mode, tables);
  return most && roomFor(mode, most, place);
}

export function refuseWithoutRoom(mode: VacuumMode, tables: readonly VacuumTable[], place: DatabasePlace): void {
  const verdict = roomForAll(mode, tables, place);
  if (verdict === undefined || verdict.isEnough === true) return;
  const { figures } = verdict;
  throw new AppError('not_enough_disk', `Nothing was begun. ${figures.reason}`, { figures: { ...figures } });
}

// How fast FULL writes here: by what the last jobs have measured.

const LAST_JOBS = 20;

export async function vacuumRate({ list }: Pick<OpsJobs, 'list'>): Promise<WriteRate> {
  const { results } = await list({ kind: VACUUM_JOB, state: 'succeeded' }, 0, LAST_JOBS);
  const full = results.flatMap((job) => readResult(job) ?? []).filter(({ mode }) => mode === 'full');
  const tables = full.flatMap((result) => result.tables);
  return rateOf(
    tables.flatMap(({ bytes_after, seconds }) =>
      bytes_after === null || seconds === null ? [] : [{ bytes_after, seconds }],
    ),
  );
}
