// Retention, vacuum and long work: the same answers on Node and in workerd, and jobs that either of them begins.

import postgres from 'postgres';
import { beforeAll, describe, expect, it } from 'vitest';
import { DAY_MS } from '@holdfast/kit/time';
import { eventually, query } from '../e2e/embedded/embedded.ts';
import { type Answer, READER, twoHosts } from './two-hosts.ts';

const { apis, admin, ask, both, stack } = twoHosts();
const JSON_BODY = { 'content-type': 'application/json' };

/** One event a day for the last hundred days, of a uid of its own, so that both hosts have something to delete. */
async function addEvents(uid: string): Promise<void> {
  await query(
    stack().file().database,
    `INSERT INTO cot_router (uid, cot_type, servertime) SELECT '${uid}', 'a-f-G', now() - make_interval(days => n)
     FROM generate_series(1, 100) n`,
  );
}

async function put(api: string, body: object): Promise<Answer> {
  return ask(api, '/api/retention', {
    method: 'PUT',
    headers: { ...JSON_BODY, ...admin() },
    body: JSON.stringify(body),
  });
}

beforeAll(async () => {
  await addEvents('PARITY');
  const { status, body } = await put(apis()[0], { policy: { cot: 30, files: 90 }, cron: '0 30 4 ? * 2-6' });
  expect([status, body]).toMatchObject([200, { policy: { cot: 30, files: 90 } }]);
});

describe('Node and workerd give the same answer about retention', () => {
  const cutoff = encodeURIComponent(new Date(Date.now() - 40.5 * DAY_MS).toISOString());

  it.each([
    ['/api/retention', 200],
    [`/api/retention/preview?cutoff=${cutoff}`, 200],
    [`/api/retention/preview?cot=40&cutoff=${cutoff}`, 200],
    ['/api/retention/preview?cot=0', 422],
    ['/api/retention/preview?cot=abc', 422],
    ['/api/retention/preview?cutoff=yesterday', 422],
    ['/api/retention/runs', 200],
    ['/api/retention/runs?page=0', 422],
    ['/api/ops/jobs', 200],
    ['/api/ops/jobs?state=asleep', 422],
    ['/api/ops/jobs/4711', 404],
    ['/api/ops/jobs/00000000-0000-4000-8000-000000000000', 404],
    ['/api/health/retention', 200],
  ])('to an administrator: %s is %d', async (path, status) =>
    expect((await both(path, { headers: admin() })).status).toBe(status),
  );

  it('and what is compared are no failures', async () => {
    const { body } = await both(`/api/retention/preview?cot=40&cutoff=${cutoff}`, { headers: admin() });
    expect(body).toMatchObject({ exact: true, types: { cot: { rows: 60, exact: true } } });
    expect((await both('/api/retention', { headers: admin() })).body).toMatchObject({
      unit: 'days',
      cron: '0 30 4 ? * 2-6',
      source: { cot: 'file', geochat: 'none' },
      next_runs: [expect.any(String), expect.any(String), expect.any(String), expect.any(String), expect.any(String)],
    });
  });

  it.each([
    ['GET', '/api/retention', 401],
    ['PUT', '/api/retention', 401],
    ['GET', '/api/retention/preview', 401],
    ['POST', '/api/retention/runs', 401],
    ['GET', '/api/ops/jobs', 401],
  ])('to nobody: %s %s is %d', async (method, path, status) =>
    expect((await both(path, { method })).status).toBe(status),
  );

  it.each(['/api/retention', '/api/retention/runs', '/api/ops/jobs'])(
    'to a reader of the metrics: %s',
    async (path) => void (await both(path, { headers: READER })),
  );

  it.each([
    [{ policy: { cot: 0 } }, 422],
    [{ policy: { cot: 1.5 } }, 422],
    [{ policy: { tracks: 1 } }, 422],
    [{ cron: '0 0 3 * * 1' }, 422],
    [{}, 422],
  ])('to a policy that cannot be: %j is %d', async (body, status) => {
    const init = { method: 'PUT', headers: { ...JSON_BODY, ...admin() }, body: JSON.stringify(body) };
    expect((await both('/api/retention', init)).status).toBe(status);
  });

  it('to a run that would delete more than was confirmed', async () => {
    const init = { method: 'POST', headers: { ...JSON_BODY, ...admin() }, body: '{"confirm_rows":1}' };
    const answer = await both('/api/retention/runs', {
      ...init,
      body: `{"confirm_rows":1,"cutoff":"${decodeURIComponent(cutoff)}"}`,
    });
    expect([answer.status, answer.body]).toMatchObject([409, { code: 'confirmation_needed', figures: { rows: 60 } }]);
  });

  it('to a change of the policy and to a run, one host after the other', async () => {
    for (const [at, api] of apis().entries()) {
      await addEvents(`RUN-${at}`);
      const changed = await put(api, { policy: { cot: 50 + at } });
      expect([api, changed.status, changed.body]).toMatchObject([api, 200, { policy: { cot: 50 + at, files: 90 } }]);
      const begun = await ask(api, '/api/retention/runs', {
        method: 'POST',
        headers: { ...JSON_BODY, ...admin() },
        body: '{"confirm_rows":1000}',
      });
      expect([api, begun.status, begun.body]).toMatchObject([api, 202, { kind: 'retention' }]);
      const { id } = begun.body as { id: string };
      // The job is carried on by whichever host has its turn.
      const job = async (): Promise<{ state: string }> =>
        (await ask(api, `/api/ops/jobs/${id}`, { headers: admin() })).body as { state: string };
      await eventually('the job has ended', async () => !['queued', 'running'].includes((await job()).state), 30_000);
      expect(await job()).toMatchObject({ state: 'succeeded', progress: 1 });
      const [left] = await query<{ old: number }>(
        stack().file().database,
        `SELECT count(*)::int AS old FROM cot_router WHERE servertime < now() - interval '${50 + at} days 1 minute'`,
      );
      expect([api, left?.old]).toEqual([api, 0]);
    }
    const { body } = await both('/api/retention/runs', { headers: admin() });
    expect(body).toMatchObject({ count: 2, results: [{ state: 'done' }, { state: 'done' }] });
  });
});

describe('Node and workerd give the same answer about a vacuum', () => {
  const order = (body: object): RequestInit => ({
    method: 'POST',
    headers: { ...JSON_BODY, ...admin() },
    body: JSON.stringify(body),
  });

  it('to who looks beforehand, and to orders that cannot be', async () => {
    expect((await both('/api/ops/database/vacuum', { headers: admin() })).body).toMatchObject({
      enough_disk: true,
      running: null,
      tables: expect.arrayContaining([expect.objectContaining({ table: 'cot_router' })]),
    });
    const unknown = await both('/api/ops/database/vacuum', order({ mode: 'full', tables: ['cot_ruter'] }));
    expect([unknown.status, unknown.body]).toMatchObject([422, { errors: [{ path: 'tables.0' }] }]);
    expect((await both('/api/ops/database/vacuum', order({ mode: 'halfway' }))).status).toBe(422);
    expect((await both('/api/ops/database/vacuum', { method: 'POST' })).status).toBe(401);
  });

  it('to an order, one host after the other: the job is done, and meanwhile a second one is 409', async () => {
    for (const api of apis()) {
      const reader = await readingEvents();
      const begun = await ask(api, '/api/ops/database/vacuum', order({ mode: 'full', tables: ['cot_router'] }));
      expect([api, begun.status, begun.body]).toMatchObject([api, 202, { kind: 'vacuum', state: 'queued' }]);
      expect((await both('/api/ops/database/vacuum', order({ mode: 'standard' }))).status).toBe(409);
      await reader.end();
      const { id } = begun.body as { id: string };
      const job = async (): Promise<{ state: string }> =>
        (await ask(api, `/api/ops/jobs/${id}`, { headers: admin() })).body as { state: string };
      await eventually('the job has ended', async () => !['queued', 'running'].includes((await job()).state), 60_000);
      expect(await job()).toMatchObject({ state: 'succeeded', result: { tables: [{ state: 'done' }] } });
    }
  });
});

/** Somebody reads the events in a transaction, so that no FULL of them is over before this ends. */
async function readingEvents(): Promise<{ end: () => Promise<void> }> {
  const sql = postgres(stack().file().database, { max: 1 });
  await sql.unsafe('BEGIN; SELECT count(*) FROM cot_router');
  return { end: () => sql.end({ timeout: 0 }) };
}
