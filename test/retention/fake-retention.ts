// Retention at a core in memory: its files, its policy, its rows, its runs. Change a member to change the world.

import { AppError } from '@holdfast/kit/app-error';
import type { CoreRetentionRun } from '@holdfast/kit/core-wire';
import {
  DEFAULT_SCHEDULE,
  inUnit,
  KEEP_ALL,
  limitsAt,
  NEVER,
  type Retained,
  RETAINED,
  type RetentionLimits,
  type RetentionUnit,
} from '@holdfast/kit/retention';
import type { CoreRetention, CoreRetentionPolicy, MissionArchiving } from '../../shared/core/port.ts';
import type {
  ExpiredReferences,
  ExpiredRows,
  RetentionFacts,
  RetentionFileContents,
  RetentionFiles,
} from '../../shared/retention/port.ts';

export interface FakeRetention {
  coreRetention: CoreRetention;
  retentionFiles: RetentionFiles;
  retentionFacts: RetentionFacts;
  /** `down`: the core does not answer; its files and its tables are there. */
  mood: 'up' | 'down';
  /** What the tables say when they are asked; an error while the database is away. */
  databaseError: Error | undefined;
  unit: RetentionUnit;
  /** What the core has in force, in its unit. */
  policy: CoreRetentionPolicy;
  schedule: string;
  archiving: MissionArchiving;
  /** What its files say; another than what is in force when they were changed by hand. */
  files: RetentionFileContents;
  /** Lines of the log of a release. */
  log: string[] | undefined;
  /** False: as a release, it neither begins a run nor tells of one. */
  tellsRuns: boolean;
  runs: CoreRetentionRun[];
  /** Times (ISO 8601) of the rows of each type that a run may delete. */
  rows: Record<Retained, string[]>;
  /** What goes with each mission that is deleted. */
  withMission: { cot: number; files: number };
  references: ExpiredReferences;
  /** True: looking for rows and counting them takes too long. */
  isSlow: boolean;
  /** Ends the run that is going on: its rows go. */
  finishRun(): void;
  /** As if the core had been killed in the middle of it. */
  interruptRun(): void;
}

const BYTES_PER_ROW = 1_000;

export function fakeRetention(now: () => Date): FakeRetention {
  function reach(): void {
    if (fake.mood === 'down') throw new AppError('unavailable', 'The core does not answer');
  }
  async function table<T>(value: () => T): Promise<T> {
    if (fake.databaseError !== undefined) throw fake.databaseError;
    return value();
  }
  const expiredOf = (type: Retained, limits: RetentionLimits): string[] => {
    const limit = limits[type];
    return limit === undefined ? [] : fake.rows[type].filter((at) => at < limit).toSorted();
  };
  const typesOf = (limits: RetentionLimits): Retained[] => RETAINED.filter((type) => limits[type] !== undefined);
  function endRun(change: Partial<CoreRetentionRun>): void {
    const going = fake.runs.find(({ state }) => state === 'running');
    if (going === undefined) throw new Error('no run is going on');
    Object.assign(going, { finishedAt: now().toISOString(), ...change });
  }

  const fake: FakeRetention = {
    mood: 'up',
    databaseError: undefined,
    unit: 'days',
    policy: { ...KEEP_ALL },
    schedule: NEVER,
    archiving: {
      cron: NEVER,
      timeToArchiveAfterNoActivityDays: 365,
      removeFromArchiveAfterDays: 1065,
      archiveMissionByNoContentActivity: false,
      archiveMissionByNoSubscriptionActivity: false,
    },
    files: { policy: { ...KEEP_ALL }, exemptKeywords: [], schedule: NEVER },
    log: undefined,
    tellsRuns: true,
    runs: [],
    rows: { cot: [], geochat: [], files: [], missionpackages: [], missions: [] },
    withMission: { cot: 0, files: 0 },
    references: { images: 0, thumbnails: 0, links: 0 },
    isSlow: false,

    finishRun() {
      const going = fake.runs.find(({ state }) => state === 'running');
      const limits = going?.limits ?? {};
      const gone = Object.fromEntries(typesOf(limits).map((type) => [type, expiredOf(type, limits).length]));
      for (const type of typesOf(limits))
        fake.rows[type] = fake.rows[type].filter((at) => !expiredOf(type, limits).includes(at));
      const missions = gone['missions'] ?? 0;
      const included = { cot: missions * fake.withMission.cot, files: missions * fake.withMission.files };
      endRun({ state: 'done', rows: gone, included, bytes: 0 });
    },
    interruptRun: () =>
      endRun({
        state: 'interrupted',
        error: 'The core stopped, or another core replaced it. The next run deletes the rest.',
      }),

    coreRetention: {
      async policy() {
        reach();
        return { ...fake.policy };
      },
      async changePolicy(change) {
        reach();
        Object.assign(fake.policy, change);
        fake.files.policy = { ...fake.policy };
        return { ...fake.policy };
      },
      async schedule() {
        reach();
        return fake.schedule;
      },
      async changeSchedule(cron) {
        reach();
        if (cron !== NEVER && cron.split(' ').length < 6)
          throw new AppError('upstream', `The core was asked for the schedule "${cron}" and has "${fake.schedule}"`);
        fake.schedule = cron;
        fake.files.schedule = cron;
        return cron;
      },
      async missionArchiving() {
        reach();
        return { ...fake.archiving };
      },
      async begin({ id, limits, maxRows }) {
        reach();
        if (!fake.tellsRuns) throw new AppError('not_supported', 'The core has no call that begins a run');
        const same = fake.runs.find((run) => run.id === id);
        if (same !== undefined) return { ...same };
        if (fake.runs.some(({ state }) => state === 'running'))
          throw new AppError('conflict', 'A run is going on already');
        const latest = limitsAt(fake.policy, now());
        for (const type of typesOf(limits))
          if ((latest[type] ?? '') < (limits[type] ?? ''))
            throw new AppError('invalid', `The policy keeps ${type} longer`);
        const expected = typesOf(limits).reduce((sum, type) => sum + expiredOf(type, limits).length, 0);
        const run: CoreRetentionRun = {
          id,
          trigger: 'order',
          state: 'running',
          startedAt: now().toISOString(),
          finishedAt: null,
          limits,
          rows: Object.fromEntries(typesOf(limits).map((type) => [type, 0])),
          included: { cot: 0, files: 0 },
          expected,
          bytes: null,
          error: null,
        };
        fake.runs.unshift(run);
        if (maxRows !== null && expected > maxRows)
          endRun({ state: 'failed', error: `it would delete more than ${maxRows} rows` });
        return { ...run };
      },
      async runs() {
        reach();
        return fake.tellsRuns ? fake.runs.map((run) => ({ ...run })) : undefined;
      },
    },

    retentionFiles: {
      read: async () => structuredClone(fake.files),
      async sync({ cot, geochat, cron, unit }) {
        const days = { ...(cot === undefined ? {} : { cot }), ...(geochat === undefined ? {} : { geochat }) };
        for (const [type, value] of Object.entries(days))
          fake.files.policy[type as Retained] = inUnit(value, unit ?? 'days');
        if (cron !== undefined) fake.files.schedule = cron;
        else if (Object.keys(days).length > 0 && fake.files.schedule === NEVER) fake.files.schedule = DEFAULT_SCHEDULE;
        return { written: [], messages: [] };
      },
      log: async () => fake.log,
    },

    retentionFacts: {
      expired: ({ limits }) =>
        table(() => Object.fromEntries(typesOf(limits).map((type) => [type, expiredRows(type, limits)]))),
      left: ({ limits }) =>
        table(() => {
          const types = typesOf(limits);
          if (fake.isSlow) return { left: [], unknown: types };
          return { left: types.filter((type) => expiredOf(type, limits).length > 0), unknown: [] };
        }),
      references: () => table(() => (fake.isSlow ? undefined : { ...fake.references })),
      perDay: (type, from, to) =>
        table(() => {
          const days = fake.rows[type].map((at) => at.slice(0, 10)).filter((day) => day >= from && day < to);
          return [...new Set(days)]
            .toSorted()
            .map((day) => ({ day, rows: days.filter((each) => each === day).length }));
        }),
      oldestDays: () =>
        table(() => ({
          cot: fake.rows.cot.toSorted()[0]?.slice(0, 10) ?? null,
          geochat: fake.rows.geochat.toSorted()[0]?.slice(0, 10) ?? null,
        })),
      now: () => table(() => now().toISOString()),
    },
  };

  function expiredRows(type: Retained, limits: RetentionLimits): ExpiredRows {
    const times = expiredOf(type, limits);
    const { cot, files } = fake.withMission;
    const included = { cot: times.length * cot, files: times.length * files };
    return {
      rows: fake.isSlow ? null : times.length,
      atMost: fake.isSlow ? Math.round(times.length * 1.1) : null,
      included: type !== 'missions' || fake.isSlow ? null : included,
      bytesPerRow: BYTES_PER_ROW,
      bytes: null,
      oldest: times[0] ?? null,
      newest: times.at(-1) ?? null,
    };
  }

  return fake;
}
