// A vacuum on a running stack: what it gives back, whom it waits for, and that its job tells the
// truth when management or everything is killed in the middle of it.

import { beforeAll, describe, expect, it } from 'vitest';
import { asAdministrator } from './devices-api.ts';
import { eventually, lives, newStack, query, type TestStack } from './embedded.ts';
import { stands } from './running-stack.ts';
import { addStoppedTable, type Held, inTransaction, isFullInTheMiddle, stopped } from './stopped-table.ts';

const PATH = '/api/ops/database/vacuum';
const LONG = { timeout: 120_000 };
const ENDS_WITHIN_MS = 60_000;

interface Job {
  id: string;
  state: string;
  phase: string | null;
  log: string[];
  error: string | null;
  result: {
    bytes_given_back: number;
    tables: { table: string; state: string; bytes_before: number; bytes_after: number }[];
  } | null;
}

let stack: TestStack;
const { ask, json } = asAdministrator(() => stack);
const database = (): string => stack.file().database;
const jobOf = (id: string): Promise<Job> => json<Job>('GET', `/api/ops/jobs/${id}`);

async function ordered(body: object): Promise<string> {
  const response = await ask('POST', PATH, body);
  const job = (await response.json()) as Job;
  expect([response.status, job]).toMatchObject([202, { state: 'queued' }]);
  return job.id;
}

/** Management may be away meanwhile. */
async function until(id: string, what: string, holds: (job: Job) => boolean): Promise<Job> {
  let job: Job | undefined;
  const isSo = async (): Promise<boolean> => {
    job = await jobOf(id).catch(() => undefined);
    return job !== undefined && holds(job);
  };
  await eventually(what, isSo, ENDS_WITHIN_MS).catch((error: unknown) => {
    throw new Error(`${String(error)}: ${JSON.stringify(job)}`);
  });
  return job as Job;
}
const ended = (id: string): Promise<Job> =>
  until(id, 'the job has ended', ({ state }) => !['queued', 'running'].includes(state));

async function stoppedInTheMiddle(): Promise<{ id: string } & Held> {
  const { letGo } = await stopped(database());
  const id = await ordered({ mode: 'full', tables: ['stopped'] });
  await eventually('FULL is in the middle', () => isFullInTheMiddle(database()), 30_000);
  return { id, letGo };
}

interface AuditRow {
  phase: string;
  result: string | null;
}

/** The intent and its answer, which is written after the end of the job. */
async function auditOf(id: string): Promise<unknown[]> {
  let rows: AuditRow[] = [];
  const isAnswered = async (): Promise<boolean> => {
    const path = `/api/audit?action=database.vacuum&target=${id}`;
    rows = (await json<{ results: AuditRow[] }>('GET', path)).results;
    return rows.length > 1;
  };
  await eventually('its intent is answered', isAnswered, 20_000);
  return rows.map(({ phase, result }) => [phase, result]);
}

beforeAll(async () => {
  stack = await newStack();
  expect((await stack.start()).code).toBe(0);
  await query(
    database(),
    `INSERT INTO cot_router (uid, cot_type, servertime, detail)
     SELECT 'device-' || n, 'a-f-G', now(), repeat(md5(n::text), 10) FROM generate_series(1, 20000) n;
     DELETE FROM cot_router WHERE id % 4 > 0;
     ANALYZE cot_router;`,
  );
});

describe('a vacuum of a running stack', () => {
  it('FULL of all tables gives room back; meanwhile a second one is 409, and the first goes on', LONG, async () => {
    const preview = await json<{ tables: { table: string; reclaimable_bytes: number }[]; enough_disk: boolean }>(
      'GET',
      PATH,
    );
    expect(preview).toMatchObject({ enough_disk: true, tables: [{ table: 'cot_router' }, ...preview.tables.slice(1)] });
    const { letGo } = await inTransaction(database(), 'SELECT count(*) FROM cot_router');
    const id = await ordered({ mode: 'full' });
    const second = await ask('POST', PATH, { mode: 'standard' });
    await letGo();
    expect([second.status, await second.json()]).toMatchObject([409, { detail: expect.stringContaining(id) }]);
    const job = await ended(id);
    expect(job).toMatchObject({ state: 'succeeded', error: null });
    const events = job.result?.tables.find(({ table }) => table === 'cot_router');
    expect(events?.bytes_after).toBeLessThan((events?.bytes_before ?? 0) / 2);
    expect(job.result?.bytes_given_back).toBeGreaterThan(3e6);
    expect(job.result?.tables.every(({ state }) => state === 'done')).toBe(true);
    expect(await auditOf(id)).toEqual([
      ['outcome', 'ok'],
      ['intent', null],
    ]);
  });

  it('of a table that there is not is 422', async () => {
    const response = await ask('POST', PATH, { mode: 'full', tables: ['cot_ruter'] });
    expect([response.status, await response.json()]).toMatchObject([
      422,
      { errors: [{ path: 'tables.0', message: expect.stringContaining('did you mean cot_router?') }] },
    ]);
  });

  it(
    'waits for a long transaction of a client, lets all others read meanwhile, and goes on after it',
    LONG,
    async () => {
      const { letGo } = await inTransaction(database(), 'SELECT count(*) FROM cot_router');
      const old = `SELECT 1 FROM pg_stat_activity WHERE application_name = 'report' AND now() - xact_start > interval '5.5 s'`;
      await eventually('the transaction is long', async () => (await query(database(), old)).length > 0, 30_000);
      const id = await ordered({ mode: 'full', tables: ['cot_router'] });
      const { phase, log } = await until(id, 'it waits', (job) => job.phase?.includes('waiting for a lock') === true);
      expect([phase, log.join(' ')]).toEqual([
        'cot_router: waiting for a lock',
        expect.stringMatching(/held by PID \d+ \(martiuser, report\) since .*SELECT pg_terminate_backend\(\d+\)/),
      ]);
      const [{ count } = { count: 0 }] = await query<{ count: number }>(
        database(),
        `SET lock_timeout = '2s'; SELECT count(*)::int AS count FROM cot_router`,
      ).then((rows) => (rows.at(-1) as unknown as { count: number }[] | undefined) ?? []);
      expect(count).toBeGreaterThan(0);
      await letGo();
      expect(await ended(id)).toMatchObject({ state: 'succeeded' });
    },
  );

  it.skipIf(stands)('is found again when management was killed in the middle of it', LONG, async () => {
    await addStoppedTable(database());
    const { id, letGo } = await stoppedInTheMiddle();
    const old = stack.pid('management');
    process.kill(old, 'SIGKILL');
    await eventually('management is back', () => ![0, old].includes(stack.pid('management')), 20_000);
    await letGo();
    expect(await ended(id)).toMatchObject({ state: 'succeeded', result: { tables: [{ state: 'done' }] } });
    expect(await auditOf(id)).toEqual([
      ['outcome', 'ok'],
      ['intent', null],
    ]);
  });

  it.skipIf(stands)(
    'is interrupted when everything was killed in the middle of it, and nothing is lost',
    LONG,
    async () => {
      const { id } = await stoppedInTheMiddle();
      const pids = stack.file().pids.map(({ pid }) => pid);
      for (const pid of pids) process.kill(pid, 'SIGKILL');
      await eventually('everything has ended', () => !pids.some(lives), 20_000);
      expect((await stack.start()).code).toBe(0);
      expect(await ended(id)).toMatchObject({
        state: 'interrupted',
        error: expect.stringContaining('nothing was changed'),
        result: { tables: [{ table: 'stopped', state: 'interrupted' }] },
      });
      expect(await query(database(), 'SELECT count(*)::int AS count FROM stopped')).toEqual([{ count: 100 }]);
      expect((await ended(await ordered({ mode: 'full', tables: ['stopped'] }))).state).toBe('succeeded');
    },
  );
});
