// Starts a vacuum of tables of the core's database: resolves the tables, and rejects it unless
// there is enough space. The vacuum itself is a job (carry-on.ts), which answers its audit intent
// when it ends.

import { AppError } from '@holdfast/kit/app-error';
import type { Actor, Audit } from '../../audit/port.ts';
import { addJob } from '../../jobs/ordered-jobs.ts';
import type { OpsJob, OpsJobs } from '../../jobs/port.ts';
import { RETENTION_JOB } from '../../retention/jobs.ts';
import type { VacuumFacts, VacuumMode } from '../port.ts';
import { VACUUM_JOB, VACUUM_RUN, type VacuumJobInput } from './jobs.ts';
import { chosenTables, databasePlace, refuseWithoutRoom, type RoomDeps, vacuumRate } from './preview.ts';
import { inOrder, lockSeconds, nameOf } from './rules.ts';

export interface StartVacuumDeps extends RoomDeps {
  vacuumFacts: Pick<VacuumFacts, 'tables' | 'server'>;
  opsJobs: Pick<OpsJobs, 'open' | 'add' | 'list'>;
  audit: Pick<Audit, 'intend' | 'conclude'>;
  now: () => Date;
}

export interface VacuumInput {
  mode: VacuumMode;
  /** `table` or `schema.table`; undefined: all that may be vacuumed. */
  names: readonly string[] | undefined;
  /** True if CORE_DATABASE_OWNER_URL is set. */
  mayVacuum: boolean;
}

interface Context {
  deps: StartVacuumDeps;
  actor: Actor;
  /** Checked again after the lookup, which may take a while. */
  mustStillBeIn?: () => Promise<void>;
}

export async function startVacuum(context: Context, { mode, names, mayVacuum }: VacuumInput): Promise<OpsJob> {
  const { deps } = context;
  if (!mayVacuum) throw notSetUp();
  await refuseWhileOneIsOpen(deps.opsJobs, mode);
  const known = await deps.vacuumFacts.tables();
  const tables = chosenTables(known, names);
  if (tables.length === 0)
    throw new AppError('conflict', 'Nothing to vacuum: the core’s database has no table that its owner may vacuum.');
  const [place, rate] = await Promise.all([databasePlace(deps), vacuumRate(deps.opsJobs)]);
  refuseWithoutRoom(mode, tables, place);
  await context.mustStillBeIn?.();
  const ordered = inOrder(tables).map(({ schema, table, bytes, reclaimable_bytes, dead_tuples }) => {
    const seconds = lockSeconds(mode, { bytes, reclaimable_bytes }, rate);
    return { schema, table, bytes, dead_tuples, lock_seconds: seconds };
  });
  return addJob(deps, {
    kind: VACUUM_JOB,
    action: VACUUM_RUN,
    actor: context.actor,
    detail: { mode, tables: ordered.map(nameOf) },
    inputOf: (intent): VacuumJobInput => ({ mode, tables: ordered, intent }),
  });
}

function notSetUp(): AppError {
  return new AppError(
    'not_supported',
    'Only the owner of the core’s database may vacuum it, and CORE_DATABASE_OWNER_URL is not set. Remedy: set it to CORE_DATABASE_URL with the user and password of the owner.',
  );
}

async function refuseWhileOneIsOpen({ open }: Pick<OpsJobs, 'open'>, mode: VacuumMode): Promise<void> {
  const jobs = await open();
  const vacuum = jobs.find(({ kind }) => kind === VACUUM_JOB);
  if (vacuum !== undefined)
    throw new AppError(
      'conflict',
      `A vacuum is already ${vacuum.state}: the job ${vacuum.id}. It continues. Remedy: wait for its end; see GET /api/ops/jobs/${vacuum.id}.`,
      { figures: { job: vacuum.id } },
    );
  const retention = jobs.find(({ kind }) => kind === RETENTION_JOB);
  if (retention !== undefined && mode === 'full')
    throw new AppError(
      'conflict',
      `A retention run is ${retention.state}: the job ${retention.id}. Remedy: start FULL after it has ended; it frees more then.`,
      { figures: { job: retention.id } },
    );
}
