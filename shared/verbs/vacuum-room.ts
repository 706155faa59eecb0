// Whether there is room for a vacuum: what the disks, the server and the settings say together.

import { AppError } from '../domain/app-error.ts';
import { messageOf } from '../domain/thrown.ts';
import { type DatabasePlace, mostDemanding, roomFor, type RoomVerdict } from '../domain/vacuum.ts';
import type { Disks } from '../ports/disks.ts';
import type { VacuumFacts, VacuumMode, VacuumTable } from '../ports/vacuum-facts.ts';

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
