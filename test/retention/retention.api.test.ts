// /api/retention: what is in force, and what may be changed.

import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { KEEP_ALL, type RetentionUnit } from '@holdfast/kit/retention';
import { NOBODY, VIEWER } from '../http/fake-deps.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

type Body = Record<string, unknown>;
const DAYS = { CORE_RETENTION_UNIT: 'days' };
const SECONDS = { CORE_RETENTION_UNIT: 'seconds' };
const DAY_S = 86_400;
const DAY_MS = DAY_S * 1000;

let world: PeopleWorld;
/** The core of a light layer is what its variables say. */
async function begin(values: Record<string, string> = DAYS): Promise<void> {
  const { CORE_RETENTION_UNIT: unit, ...others } = values;
  world = await peopleWorld({ ...DAYS, ...others });
  world.deps.settings = { ...world.deps.settings, CORE_RETENTION_UNIT: unit as RetentionUnit | undefined };
}
beforeEach(() => begin());

async function ask(
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
): Promise<[number, Body]> {
  const response = await world.ask(method, path, body, headers);
  expect(response.headers.get('cache-control')).toBe('no-store');
  return [response.status, (await response.json()) as Body];
}
const read = async (): Promise<Body> => (await ask('GET', '/api/retention', undefined, VIEWER))[1];
const put = (body: unknown): Promise<[number, Body]> => ask('PUT', '/api/retention', body);
const notes = (body: Body): string => (body['notes'] as string[]).join('\n');
const daysAgo = (days: number): string => new Date(world.around.now.getTime() - days * DAY_MS).toISOString();

describe('GET /api/retention', () => {
  it('shows a core that keeps everything', async () => {
    expect(await ask('GET', '/api/retention', undefined, VIEWER)).toEqual([
      200,
      {
        policy: KEEP_ALL,
        source: {
          cot: 'none',
          geochat: 'none',
          files: 'none',
          missionpackages: 'none',
          missions: 'none',
          cron: 'none',
        },
        cron: '-',
        dialect: 'quartz',
        time_zone: 'UTC',
        unit: 'days',
        next_runs: [],
        mission_archiving: {
          cron: '-',
          time_to_archive_after_no_activity_days: 365,
          remove_from_archive_after_days: 1065,
          archive_mission_by_no_content_activity: false,
          archive_mission_by_no_subscription_activity: false,
        },
        in_force: 'core',
        problem: null,
        notes: [],
      },
    ]);
  });

  it('says where each key comes from, and when the next five runs are', async () => {
    await begin({ ...DAYS, COT_RETENTION_DAYS: '30' });
    Object.assign(world.deps.retention.policy, { cot: 30, files: 90 });
    world.deps.retention.schedule = '0 0 3 * * ?';
    expect(await read()).toMatchObject({
      policy: { ...KEEP_ALL, cot: 30, files: 90 },
      source: { cot: 'env', geochat: 'none', files: 'file', cron: 'default' },
      next_runs: [5, 6, 7, 8, 9].map((day) => `2026-03-0${day}T03:00:00.000Z`),
      notes: [],
    });
    world.deps.retention.schedule = '0 0 4 * * ?';
    expect(await read()).toMatchObject({ source: { cron: 'file' } });
  });

  it('shows days also where the core counts seconds, and its own schedule with how it is to be read', async () => {
    await begin({ ...SECONDS, RETENTION_CRON: '0 30 4 ? * 2-6' });
    Object.assign(world.deps.retention.policy, { cot: 30 * DAY_S, missions: DAY_S / 2 });
    world.deps.retention.schedule = '0 30 4 ? * 1-5';
    expect(await read()).toMatchObject({
      unit: 'seconds',
      dialect: 'spring',
      policy: { cot: 30, missions: 0.5 },
      cron: '0 30 4 ? * 1-5',
      source: { cron: 'env' },
      notes: [],
    });
  });

  it('says what is odd: days without a schedule, a schedule without days, what a release ignores', async () => {
    await begin(SECONDS);
    world.deps.retention.policy.missionpackages = 7 * DAY_S;
    const odd = notes(await read());
    expect(odd).toContain('Days are set, but no schedule, so nothing is deleted');
    expect(odd).toContain('A TAK Server release ignores missionpackages');
    world.deps.retention.policy.missionpackages = null;
    world.deps.retention.schedule = '0 0 3 * * ?';
    expect((await read())['notes']).toEqual(['A schedule is set, but no days, so its runs delete nothing.']);
    world.deps.retention.schedule = 'whenever';
    expect(notes(await read())).toContain('compute the next runs of the schedule "whenever", because it has 1 fields');
  });

  it('says where something else is in force than a variable says', async () => {
    await begin({ ...DAYS, COT_RETENTION_DAYS: '30', GEOCHAT_RETENTION_DAYS: '9', RETENTION_CRON: '0 0 3 * * ?' });
    Object.assign(world.deps.retention.policy, { cot: 60 });
    world.deps.retention.schedule = '0 0 5 * * ?';
    expect((await read())['notes']).toEqual([
      'COT_RETENTION_DAYS is 30, but 60 is in force; it is set again within two minutes.',
      'GEOCHAT_RETENTION_DAYS is 9, but null is in force; it is set again within two minutes.',
      'RETENTION_CRON is "0 0 3 * * ?", but "0 0 5 * * ?" is in force; it is set again within two minutes.',
    ]);
  });

  it('shows what is in the files while the core is away, and why', async () => {
    Object.assign(world.deps.retention.files, { policy: { ...KEEP_ALL, cot: 14 }, schedule: '0 0 2 * * ?' });
    world.deps.retention.mood = 'down';
    expect(await read()).toMatchObject({
      policy: { cot: 14 },
      cron: '0 0 2 * * ?',
      in_force: 'files',
      problem: 'The core does not answer',
      mission_archiving: null,
      notes: [],
    });
  });

  it('is 503 with both reasons when neither the core nor its files can be read', async () => {
    world.deps.retention.mood = 'down';
    world.deps.retentionFiles.read = () => Promise.reject(new AppError('invalid', 'retention-policy.yml is broken'));
    const [status, { detail }] = await ask('GET', '/api/retention');
    expect([status, detail]).toEqual([
      503,
      "The core does not answer. Couldn't read its files either: retention-policy.yml is broken",
    ]);
  });

  it('goes without the archiving of missions where only that cannot be read', async () => {
    world.deps.coreRetention.missionArchiving = () => Promise.reject(new AppError('upstream', 'no such page.'));
    expect(await read()).toMatchObject({
      mission_archiving: null,
      problem: null,
      notes: ["Couldn't read when missions are archived: no such page."],
    });
  });

  it('guesses no unit: without one it says nothing of days that are set', async () => {
    await begin({});
    expect(await read()).toMatchObject({ policy: KEEP_ALL, unit: null, dialect: null, problem: null });
    Object.assign(world.deps.retention.policy, { cot: 30 });
    world.deps.retention.schedule = '0 0 3 * * ?';
    expect(await read()).toMatchObject({
      policy: KEEP_ALL,
      source: { cot: 'file' },
      cron: '0 0 3 * * ?',
      next_runs: [],
      problem: expect.stringContaining('Set CORE_RETENTION_UNIT=days for the embedded core'),
    });
  });
});

describe('PUT /api/retention', () => {
  it('changes what is named, in the unit of the core, and answers with what is in force then', async () => {
    await begin(SECONDS);
    const [status, body] = await put({ policy: { cot: 30, missions: null }, cron: '0 30 4 ? * 2-6' });
    expect([status, body]).toMatchObject([200, { policy: { ...KEEP_ALL, cot: 30 }, cron: '0 30 4 ? * 1-5' }]);
    expect(world.deps.retention.policy).toEqual({ ...KEEP_ALL, cot: 30 * DAY_S });
    expect(world.deps.retention.schedule).toBe('0 30 4 ? * 1-5');
  });

  it('sets the default schedule with the first days, and says so', async () => {
    const [, body] = await put({ policy: { files: 90 } });
    expect(body).toMatchObject({ cron: '0 0 3 * * ?', source: { files: 'file', cron: 'default' } });
    expect(notes(body)).toContain('No schedule was set, so the default schedule was set: 0 0 3 * * ?.');
  });

  it('gives the core a schedule on one line', async () => {
    expect((await put({ cron: ' 0 0  3\n* * ? ' }))[1]).toMatchObject({ cron: '0 0 3 * * ?' });
  });

  it('sets that of RETENTION_CRON instead where there is one', async () => {
    await begin({ ...SECONDS, RETENTION_CRON: '0 0 4 ? * 1' });
    const [, body] = await put({ policy: { files: 90 } });
    expect([body['cron'], notes(body)]).toEqual(['0 0 4 ? * 0', expect.stringContaining('the one of RETENTION_CRON')]);
  });

  it('sets none when none was asked for, or nothing is deleted', async () => {
    expect((await put({ policy: { files: 90 }, cron: '-' }))[1]).toMatchObject({ cron: '-' });
    await begin();
    expect((await put({ policy: { files: null }, cron: '0 0 5 * * ?' }))[1]).toMatchObject({ cron: '0 0 5 * * ?' });
    expect((await put({ cron: ' - ' }))[1]).toMatchObject({ cron: '-' });
    expect((await put({ policy: { files: null } }))[1]).toMatchObject({
      cron: '-',
      notes: ['These values were already in force.'],
    });
  });

  it('says how many rows the next run deletes, and when: of a policy that keeps less', async () => {
    world.deps.retention.rows.cot = [10, 29.95, 31, 40, 50].map(daysAgo);
    const [, { notes: reported }] = await put({ policy: { cot: 30 } });
    // At 3 o'clock of the next day what is 29.95 days old now is older than 30 days.
    expect(reported).toContain('The next run, at 2026-03-05 03:00:00 UTC, will delete 4 rows of the current ones.');
    const [, longer] = await put({ policy: { cot: 60 } });
    expect(longer['notes']).toEqual([]);
    const [, never] = await put({ policy: { cot: 39 }, cron: '-' });
    expect(notes(never)).toContain('A run would delete 2 rows, but no schedule is set, so nothing runs.');
    const [, again] = await put({ cron: '0 0 3 * * ?' });
    expect(notes(again)).toContain('will delete 2 rows of the');
    world.deps.retention.databaseError = new AppError('unavailable', 'The database is away.');
    const [status, unknown] = await put({ policy: { cot: 20 } });
    expect([status, notes(unknown)]).toEqual([
      200,
      expect.stringContaining("Couldn't count the rows that the next run will delete: The database is away."),
    ]);
  });

  it('marks an estimate as one', async () => {
    world.deps.retention.rows.cot = Array.from({ length: 100 }, () => daysAgo(50));
    world.deps.retention.isSlow = true;
    expect(notes((await put({ policy: { cot: 30 } }))[1])).toContain('will delete about 110 rows');
  });

  it.each([
    [{}, '', 'Nothing to change.'],
    [{ policy: {} }, '', 'Nothing to change.'],
    [{ policy: { cot: 0 } }, 'policy.cot', 'from 1 to 36500, not 0'],
    [{ policy: { cot: -1 } }, 'policy.cot', 'from 1 to 36500, not -1'],
    [{ policy: { cot: 1.5 } }, 'policy.cot', 'from 1 to 36500, not 1.5'],
    [{ policy: { cot: 36_501 } }, 'policy.cot', 'from 1 to 36500, not 36501'],
    [{ policy: { cot: '30' } }, 'policy.cot', 'from 1 to 36500, or null to keep forever, not "30"'],
    [{ policy: { cot: true } }, 'policy.cot', 'not true'],
    [{ policy: { tracks: 1 } }, 'policy', 'unknown type "tracks"'],
    [{ policy: 30 }, 'policy', 'must be a JSON object'],
    [{ policy: { cot: 1 }, unit: 'days' }, '', 'unknown member "unit"'],
    [{ cron: '0 0 3 * * 1' }, 'cron', 'exactly one of day-of-month and day-of-week must be ?'],
    [{ cron: '' }, 'cron', 'must be a Quartz schedule'],
    [{ cron: 3 }, 'cron', 'must be text'],
    [{ cron: 'x'.repeat(201) }, 'cron', 'at most 200 characters'],
  ])('refuses %j', async (body, path, words) => {
    const [status, problem] = await put(body);
    expect([status, problem['code']]).toEqual([422, 'invalid']);
    expect(problem['detail']).toContain(words);
    if (path !== '') expect(problem['errors']).toMatchObject([{ path }]);
    expect(world.deps.retention).toMatchObject({ policy: KEEP_ALL, schedule: '-' });
    expect(world.deps.audit.records).toEqual([]);
  });

  it('names everything that is wrong at once', async () => {
    const [, { errors }] = await put({ policy: { cot: 0, files: 2.5 }, cron: 'x' });
    expect((errors as { path: string }[]).map(({ path }) => path)).toEqual(['policy.cot', 'policy.files', 'cron']);
  });

  it('takes no more days than 32 bits of seconds, and no schedule that Spring cannot say', async () => {
    await begin(SECONDS);
    expect(await put({ policy: { cot: 24_856 } })).toMatchObject([422, { detail: expect.stringContaining('24855') }]);
    expect((await put({ policy: { cot: 24_855 } }))[0]).toBe(200);
    expect(await put({ cron: '0 0 3 * * ? 2030' })).toMatchObject([422, { errors: [{ path: 'cron' }] }]);
  });

  it.each([
    [{ policy: { cot: 10 } }, 'policy.cot is set by the variable COT_RETENTION_DAYS (30)'],
    [{ policy: { cot: null } }, 'COT_RETENTION_DAYS'],
    [{ policy: { files: 5, geochat: 10 } }, 'GEOCHAT_RETENTION_DAYS (90)'],
    [{ cron: '0 0 4 * * ?' }, 'cron is set by the variable RETENTION_CRON (0 0 3 * * ?)'],
  ])('is 409 for what a variable sets, with how it is withdrawn: %j', async (body, words) => {
    await begin({ ...DAYS, COT_RETENTION_DAYS: '30', GEOCHAT_RETENTION_DAYS: '90', RETENTION_CRON: '0 0 3 * * ?' });
    const [status, problem] = await put(body);
    expect([status, problem['code'], problem['detail']]).toEqual([409, 'conflict', expect.stringContaining(words)]);
    expect(problem['detail']).toMatch(/remove it and restart to set it here\.$/);
    expect(world.deps.retention.policy).toEqual(KEEP_ALL);
  });

  it('is 409 for no schedule while a variable sets days, for each start would set one', async () => {
    await begin({ ...DAYS, GEOCHAT_RETENTION_DAYS: '90' });
    expect(await put({ cron: '-' })).toMatchObject([
      409,
      { detail: expect.stringContaining('GEOCHAT_RETENTION_DAYS (90) is set: each start would set a schedule') },
    ]);
    expect((await put({ cron: '0 0 4 * * ?', policy: { cot: 5 } }))[0]).toBe(200);
  });

  it('is 409 without a unit', async () => {
    await begin({});
    for (const body of [{ policy: { cot: 30 } }, { cron: '-' }])
      expect(await put(body)).toMatchObject([409, { detail: expect.stringContaining('CORE_RETENTION_UNIT=days') }]);
  });

  it('is 503 while the core is away: nothing is changed, not even in its files', async () => {
    world.deps.retention.mood = 'down';
    expect((await put({ policy: { cot: 30 } }))[0]).toBe(503);
    expect(world.deps.retention.files.policy).toEqual(KEEP_ALL);
    expect(world.deps.audit.records).toEqual([]);
  });

  it('is audited with what was before and what is then, and measured anew', async () => {
    const forgotten: string[] = [];
    world.deps.health.forget = (module) => void forgotten.push(module);
    world.deps.retention.policy.cot = 60;
    await put({ policy: { cot: 30, files: 90 } });
    const [intent, outcome] = world.deps.audit.records;
    expect(intent).toMatchObject({ actor: 'webadmin', action: 'retention.change', target: 'retention' });
    expect(JSON.parse(intent?.detail ?? '')).toEqual({
      unit: 'days',
      old: { policy: { cot: 60, files: null }, cron: '-' },
      new: { policy: { cot: 30, files: 90 }, cron: '0 0 3 * * ?' },
    });
    expect(outcome).toMatchObject({ phase: 'outcome', result: 'ok' });
    expect(forgotten).toEqual(['retention']);
  });

  it('is for administrators', async () => {
    for (const headers of [VIEWER, NOBODY])
      expect((await ask('PUT', '/api/retention', { cron: '-' }, headers))[0]).toBe(403);
  });
});
