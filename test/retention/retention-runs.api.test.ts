import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import type { CoreRetentionRun } from '@holdfast/kit/core-wire';
import { DEFAULT_SCHEDULE, KEEP_ALL, LARGE_RUN_ROWS } from '@holdfast/kit/retention';
import { standIn } from '../devices/fake-revocation-world.ts';
import { VIEWER } from '../http/fake-deps.ts';
import { retentionWorld, type RetentionWorld } from './fake-retention-world.ts';

let world: RetentionWorld;
beforeEach(async () => {
  world = await retentionWorld();
});

type Body = Record<string, unknown>;
async function order(body?: unknown): Promise<[number, Body]> {
  const response = await world.order(body);
  return [response.status, (await response.json()) as Body];
}
async function runs(query = ''): Promise<Body & { results: Body[] }> {
  const response = await world.ask('GET', `/api/retention/runs${query}`, undefined, VIEWER);
  expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
  return (await response.json()) as Body & { results: Body[] };
}
const scheduled = (change: Partial<CoreRetentionRun> = {}): CoreRetentionRun => ({
  id: 'nightly-1',
  trigger: 'schedule',
  state: 'done',
  startedAt: world.ago(0.5),
  finishedAt: world.ago(0.4),
  limits: { cot: world.ago(30.5) },
  rows: { cot: 12 },
  included: { cot: 0, files: 0 },
  expected: 12,
  bytes: 12_000,
  error: null,
  ...change,
});
const nothingWasBegun = async (): Promise<void> => {
  expect(world.retention.runs).toEqual([]);
  expect((await world.deps.opsJobs.list({}, 0, 9)).count).toBe(0);
};
const retentionRecords = () => world.deps.audit.records.filter(({ action }) => action === 'retention.run');

describe('POST /api/retention/runs', () => {
  it('answers 202 with the job and its place; the intent is written before anything is done', async () => {
    const response = await world.order();
    const job = (await response.json()) as Body;
    const place = `/api/ops/jobs/${String(job['id'])}`;
    const headers = [response.headers.get('location'), response.headers.get('cache-control')];
    expect([response.status, ...headers]).toEqual([202, place, 'no-store']);
    expect(job).toMatchObject({ kind: 'retention', state: 'queued', requested_by: 'webadmin', progress: 0 });
    expect(await (await world.ask('GET', place)).json()).toEqual(job);
    const limits = { cot: world.ago(30), geochat: world.ago(60) };
    expect(retentionRecords()).toMatchObject([
      {
        phase: 'intent',
        actor: 'webadmin',
        address: '192.0.2.7',
        target: job['id'],
        detail: JSON.stringify({ limits, most_rows: LARGE_RUN_ROWS }),
      },
    ]);
    expect((await world.job(String(job['id']))).input).toEqual({ limits, most_rows: LARGE_RUN_ROWS, intent: 1 });
    expect(world.retention.runs).toEqual([]);
  });

  it('counts from the cutoff that is given, which stands for the type with the fewest days', async () => {
    const id = await world.ordered({ cutoff: world.ago(40), confirm_rows: 500 });
    expect((await world.job(id)).input).toMatchObject({
      limits: { cot: world.ago(40), geochat: world.ago(70) },
      most_rows: 500,
    });
  });

  it('is 409 with the figures when more would go than is confirmed, and deletes nothing', async () => {
    expect(await order({ confirm_rows: 89 })).toMatchObject([
      409,
      {
        code: 'confirmation_needed',
        detail: expect.stringMatching(/would delete 90 rows; confirm_rows allows 89\. Nothing was deleted/),
        figures: { rows: 90, exact: true, confirm_rows: 89, cutoff: world.ago(30), types: { cot: 60, geochat: 30 } },
      },
    ]);
    await nothingWasBegun();
    expect(retentionRecords()).toEqual([]);
    expect((await order({ confirm_rows: 90 }))[0]).toBe(202);
  });

  it('counts what goes with missions as well', async () => {
    Object.assign(world.retention, { policy: { ...KEEP_ALL, missions: 80 }, withMission: { cot: 5, files: 2 } });
    expect(await order({ confirm_rows: 79 })).toMatchObject([409, { figures: { rows: 80, types: { missions: 10 } } }]);
    expect((await order({ confirm_rows: 80 }))[0]).toBe(202);
  });

  it('wants a confirmation for more than a million rows', async () => {
    world.retention.policy = { ...KEEP_ALL, cot: 1 };
    world.retention.rows.cot = Array.from({ length: LARGE_RUN_ROWS + 1 }, () => world.ago(2));
    expect(await order()).toMatchObject([
      409,
      { code: 'confirmation_needed', figures: { rows: LARGE_RUN_ROWS + 1, confirm_rows: null } },
    ]);
    await nothingWasBegun();
    world.retention.rows.cot.pop();
    expect((await order())[0]).toBe(202);
  });

  it('holds the core to a million rows when none are confirmed, however they were counted', async () => {
    for (const isSlow of [false, true]) {
      world = await retentionWorld();
      world.retention.isSlow = isSlow;
      expect((await world.job(await world.ordered())).input).toMatchObject({ most_rows: LARGE_RUN_ROWS });
    }
    world = await retentionWorld();
    world.retention.isSlow = true;
    expect(await order({ confirm_rows: 1 })).toMatchObject([409, { figures: { exact: false } }]);
    expect((await world.job(await world.ordered({ confirm_rows: 500 }))).input).toMatchObject({ most_rows: 500 });
  });

  it('is 422 for a cutoff before 1970, whose limits no database would read', async () => {
    world.retention.policy.files = 36_500;
    for (const cutoff of ['0001-01-01T00:00:00Z', '1969-12-31T23:59:59Z'])
      expect(await order({ cutoff })).toMatchObject([422, { detail: 'cutoff: must be in 1970 or later' }]);
    expect((await order({ cutoff: '1970-01-01T00:00:00Z' }))[0]).toBe(202);
  });

  it('is 422 for a cutoff that the policy does not allow, naming the latest one', async () => {
    const late = new Date(Date.parse(world.ago(30)) + 1).toISOString();
    expect(await order({ cutoff: late, confirm_rows: 1e6 })).toMatchObject([
      422,
      { errors: [{ path: 'cutoff', message: expect.stringContaining(world.ago(30)) }] },
    ]);
    await nothingWasBegun();
    expect((await order({ cutoff: world.ago(30) }))[0]).toBe(202);
  });

  it('is 422 for figures that are none, and for what it does not know', async () => {
    const bodies = [
      [{ confirm_rows: -1 }, 'confirm_rows: must be 0 or more'],
      [{ confirm_rows: 1.5 }, 'confirm_rows: must be a whole number'],
      [{ confirm_rows: '9' }, 'confirm_rows: must be a number, not text'],
      [{ cutoff: 'yesterday' }, expect.stringMatching(/^cutoff: must be a time in ISO 8601/)],
      [{ all: true }, 'unknown member "all"'],
    ];
    for (const [body, detail] of bodies) expect(await order(body)).toMatchObject([422, { detail }]);
    await nothingWasBegun();
  });

  it('needs no body', async () => {
    expect((await world.ask('POST', '/api/retention/runs')).status).toBe(202);
    const document = (await (await world.ask('GET', '/api/openapi.json')).json()) as Body;
    expect(document).toMatchObject({
      paths: { '/api/retention/runs': { post: { requestBody: { required: false } } } },
    });
  });

  it('is 503 when the core does not say what it keeps: what only its files say is no order to delete', async () => {
    world.retention.files.policy = { ...KEEP_ALL, cot: 1 };
    const { coreRetention } = world.deps;
    coreRetention.policy = async () => {
      throw new AppError('unavailable', 'The core did not answer in time');
    };
    expect(await order()).toMatchObject([
      503,
      { code: 'unavailable', detail: expect.stringMatching(/did not answer/) },
    ]);
    await nothingWasBegun();
    expect(retentionRecords()).toEqual([]);
  });

  it('is 409 while a job is open, and names it', async () => {
    const id = await world.ordered();
    expect(await order()).toMatchObject([409, { code: 'conflict', detail: expect.stringContaining(id) }]);
    await world.step();
    expect(await order()).toMatchObject([409, { code: 'conflict', detail: expect.stringContaining(id) }]);
  });

  it('is 409 while the core runs by its schedule', async () => {
    world.retention.runs = [scheduled({ state: 'running', finishedAt: null })];
    expect(await order()).toMatchObject([
      409,
      { code: 'conflict', detail: expect.stringMatching(/scheduled run has been in progress at the core since /) },
    ]);
    expect((await world.deps.opsJobs.list({}, 0, 9)).count).toBe(0);
  });

  it('lets one of two win that are sent at once, and the audit log says so of both', async () => {
    const answers = await Promise.all([order(), order()]);
    expect(answers.map(([status]) => status)).toEqual(expect.arrayContaining([202, 409]));
    const failed = retentionRecords().filter(({ result }) => result === 'failed');
    const intents = retentionRecords().filter(({ phase }) => phase === 'intent');
    expect(failed.length).toBe(intents.length - 1);
  });

  it('is 409 at a core that cannot begin one, with its next run by schedule', async () => {
    world.deps.settings = { ...world.deps.settings, CORE_RETENTION_UNIT: 'seconds' };
    Object.assign(world.retention, { tellsRuns: false, schedule: '0 0 3 * * *' });
    Object.assign(world.retention.policy, { cot: 30 * 86_400, geochat: null });
    const requests: unknown[][] = [];
    world.deps.schedules = {
      fault: () => undefined,
      next: (...given) => {
        requests.push(given);
        return [new Date('2026-03-05T03:00:00.000Z')];
      },
    };
    expect(await order()).toMatchObject([
      409,
      {
        code: 'not_supported',
        detail: expect.stringContaining('Its next scheduled run is at 2026-03-05T03:00:00.000Z (0 0 3 * * *, UTC).'),
      },
    ]);
    expect(requests).toEqual([['0 0 3 * * *', 'spring', 'UTC', world.around.now, 1]]);
    world.deps.schedules = { fault: () => undefined, next: () => [] };
    world.retention.schedule = '-';
    expect(await order()).toMatchObject([409, { detail: expect.stringContaining('no schedule') }]);
    await nothingWasBegun();
  });

  it('succeeds at once when no type has days, and says that nothing was deleted', async () => {
    world.retention.policy = { ...KEEP_ALL };
    const [status, job] = await order({ confirm_rows: 0 });
    expect([status, job]).toMatchObject([
      202,
      { state: 'succeeded', progress: 1, log: [expect.stringContaining('no days are set')], result: { rows: {} } },
    ]);
    expect(world.retention.runs).toEqual([]);
    expect(retentionRecords()).toMatchObject([{ phase: 'intent' }, { phase: 'outcome', result: 'ok', intent: 1 }]);
  });

  it('is 409 when it is not known what the core counts', async () => {
    world = await retentionWorld({});
    expect(await order()).toMatchObject([409, { detail: expect.stringContaining('CORE_RETENTION_UNIT') }]);
    await nothingWasBegun();
  });

  it('is 503 while the core, its database or the audit log is away: nothing is begun', async () => {
    world.retention.mood = 'down';
    expect((await order())[0]).toBe(503);
    world.retention.mood = 'up';
    world.deps.audit.mood = 'away';
    expect((await order())[0]).toBe(503);
    await nothingWasBegun();
  });

  it('is for administrators', async () => {
    expect((await world.ask('POST', '/api/retention/runs', {}, VIEWER)).status).toBe(403);
    await nothingWasBegun();
  });

  it('is not for an administrator who was put out while the rows were counted', async () => {
    const { deps } = world;
    await world.person('evan', ['stack_admin']);
    const token = { name: 'x', scope: 'admin', owner: 'evan', expiresAt: '2030-01-01T00:00:00.000Z' } as const;
    const headers = { authorization: `Bearer ${(await deps.signIns.createToken(token)).text}` };
    const putBack = standIn(deps.retentionFacts, 'expired', (real) => async (question) => {
      Object.assign(deps.directory.people.get('evan') ?? {}, { active: false });
      deps.signIns.endAllOf('evan');
      await deps.authenticator.forget('evan');
      return real(question);
    });
    expect((await world.ask('POST', '/api/retention/runs', {}, headers)).status).toBe(401);
    await nothingWasBegun();
    expect(retentionRecords()).toEqual([]);
    putBack();
    expect((await order())[0]).toBe(202);
  });
});

describe('GET /api/retention/runs', () => {
  it('shows runs of the core newest first, those of its schedule too', async () => {
    const older = scheduled({ id: 'nightly-0', startedAt: world.ago(1.5), finishedAt: world.ago(1.4), bytes: null });
    world.retention.runs = [scheduled(), older];
    expect(await runs()).toEqual({
      results: [
        {
          id: 'nightly-1',
          source: 'core',
          trigger: 'schedule',
          state: 'done',
          started_at: world.ago(0.5),
          finished_at: world.ago(0.4),
          limits: { cot: world.ago(30.5) },
          rows: { cot: 12 },
          included: { cot: 0, files: 0 },
          expected: 12,
          bytes: 12_000,
          error: null,
          complete: true,
        },
        expect.objectContaining({ id: 'nightly-0', bytes: null }),
      ],
      count: 2,
      page: 1,
      page_size: 50,
      up_to_date: true,
    });
    expect(await runs('?page=2&page_size=1')).toMatchObject({ results: [{ id: 'nightly-0' }], count: 2 });
    expect(await runs('?page=9')).toMatchObject({ results: [], count: 2 });
  });

  it('shows what is known while the core is away, and says that there may be more', async () => {
    world.retention.runs = [scheduled()];
    await runs();
    world.retention.mood = 'down';
    expect(await runs()).toMatchObject({ results: [{ id: 'nightly-1' }], up_to_date: false });
  });

  it('waits a second for a core that does not answer, and no longer', async () => {
    world.deps.coreRetention.runs = () => new Promise(() => undefined);
    const began = performance.now();
    expect(await runs()).toMatchObject({ results: [], up_to_date: false });
    expect(performance.now() - began).toBeLessThan(3000);
  });

  it('shows of a release what its log says, labelled as incomplete', async () => {
    Object.assign(world.retention, { tellsRuns: false, schedule: DEFAULT_SCHEDULE });
    expect(await runs()).toMatchObject({ results: [], up_to_date: false });
    const line = (time: string, logger: string, text: string) =>
      `2026-03-04-${time} [x] INFO t.s.r.${logger} - ${text}`;
    world.retention.log = [
      line('03:00:00.012', 's.ScheduledRetentionService', ' Reaper Service Running '),
      line('03:00:02.000', 'service.LocalQueryService', ' deleteCotByTtl, Number of rows deleted 7'),
    ];
    expect(await runs()).toMatchObject({
      results: [
        {
          id: 'log-2026-03-04T03:00:00.012Z',
          source: 'log',
          state: 'done',
          finished_at: null,
          limits: {},
          rows: { cot: 7 },
          expected: null,
          bytes: null,
          complete: false,
        },
      ],
      up_to_date: true,
    });
  });
});
