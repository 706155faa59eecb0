// How fast FULL writes here: by what the last jobs have measured.

import { rateOf, type WriteRate } from '../domain/vacuum.ts';
import type { OpsJobs } from '../ports/ops-jobs.ts';
import { readResult, VACUUM_JOB } from './vacuum-jobs.ts';

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
