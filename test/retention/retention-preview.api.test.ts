// GET /api/retention/preview: what a run would delete, within a second whatever hangs.

import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { KEEP_ALL, type RetentionUnit } from '@holdfast/kit/retention';
import { DAY_MS } from '@holdfast/kit/time';
import type { RetentionRun } from '../../shared/retention/port.ts';
import { VIEWER } from '../http/fake-deps.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

type Body = Record<string, unknown>;
const PATH = '/api/retention/preview';
/** A second, for a machine that does other things too. */
const SECOND_MS = 1_200;

let world: PeopleWorld;
async function begin(unit: RetentionUnit | undefined = 'days'): Promise<void> {
  world = await peopleWorld();
  world.deps.settings = { ...world.deps.settings, CORE_RETENTION_UNIT: unit };
}
beforeEach(() => begin());

async function ask(query = '', headers = VIEWER): Promise<[number, Body]> {
  const response = await world.ask('GET', `${PATH}${query}`, undefined, headers);
  expect(response.headers.get('cache-control')).toBe('no-store');
  return [response.status, (await response.json()) as Body];
}
const daysAgo = (days: number): string => new Date(world.around.now.getTime() - days * DAY_MS).toISOString();
/** Events of each of those days, as they were counted: how long ago, and how many. */
async function keepDays(...counts: [ago: number, rows: number][]): Promise<void> {
  const days = counts.map(([ago, rows]) => ({ day: daysAgo(ago).slice(0, 10), rows }));
  await world.deps.retentionHistory.keepDays('cot', '2000-01-01', '2030-01-01', days);
}
const never = <T>(): Promise<T> => new Promise<T>(() => undefined);

describe('GET /api/retention/preview', () => {
  beforeEach(() => {
    world.deps.retention.rows = {
      cot: [10, 31, 40, 50].map(daysAgo),
      geochat: [100, 200].map(daysAgo),
      files: [5].map(daysAgo),
      missionpackages: [],
      missions: [400].map(daysAgo),
    };
    world.deps.retention.withMission = { cot: 3, files: 2 };
    Object.assign(world.deps.retention.policy, { cot: 30, missions: 365 });
  });

  it('is of the policy in force', async () => {
    const none = { cot: 0, files: 0 };
    expect(await ask()).toEqual([
      200,
      {
        cutoff: daysAgo(30),
        rows: 9,
        exact: true,
        types: {
          cot: {
            limit: daysAgo(30),
            rows: 3,
            exact: true,
            included: none,
            bytes: 3_000,
            oldest: daysAgo(50),
            newest: daysAgo(31),
            estimated_seconds: 1,
          },
          missions: {
            limit: daysAgo(365),
            rows: 1,
            exact: true,
            included: { cot: 3, files: 2 },
            bytes: 1_000,
            oldest: daysAgo(400),
            newest: daysAgo(400),
            estimated_seconds: 1,
          },
        },
        unit: 'days',
        notes: [],
      },
    ]);
  });

  it('with days is of exactly the types that are named', async () => {
    const [, body] = await ask('?geochat=150&files=90');
    expect(body).toMatchObject({ rows: 1, types: { geochat: { rows: 1, limit: daysAgo(150) }, files: { rows: 0 } } });
    expect(Object.keys(body['types'] as object)).toEqual(['geochat', 'files']);
  });

  it('with a cutoff limits the type with the fewest days there, and the others as much earlier', async () => {
    const [, body] = await ask(`?cot=30&geochat=90&cutoff=${daysAgo(45)}`);
    expect(body).toMatchObject({
      cutoff: daysAgo(45),
      types: { cot: { limit: daysAgo(45), rows: 1 }, geochat: { limit: daysAgo(105), rows: 1 } },
    });
  });

  it('deletes nothing where nothing is set', async () => {
    world.deps.retention.policy = { ...KEEP_ALL };
    expect((await ask())[1]).toMatchObject({
      rows: 0,
      exact: true,
      types: {},
      notes: ['No days are set, so a run deletes nothing.'],
    });
  });

  it('marks estimates, which come from the rows per day', async () => {
    world.deps.retention.isSlow = true;
    await keepDays([60, 1_000_000], [1, 5]);
    const [, body] = await ask('?cot=30');
    expect(body).toMatchObject({
      rows: 1_000_000,
      exact: false,
      types: { cot: { exact: false, rows: 1_000_000, estimated_seconds: 200 } },
      notes: [expect.stringContaining('are estimates')],
    });
  });

  it('takes no rows per day that were not yet counted up to the limit: the database knows better', async () => {
    world.deps.retention.isSlow = true;
    const guess = (await ask('?cot=30'))[1]['rows'];
    await keepDays([60, 1_000_000], [31, 1_000_000]);
    expect((await ask('?cot=30'))[1]).toMatchObject({ rows: guess, exact: false });
    await keepDays([60, 1_000_000], [31, 1_000_000], [30, 0]);
    expect((await ask('?cot=30'))[1]).toMatchObject({ rows: 2_000_000, exact: false });
  });

  it('takes the time from the last runs of the type', async () => {
    world.deps.retention.rows.cot = Array.from({ length: 4_000 }, () => daysAgo(40));
    const run: RetentionRun = {
      id: 'r',
      source: 'core',
      trigger: 'schedule',
      state: 'done',
      startedAt: '2026-03-04T03:00:00.000Z',
      finishedAt: '2026-03-04T03:01:40.000Z',
      limits: {},
      rows: { cot: 2_000 },
      included: { cot: 0, files: 0 },
      expected: null,
      bytes: null,
      error: null,
    };
    await world.deps.retentionHistory.keepRuns([run]);
    expect((await ask('?cot=30'))[1]).toMatchObject({ types: { cot: { rows: 4_000, estimated_seconds: 200 } } });
  });

  it('says that a release ignores missionpackages, and takes no more days than 32 bits of seconds', async () => {
    await begin('seconds');
    expect((await ask('?missionpackages=30'))[1]['notes']).toEqual([
      expect.stringContaining('A TAK Server release ignores missionpackages'),
    ]);
    expect(await ask('?cot=24856')).toMatchObject([422, { errors: [{ path: 'cot' }] }]);
    world.deps.retention.policy.cot = 30 * 86_400;
    expect((await ask())[1]).toMatchObject({ unit: 'seconds', cutoff: daysAgo(30) });
  });

  it.each([
    ['cot=0', 'cot', 'from 1 to 36500, not "0"'],
    ['cot=-1', 'cot', 'not "-1"'],
    ['cot=1.5', 'cot', 'not "1.5"'],
    ['geochat=abc', 'geochat', 'not "abc"'],
    ['files=', 'files', 'not ""'],
    ['missions=36501', 'missions', 'not "36501"'],
    ['missions=null', 'missions', 'not "null"'],
    ['cot=%2B3', 'cot', 'not "+3"'],
    ['cot=1e3', 'cot', 'not "1e3"'],
    [`cot=${'9'.repeat(500)}`, 'cot', 'from 1 to 36500'],
    ['cot=1&cot=2', 'cot', 'single text'],
    ['tracks=30', '', 'unknown parameter "tracks"'],
    ['cutoff=yesterday', 'cutoff', 'must be a time in ISO 8601'],
    ['cutoff=1969-12-31', 'cutoff', '1970 or later'],
  ])('refuses ?%s', async (query, path, words) => {
    const [status, problem] = await ask(`?${query}`);
    expect([status, problem['detail']]).toEqual([422, expect.stringContaining(words)]);
    expect((problem['errors'] as { path: string }[])[0]?.path).toBe(path);
    expect(String(problem['detail']).length).toBeLessThan(300);
  });

  it('is 409 without a unit, for what a run deletes depends on the core', async () => {
    await begin(undefined);
    world.deps.settings = { ...world.deps.settings, CORE_RETENTION_UNIT: undefined };
    expect((await ask('?cot=30'))[0]).toBe(409);
  });
});

describe('a preview while something is away', () => {
  const UNAVAILABLE = new AppError('unavailable', 'It is away.');

  it('is 503 when the database of the core is', async () => {
    world.deps.retention.databaseError = UNAVAILABLE;
    expect(await ask('?cot=30')).toMatchObject([503, { detail: 'It is away.' }]);
  });

  it('is that of the files when the core is', async () => {
    world.deps.retention.mood = 'down';
    world.deps.retention.files.policy = { ...KEEP_ALL, cot: 30 };
    expect((await ask())[1]).toMatchObject({
      types: { cot: { rows: 0 } },
      notes: ['The policy was read from the files: The core does not answer'],
    });
    world.deps.retentionFiles.read = () => Promise.reject(UNAVAILABLE);
    expect((await ask())[0]).toBe(503);
  });

  it('says that files may be fewer when their keywords are not known', async () => {
    world.deps.retention.rows.files = [daysAgo(40)];
    world.deps.retention.rows.cot = [daysAgo(40)];
    world.deps.retentionFiles.read = () => Promise.reject(UNAVAILABLE);
    expect((await ask('?files=30&cot=30'))[1]).toMatchObject({
      exact: false,
      types: { files: { rows: 1, exact: false }, cot: { rows: 1, exact: true } },
      notes: [
        expect.stringContaining('so fewer files may be deleted: It is away.'),
        expect.stringContaining('estimates'),
      ],
    });
  });

  it('guesses the time when our own database is', async () => {
    world.deps.retentionHistory.runs = () => Promise.reject(UNAVAILABLE);
    world.deps.retentionHistory.days = () => Promise.reject(UNAVAILABLE);
    const [status, { notes }] = await ask('?cot=30');
    expect([status, notes]).toEqual([200, ['The duration is estimated without the last runs: It is away.']]);
    world.deps.retention.isSlow = true;
    expect((await ask('?cot=30'))[1]['notes']).toContain('Rows of cot per day are unknown: It is away.');
  });
});

describe('a preview while something hangs ends within a second', () => {
  async function timed(query = ''): Promise<[number, Body]> {
    const begun = performance.now();
    const answer = await ask(query);
    expect(performance.now() - begun).toBeLessThan(SECOND_MS);
    return answer;
  }

  it('everything but the figures', async () => {
    const { deps } = world;
    Object.assign(deps.coreRetention, { policy: never, schedule: never });
    Object.assign(deps.retentionHistory, { runs: never, days: never });
    deps.retentionFacts.now = never;
    deps.retention.isSlow = true;
    deps.retention.files.policy = { ...KEEP_ALL, cot: 30 };
    const [status, body] = await timed();
    expect([status, body]).toMatchObject([200, { cutoff: daysAgo(30) }]);
    expect((body['notes'] as string[]).toSorted()).toEqual([
      'Ages are computed with the clock of Holdfast: The database of the core did not answer within 0.2 s.',
      'Figures with "exact": false are estimates. Counting takes too long, or is not possible now.',
      'Rows of cot per day are unknown: Our own database did not answer within 0.9 s.',
      'The duration is estimated without the last runs: Our own database did not answer within 0.9 s.',
      'The policy was read from the files: The core did not answer within 0.2 s.',
    ]);
  });

  it('the disk', async () => {
    world.deps.retentionFiles.read = never;
    expect(await timed('?files=30')).toMatchObject([200, { exact: false }]);
  });

  it('the figures: 503', async () => {
    world.deps.retentionFacts.expired = never;
    expect(await timed('?cot=30')).toMatchObject([
      503,
      { detail: 'The database of the core did not answer within 0.76 s.' },
    ]);
  });

  it('everything: 503', async () => {
    const { deps } = world;
    Object.assign(deps.coreRetention, { policy: never, schedule: never });
    Object.assign(deps.retentionHistory, { runs: never, days: never });
    Object.assign(deps.retentionFacts, { now: never, expired: never });
    deps.retentionFiles.read = never;
    expect((await timed())[0]).toBe(503);
    expect((await timed('?cot=30'))[0]).toBe(503);
  });
});
