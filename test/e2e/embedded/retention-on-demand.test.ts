// A run of retention on demand on a running stack: what the preview counts is what the run deletes,
// to the row, also when management is killed in the middle of it; and what is not confirmed is not
// deleted.

import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RETAINED, type Retained, type RetentionLimits } from '@holdfast/kit/retention';
import { asAdministrator } from './devices-api.ts';
import { answersPing, eventually, newStack, query, stop, type TestStack } from './embedded.ts';
import { expiredRows, ninetyDays, rowsOf } from './retention-rows.ts';
import { startSecondManagement } from './second-management.ts';

const POLICY = { cot: 30, geochat: 60, files: 45, missionpackages: 50, missions: 40 };
/** The core gives way to everything else on the machine. */
const LONG = { timeout: 280_000 };
const ENDS_WITHIN_MS = 150_000;

interface Preview {
  cutoff: string;
  rows: number;
  exact: boolean;
  types: Record<Retained, { limit: string; rows: number; included: { cot: number; files: number } }>;
}

interface Job {
  id: string;
  state: string;
  progress: number;
  log: string[];
  error: string | null;
  result: { rows: Record<Retained, number>; included: { cot: number; files: number }; limits: RetentionLimits } | null;
}

let stack: TestStack;
const { ask, askAt, json } = asAdministrator(() => stack);
const database = (): string => stack.file().database;
const jobOf = (id: string): Promise<Job> => json<Job>('GET', `/api/ops/jobs/${id}`);

/** Counting is left out when the machine has no time for it: then once more. */
async function exactPreview(api = stack.file().api): Promise<Preview> {
  let preview: Preview | undefined;
  await eventually(
    'the preview is exact',
    async () => {
      preview = (await (await askAt(api, 'GET', '/api/retention/preview')).json()) as Preview;
      return preview.exact;
    },
    30_000,
  );
  if (preview === undefined) throw new Error('no preview');
  return preview;
}

const limitsOf = ({ types }: Preview): Required<RetentionLimits> =>
  Object.fromEntries(RETAINED.map((type) => [type, types[type].limit])) as Required<RetentionLimits>;

function previewed({ types }: Preview): unknown {
  return {
    rows: Object.fromEntries(RETAINED.map((type) => [type, types[type].rows])),
    included: types.missions.included,
  };
}

/**
 * A row of the events that will be deleted in the middle is held, so that the run cannot end before
 * it is let go.
 */
async function heldInTheMiddle(limit: string): Promise<() => Promise<void>> {
  const sql = postgres(database(), { max: 1, onnotice: () => undefined });
  const { promise: letGo, resolve } = Promise.withResolvers<void>();
  const { promise: held, resolve: isHeld, reject } = Promise.withResolvers<void>();
  const holding = sql
    .begin(async (tx) => {
      const rows = await tx`
        SELECT id FROM cot_router WHERE servertime < ${limit}::text::timestamptz AND cot_type = 'a-f-G' AND uid LIKE 'device-%'
        ORDER BY servertime OFFSET 15000 LIMIT 1 FOR UPDATE`;
      expect(rows).toHaveLength(1);
      isHeld();
      await letGo;
    })
    .catch(reject);
  await held;
  return async () => {
    resolve();
    await holding;
    await sql.end({ timeout: 2 });
  };
}

/** Requests a run at `api`, calls `kill` in the middle of it, and compares what is gone with the preview. */
async function deletedToTheRow(api: string, kill: () => Promise<void>): Promise<void> {
  const [preview, before] = [await exactPreview(api), await rowsOf(database())];
  const expired = await expiredRows(database(), limitsOf(preview));
  expect(previewed(preview)).toEqual(expired);
  const letGo = await heldInTheMiddle(preview.types.cot.limit);
  let id: string;
  try {
    const input = { cutoff: preview.cutoff, confirm_rows: preview.rows };
    const response = await askAt(api, 'POST', '/api/retention/runs', input);
    ({ id } = (await response.json()) as Job);
    expect([response.status, response.headers.get('location')]).toEqual([202, `/api/ops/jobs/${id}`]);
    expect((await askAt(api, 'POST', '/api/retention/runs', input)).status).toBe(409);
    const isInTheMiddle = async (): Promise<boolean> => {
      const { state, progress } = (await (await askAt(api, 'GET', `/api/ops/jobs/${id}`)).json()) as Job;
      return state === 'running' && progress > 0;
    };
    await eventually('the run is in the middle', isInTheMiddle, 60_000);
    await kill();
    await eventually('the job is known', async () => (await ask('GET', `/api/ops/jobs/${id}`)).ok, 20_000);
    expect((await jobOf(id)).state).toBe('running');
  } finally {
    await letGo();
  }
  const hasEnded = async (): Promise<boolean> => !['queued', 'running'].includes((await jobOf(id)).state);
  await eventually('the job has ended', hasEnded, ENDS_WITHIN_MS);
  const job = await jobOf(id);
  expect([job.state, job.error, job.progress]).toEqual(['succeeded', null, 1]);
  expect({ rows: job.result?.rows, included: job.result?.included }).toEqual(expired);
  expect(job.result?.limits).toEqual(limitsOf(preview));
  const nothing = Object.fromEntries(RETAINED.map((type) => [type, 0]));
  expect(await expiredRows(database(), limitsOf(preview))).toEqual({ rows: nothing, included: { cot: 0, files: 0 } });
  const after = await rowsOf(database());
  const gone = (table: string): number => (before[table] ?? 0) - (after[table] ?? 0);
  expect(gone('cot_router') + gone('cot_router_chat') + gone('resource') + gone('mission')).toBe(preview.rows);
  expect([after['cot_image'], after['cot_link']]).toEqual([0, 0]);
}

beforeAll(async () => {
  stack = await newStack();
  expect((await stack.start()).code).toBe(0);
  await ninetyDays(database());
  await json('PUT', '/api/retention', { policy: POLICY, cron: '-' });
});
afterAll(() => stop(stack.data));

describe('a run on demand', () => {
  it('that deletes more than is confirmed is 409 with the figures of the preview, and deletes nothing', async () => {
    const [preview, before] = [await exactPreview(), await rowsOf(database())];
    expect(previewed(preview)).toEqual(await expiredRows(database(), limitsOf(preview)));
    const body = { cutoff: preview.cutoff, confirm_rows: preview.rows - 1 };
    const response = await ask('POST', '/api/retention/runs', body);
    expect([response.status, await response.json()]).toMatchObject([
      409,
      { code: 'confirmation_needed', figures: { rows: preview.rows, ...body } },
    ]);
    const { count } = await json<{ count: number }>('GET', '/api/ops/jobs?kind=retention');
    expect([count, await rowsOf(database())]).toEqual([0, before]);
  });

  it('with a cutoff that the policy does not allow is 422, and deletes nothing', async () => {
    const before = await rowsOf(database());
    const cutoff = new Date(Date.now() - 86_400_000).toISOString();
    expect((await ask('POST', '/api/retention/runs', { cutoff, confirm_rows: 1e9 })).status).toBe(422);
    expect(await rowsOf(database())).toEqual(before);
  });

  it('deletes to the row what the preview says, though management is killed in the middle of it', LONG, () =>
    deletedToTheRow(stack.file().api, async () => {
      const old = stack.pid('management');
      process.kill(old, 'SIGKILL');
      await eventually('management is back', () => ![0, old].includes(stack.pid('management')), 20_000);
      await eventually('the API answers', () => answersPing(stack.file().api), 20_000);
    }),
  );

  it('is in the history and in the audit log, with what it has deleted', async () => {
    const { results } = await json<{ results: Job[] }>('GET', '/api/ops/jobs?kind=retention&state=succeeded');
    const [job] = results;
    const history = await json<{ results: unknown[] }>('GET', '/api/retention/runs');
    expect(history).toMatchObject({
      up_to_date: true,
      results: [
        { id: job?.id, source: 'core', trigger: 'order', state: 'done', rows: job?.result?.rows, complete: true },
      ],
    });
    const audit = await json<{ results: unknown[] }>('GET', `/api/audit?action=retention.run&target=${job?.id}`);
    expect(audit.results).toMatchObject([
      { phase: 'outcome', result: 'ok', actor: 'webadmin', detail: { rows: job?.result?.rows } },
      { phase: 'intent', actor: 'webadmin' },
    ]);
  });

  it('finds nothing to delete a second time', async () => {
    const { results } = await json<{ results: Job[] }>('GET', '/api/ops/jobs?kind=retention&state=succeeded');
    const requested = { confirm_rows: 0, cutoff: results[0]?.result?.limits.cot };
    const { id } = await json<Job>('POST', '/api/retention/runs', requested);
    await eventually('the job has ended', async () => (await jobOf(id)).state === 'succeeded', ENDS_WITHIN_MS);
    const nothing = Object.fromEntries(RETAINED.map((type) => [type, 0]));
    expect((await jobOf(id)).result).toMatchObject({ rows: nothing, included: { cot: 0, files: 0 } });
  });

  it('goes on in the other one of two processes when one is killed', LONG, async () => {
    await query(database(), 'TRUNCATE mission, resource, cot_router, cot_router_chat CASCADE');
    await ninetyDays(database());
    const second = await startSecondManagement(stack);
    const own = stack.pid('management');
    // So that the second one does the work.
    process.kill(own, 'SIGSTOP');
    await deletedToTheRow(second.api, async () => {
      process.kill(own, 'SIGCONT');
      await second.kill();
    }).finally(() => process.kill(own, 'SIGCONT'));
  });
});
