// What the module of retention says when it cannot be sure: units and values that do not agree, rows that make a release fail, and
// systems that do not answer.

import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { DEFAULT_SCHEDULE, KEEP_ALL, NEVER, type RetentionUnit } from '@holdfast/kit/retention';
import type { CoreRetentionPolicy } from '../../shared/core/port.ts';
import { retention } from '../../shared/health/modules/retention.ts';
import type { Measurement } from '../../shared/health/port.ts';
import type { RetentionRun } from '../../shared/retention/port.ts';
import { DEFAULT_THRESHOLDS } from '../../shared/settings/status.ts';
import { fakeMonitored, history, NOW, type World, world } from '../health/fake-monitored.ts';

const DAY = 86_400;
let around: World;
beforeEach(() => {
  around = world();
});

const measure = (failuresInRow = 0): Promise<Measurement> =>
  retention.measure(fakeMonitored(around), DEFAULT_THRESHOLDS, history({ failuresInRow }));

/** At the core and in its files, as it counts; in force since now. */
function inForce(values: Partial<CoreRetentionPolicy>, schedule: string, unit: RetentionUnit): void {
  around.wanted.retention.unit = unit;
  const policy = { ...KEEP_ALL, ...values };
  Object.assign(around.retention, { policy, schedule, unit, tellsRuns: unit === 'days' });
  around.retention.files = { policy: { ...policy }, exemptKeywords: [], schedule };
}

const embedded = (values: Partial<CoreRetentionPolicy>, schedule = DEFAULT_SCHEDULE): void =>
  inForce(values, schedule, 'days');
const release = (values: Partial<CoreRetentionPolicy>, schedule = DEFAULT_SCHEDULE): void =>
  inForce(values, schedule, 'seconds');
const criticals = async (): Promise<string[]> => {
  const { status, details } = await measure();
  return status === 'critical' ? details : [];
};

describe('a key that a variable owns', () => {
  it.each([
    ['days', 30, []],
    ['days', 90, ['the core keeps cot 90 days, but COT_RETENTION_DAYS says 30 days.']],
    ['days', null, ['the core keeps cot forever, but COT_RETENTION_DAYS says 30 days.']],
    ['seconds', 30 * DAY, []],
    [
      'seconds',
      90 * DAY,
      ['the core keeps cot 7776000 seconds (90 days), but COT_RETENTION_DAYS says 2592000 seconds (30 days).'],
    ],
  ] as const)('in %s, with %s at the core, is judged so', async (unit, cot, expected) => {
    inForce({ cot }, DEFAULT_SCHEDULE, unit);
    around.wanted.retention.cot = 30;
    expect(await criticals()).toEqual(expected);
  });

  it('that is another than at the core is shown with both', async () => {
    embedded({ geochat: 7 });
    around.wanted.retention.geochat = 8;
    expect((await measure()).data).toMatchObject({
      mismatch_count: 1,
      mismatches: [{ name: 'geochat', kind: 'variable', core: '7 days', wanted: '8 days' }],
    });
  });

  it.each([
    ['days', '0 0 3 ? * 1', '0 0 3 ? * SUN', 0],
    ['days', '0 0 3 ? * 2', '0 0 3 ? * SUN', 1],
    ['days', NEVER, '0 0 3 * * ?', 1],
    ['days', NEVER, NEVER, 0],
    ['seconds', '0 0 3 * * 7', '0 0 3 ? * 1', 0],
    ['seconds', '0 0 3 ? * 1', '0 0 3 ? * 1', 1],
  ] as const)('RETENTION_CRON in %s: %s at the core for %s', async (unit, schedule, cron, count) => {
    inForce({ cot: unit === 'days' ? 30 : 30 * DAY }, schedule, unit);
    around.wanted.retention.cron = cron;
    const found = await criticals();
    expect(found.slice(0, 1)).toEqual(count === 0 ? [] : [expect.stringContaining(`but RETENTION_CRON says ${cron}`)]);
  });
});

describe('a schedule of which nobody can tell when it fires', () => {
  it('is a note: a run that is overdue would not be seen', async () => {
    embedded({ cot: 30 }, '0 0 3 1 1 ? 2020');
    expect(await measure()).toMatchObject({
      status: 'note',
      message: expect.stringMatching(/^couldn't compute the next run of the schedule 0 0 3 1 1 \? 2020/),
    });
  });
});

describe('a file that says something else than the core has in force', () => {
  it('is critical, also where the core keeps everything: it counts from the next start on', async () => {
    embedded({}, NEVER);
    around.retention.files.policy.missions = 3;
    expect(await measure()).toMatchObject({
      status: 'critical',
      message:
        'the core keeps missions forever, but its file says 3 days: the core reads its files only when it starts.',
      data: { mismatches: [{ name: 'missions', kind: 'file' }] },
    });
  });

  it('is critical for the schedule; blanks and letters of another size are no difference', async () => {
    embedded({ cot: 30 }, '0 0 3 ? * SUN');
    around.retention.files.schedule = ' 0 0 3  ? * sun';
    expect(await criticals()).toEqual([]);
    around.retention.files.schedule = NEVER;
    expect(await criticals()).toEqual([
      "the core's schedule is 0 0 3 ? * SUN, but its file says never (-): the core reads its files only when it starts.",
    ]);
  });

  it('is said once where a variable says so already', async () => {
    embedded({ cot: 90 });
    around.wanted.retention.cot = 30;
    around.retention.files.policy.cot = 30;
    expect((await measure()).data['mismatch_count']).toBe(1);
  });

  it('is none when it was only being written', async () => {
    embedded({ cot: 30 });
    let reads = 0;
    const contents = structuredClone(around.retention.files);
    around.retention.retentionFiles.read = async () => {
      reads += 1;
      return reads === 1 ? { ...contents, policy: { ...contents.policy, cot: 60 } } : contents;
    };
    expect((await measure()).status).toBe('ok');
  });
});

describe('a value that looks like another unit', () => {
  it.each([
    ['seconds', DAY, []],
    [
      'seconds',
      DAY - 1,
      ['cot is 86399 seconds, which looks like days: rows older than 86399 seconds would be deleted.'],
    ],
    ['seconds', 30, ['cot is 30 seconds, which looks like days: rows older than 30 seconds would be deleted.']],
    ['days', 36_500, []],
    ['days', 2_592_000, ['cot is 2592000 days, which looks like seconds (30 days).']],
  ] as const)('%s, %d at the core', async (unit, cot, expected) => {
    inForce({ cot }, DEFAULT_SCHEDULE, unit);
    expect(await criticals()).toEqual(expected);
  });

  it('in days at a core that is a release is critical, whatever it is', async () => {
    embedded({ cot: 30, files: null });
    around.retention.tellsRuns = false;
    expect(await criticals()).toEqual([
      'CORE_RETENTION_UNIT is days, but this core is a TAK Server release and keeps cot 30 seconds (0.0003 days).',
    ]);
  });

  it('in the files is critical, too, while the core does not answer: it would start with it', async () => {
    release({ geochat: 90 });
    around.retention.mood = 'down';
    expect(await criticals()).toEqual([
      'geochat is 90 seconds, which looks like days: rows older than 90 seconds would be deleted.',
      expect.stringContaining("couldn't read the core's retention policy"),
    ]);
  });
});

describe('without CORE_RETENTION_UNIT', () => {
  beforeEach(() => {
    around.wanted.retention.unit = undefined;
  });

  it('nothing set up is ok', async () =>
    expect(await measure()).toMatchObject({
      status: 'ok',
      message: 'Nothing is deleted: no days are set.',
      data: { unit: null, policy: null, keeps_everything: true },
    }));

  it.each(['core', 'files'])('values of the %s are a warning, and nothing of them is judged', async (where) => {
    const policy = { ...KEEP_ALL, cot: 30 };
    if (where === 'core') around.retention.policy = policy;
    else around.retention.files.policy = policy;
    expect(await measure()).toMatchObject({
      status: 'warning',
      message: expect.stringMatching(/CORE_RETENTION_UNIT is not: set it to seconds for a TAK Server release/),
      data: { policy: null, overdue_runs: null, mismatch_count: 0, next_run: null },
    });
  });
});

describe('at a TAK Server release', () => {
  const LAST_NIGHT = '2026-03-04T03:00:00.000Z';
  /** As its log tells of one: no limits, no end. */
  const logged = (more: Partial<RetentionRun> = {}): RetentionRun => ({
    id: 'log-1',
    source: 'log',
    trigger: 'schedule',
    state: 'done',
    startedAt: LAST_NIGHT,
    finishedAt: null,
    limits: {},
    rows: {},
    included: { cot: 0, files: 0 },
    expected: null,
    bytes: null,
    error: null,
    ...more,
  });
  async function ran(inForceSince: string, more: Partial<RetentionRun> = {}): Promise<void> {
    release({ cot: 30 * DAY, missions: 30 * DAY });
    const policy = { ...KEEP_ALL, cot: 30, missions: 30 };
    await around.retentionHistory.seenInForce(inForceSince, { policy, schedule: DEFAULT_SCHEDULE });
    await around.retentionHistory.keepRuns([logged(more)]);
  }

  it('days count in seconds, and runs are those that were read from its log', async () => {
    await ran('2026-02-01T00:00:00.000Z', { rows: { cot: 7 } });
    expect(await measure()).toMatchObject({
      status: 'ok',
      message: expect.stringMatching(
        /^Kept: cot 30 days, missions 30 days\. Last run 2026-03-04 03:00:00 UTC \(7 rows\)/,
      ),
      data: { overdue_runs: 0, last_run: { state: 'done', finished_at: null } },
    });
    around.now = new Date('2026-03-05T05:00:00.000Z');
    expect((await measure()).data['overdue_runs']).toBe(1);
  });

  it.each([
    ['2026-03-04T08:59:59.000Z', '2026-02-01T00:00:00.000Z', 'cot', []],
    ['2026-03-04T09:00:00.000Z', '2026-02-01T00:00:00.000Z', 'cot', ['cot']],
    ['2026-03-04T09:00:00.000Z', '2026-03-04T03:00:01.000Z', 'cot', []],
    ['2026-03-04T09:00:00.000Z', '2026-02-01T00:00:00.000Z', 'missions', []],
  ] as const)(
    'rows that its run left are seen at %s, in force since %s, in %s: %j',
    async (now, since, type, expected) => {
      await ran(since);
      around.retention.rows[type] = ['2026-01-01T00:00:00.000Z'];
      around.now = new Date(now);
      expect((await measure()).data['rows_over_age']).toEqual(expected);
    },
  );

  it.each([
    [{ images: 2, thumbnails: 1, links: 0 }, 'warning'],
    [{ images: 0, thumbnails: 0, links: 1 }, 'warning'],
    [{ images: 0, thumbnails: 0, links: 0 }, 'ok'],
  ])('rows that point at doomed events %j are %s', async (references, status) => {
    release({ cot: 30 * DAY });
    around.retention.references = references;
    const { status: found, message, data } = await measure();
    expect([found, data['references']]).toEqual([status, references]);
    if (status === 'warning') expect(message).toMatch(/^the next run will fail: .*cot_image \(\d\)/);
  });

  it('such rows that could not be counted in time are a note, never ok', async () => {
    release({ cot: 30 * DAY });
    around.retention.isSlow = true;
    expect(await measure()).toMatchObject({
      status: 'note',
      message: expect.stringMatching(/^couldn't check cot_image, cot_thumbnail and cot_link in time/),
      data: { references: null, not_in_time: ['references'] },
    });
  });

  it('such rows do not matter where only files have days, nor at the embedded core', async () => {
    release({ files: 30 * DAY });
    around.retention.references = { images: 2, thumbnails: 1, links: 0 };
    expect(await measure()).toMatchObject({ status: 'ok', data: { references: null } });
    embedded({ cot: 30 });
    expect(await measure()).toMatchObject({ status: 'ok', data: { references: null } });
  });

  it('a value of missionpackages is a note: it is ignored there', async () => {
    release({ cot: 30 * DAY, missionpackages: 30 * DAY });
    expect(await measure()).toMatchObject({
      status: 'note',
      message: expect.stringContaining('missionpackages has days, which a TAK Server release ignores'),
    });
    embedded({ cot: 30, missionpackages: 30 });
    expect((await measure()).status).toBe('ok');
  });
});

describe('what does not answer', () => {
  it.each([
    [0, 'warning'],
    [1, 'critical'],
  ])('the core, after %d times before, is %s, and its files are shown', async (before, status) => {
    embedded({ cot: 30 });
    around.retention.mood = 'down';
    expect(await measure(before)).toMatchObject({
      status,
      message: expect.stringMatching(/^couldn't read the core's retention policy: The core does not answer;/),
      data: { core_answers: false, policy_from: 'files', policy: { cot: 30 }, schedule: DEFAULT_SCHEDULE },
    });
  });

  it('the database of the core is a failure', async () => {
    embedded({ cot: 30 });
    around.retention.databaseError = new AppError('unavailable', "The core's database does not answer");
    expect(await measure()).toMatchObject({
      status: 'warning',
      message: expect.stringMatching(/^couldn't read what a run deletes: The core's database does not answer/),
    });
  });

  it('our own database is a note: overdue runs are left out, and that is said', async () => {
    embedded({ cot: 30 });
    around.retentionHistory.seenInForce = async () => Promise.reject(new AppError('unavailable', 'It is away'));
    expect(await measure()).toMatchObject({
      status: 'note',
      message: "couldn't read earlier runs, so overdue runs go unnoticed: It is away.",
      data: { overdue_runs: null, first_run_rows: null, book_problem: 'It is away' },
    });
  });

  it('the files of the core are a warning', async () => {
    embedded({ cot: 30 });
    around.retention.retentionFiles.read = async () =>
      Promise.reject(new AppError('invalid', 'retention-policy.yml has a line that is no YAML.'));
    expect(await measure()).toMatchObject({
      status: 'warning',
      message: "couldn't read the retention files of the core: retention-policy.yml has a line that is no YAML.",
    });
  });

  it('the runs of a core that has told its policy are a failure', async () => {
    embedded({ cot: 30 });
    around.retention.coreRetention.runs = async () => Promise.reject(new AppError('upstream', 'It answered 500'));
    expect(await measure()).toMatchObject({
      status: 'warning',
      message: expect.stringMatching(/^couldn't read the core's runs: It answered 500/),
      data: { overdue_runs: null },
    });
  });

  it('does not make what is in force look new when it is back', async () => {
    embedded({ cot: 30 });
    await measure();
    around.retention.mood = 'down';
    around.retention.files.policy.cot = 60;
    around.now = new Date(NOW.getTime() + 60_000);
    await measure();
    Object.assign(around.retention, { mood: 'up' });
    around.retention.files.policy.cot = 30;
    expect((await measure()).data['in_force_since']).toBe(NOW.toISOString());
  });
});
