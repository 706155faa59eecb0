// Every combination of variables, units and files; and histories of variables and hand edits at random.

import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { inUnit, KEEP_ALL, type RetentionUnit } from '@holdfast/kit/retention';
import { NO_MEMORY, planRetention, readSchedule, type RetentionMemory } from '../../shared/retention/documents.ts';
import { readPolicy } from '../../shared/retention/policy-text.ts';
import type { WantedRetention } from '../../shared/retention/port.ts';
import { loadSettings } from '../../shared/settings/load.ts';
import { anyCharacter, runs } from '../support/runs.ts';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

interface World {
  policy: string | undefined;
  schedule: string | undefined;
  memory: RetentionMemory;
}

/** The files after one look, or the fault. */
function synced(world: World, wanted: WantedRetention): World | string {
  const plan = planRetention(world, world.memory, wanted, sha256);
  if ('fault' in plan) return plan.fault;
  return { policy: plan.policy ?? world.policy, schedule: plan.schedule ?? world.schedule, memory: plan.memory };
}

const EMPTY: World = { policy: undefined, schedule: undefined, memory: NO_MEMORY };
const OURS = synced(EMPTY, { cot: 7, geochat: 8, cron: undefined, unit: 'days' }) as World;
const FILES: Record<string, World> = {
  missing: EMPTY,
  'hand-edited': {
    policy: 'dataRetentionMap:\n  cot: 11 # mine\n  missions: 500000\n',
    schedule: "cronExpression: '0 0 1 ? * MON'\n",
    memory: NO_MEMORY,
  },
  'ours, then edited': { ...OURS, policy: `${OURS.policy}# mine\n` },
  ours: OURS,
  broken: { policy: 'dataRetentionMap:\n  cot: many\n', schedule: 'cronExpression: "-"\n', memory: NO_MEMORY },
};
const UNSET = undefined;
const BAD_DAYS = new Set(['abc', '0', '-1']);
const BAD_CRONS = new Set(['nonsense']);
const OF_A_YEAR = '0 0 4 * * ? 2099';

function wantedOf(values: Record<string, string | undefined>): WantedRetention | undefined {
  const { settings, problems } = loadSettings([{ source: 'environment', values }], 'container');
  if (problems.some(({ name }) => Object.hasOwn(values, name))) return undefined;
  const { COT_RETENTION_DAYS: cot, GEOCHAT_RETENTION_DAYS: geochat, RETENTION_CRON: cron } = settings;
  return { cot, geochat, cron, unit: settings.CORE_RETENTION_UNIT };
}

describe.each(Object.keys(FILES))('with files that are %s', (kind) => {
  const world = FILES[kind] ?? EMPTY;
  const combinations = [UNSET, '30', 'abc', '0', '-1'].flatMap((cot) =>
    [UNSET, '90', 'abc'].flatMap((geochat) =>
      [UNSET, '0 0 4 ? * SUN', OF_A_YEAR, 'nonsense'].flatMap((cron) =>
        [UNSET, 'days', 'seconds'].map((unit) => ({ cot, geochat, cron, unit })),
      ),
    ),
  );

  it.each(combinations)('cot $cot, geochat $geochat, cron $cron, unit $unit', ({ cot, geochat, cron, unit }) => {
    const wanted = wantedOf({
      COT_RETENTION_DAYS: cot,
      GEOCHAT_RETENTION_DAYS: geochat,
      RETENTION_CRON: cron,
      CORE_RETENTION_UNIT: unit,
    });
    const isSet = (cot ?? geochat ?? cron) !== undefined;
    const isBad =
      BAD_DAYS.has(cot ?? '') ||
      BAD_DAYS.has(geochat ?? '') ||
      BAD_CRONS.has(cron ?? '') ||
      (isSet && unit === undefined) ||
      (cron === OF_A_YEAR && unit === 'seconds');
    expect(wanted === undefined).toBe(isBad);
    if (wanted === undefined) return;
    const after = synced(world, wanted);
    const hasDays = (cot ?? geochat) !== undefined;
    /** Values of a person that the core would read in another unit. */
    const isOtherUnit =
      (kind === 'hand-edited' && (unit === 'days' || (unit === 'seconds' && cot === undefined))) ||
      (kind === 'ours, then edited' && unit === 'seconds' && (cot === undefined || geochat === undefined));
    if (kind === 'broken' || isOtherUnit) {
      expect(typeof after).toBe('string');
      return;
    }
    if (typeof after === 'string') throw new Error(after);
    const isOurs = kind === 'ours';
    if (!isSet && !isOurs && kind !== 'missing') expect(after.policy).toBe(world.policy);
    if (!isSet && kind === 'hand-edited') expect(after).toEqual(world);

    const before = world.policy === undefined ? KEEP_ALL : readPolicy(world.policy).policy;
    const { policy } = readPolicy(after.policy ?? '');
    const expected = (type: 'cot' | 'geochat', days: string | undefined): number | null => {
      if (days !== undefined) return inUnit(Number(days), unit as RetentionUnit);
      return isOurs ? null : before[type];
    };
    expect(policy).toEqual({ ...before, cot: expected('cot', cot), geochat: expected('geochat', geochat) });

    const cronBefore = world.schedule === undefined ? '-' : readSchedule(world.schedule);
    const ofVariable = unit === 'seconds' ? '0 0 4 ? * 0' : cron;
    const isHand = kind === 'hand-edited';
    const otherwise = hasDays ? '0 0 3 * * ?' : '-';
    expect(readSchedule(after.schedule ?? '')).toBe(
      cron === undefined ? (isHand ? cronBefore : otherwise) : ofVariable,
    );
    expect(synced(after, wanted)).toEqual(after);
  });
});

describe('at random', () => {
  const days = fc.option(fc.integer({ min: 1, max: 400 }), { nil: undefined });
  const variables = fc.record({
    cot: days,
    geochat: days,
    cron: fc.option(fc.constantFrom('0 0 4 * * ?', '0 15 2 ? * 1'), { nil: undefined }),
  });
  type Step =
    | { act: 'sync'; wanted: { cot: number | undefined; geochat: number | undefined; cron: string | undefined } }
    | { act: 'comment' }
    | { act: 'schedule comment' }
    | { act: 'remove policy' }
    | { act: 'remove schedule' }
    | { act: 'value'; type: 'cot' | 'files'; value: number | null }
    | { act: 'cron'; cron: string };
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 4, arbitrary: variables.map((wanted): Step => ({ act: 'sync', wanted })) },
    fc.constantFrom('comment', 'schedule comment', 'remove policy', 'remove schedule').map((act): Step => ({ act })),
    fc.record({
      act: fc.constant('value' as const),
      type: fc.constantFrom('cot' as const, 'files' as const),
      value: fc.option(fc.integer({ min: 1, max: 400 })),
    }),
    fc.record({ act: fc.constant('cron' as const), cron: fc.constantFrom('-', '0 0 5 * * ?') }),
  );

  function edited(world: World, change: Exclude<Step, { act: 'sync' }>, mark: string, unit: RetentionUnit): World {
    const policy = world.policy ?? 'dataRetentionMap:\n  cot:\n  files:\n';
    const { act } = change;
    if (act === 'comment') return { ...world, policy: `${policy}# ${mark}\n` };
    if (act === 'schedule comment')
      return { ...world, schedule: `# ${mark}\n${world.schedule ?? 'cronExpression: -\n'}` };
    if (act === 'remove policy') return { ...world, policy: undefined };
    if (act === 'remove schedule') return { ...world, schedule: undefined };
    if (act === 'cron') return { ...world, schedule: `cronExpression: "${change.cron}" # ${mark}\n` };
    const line = new RegExp(`^( *${change.type}:).*$`, 'm');
    return { ...world, policy: policy.replace(line, `$1 ${inUnit(change.value, unit) ?? ''} # ${mark}`) };
  }

  const marksIn = (text: string | undefined): string[] => text?.match(/mark\d+/g) ?? [];

  it('a variable has its way, the rest stays as a person wrote it, and a second look changes nothing', () => {
    const counts = { undone: 0, kept: 0 };
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 12 }),
        fc.constantFrom<RetentionUnit>('days', 'seconds'),
        (steps, unit) => {
          let world = EMPTY;
          /** What Holdfast itself has written last, and what the variables said then. */
          let wrote: { policy: string | undefined; cot: boolean; geochat: boolean } | undefined;
          for (const [index, each] of steps.entries()) {
            if (each.act !== 'sync') {
              world = edited(world, each, `mark${index}`, unit);
              continue;
            }
            const after = synced(world, { ...each.wanted, unit });
            if (typeof after === 'string') throw new Error(after);
            const before = world.policy === undefined ? KEEP_ALL : readPolicy(world.policy).policy;
            const { policy } = readPolicy(after.policy ?? '');
            for (const type of ['files', 'missionpackages', 'missions'] as const)
              expect(policy[type]).toBe(before[type]);
            for (const type of ['cot', 'geochat'] as const) {
              const wanted = each.wanted[type];
              const wasOurs = wrote !== undefined && wrote.policy === world.policy && wrote[type];
              if (wanted !== undefined) expect(policy[type]).toBe(inUnit(wanted, unit));
              else if (policy[type] !== before[type]) {
                expect([policy[type], wasOurs]).toEqual([null, true]);
                counts.undone += 1;
              } else counts.kept += 1;
            }
            expect(marksIn(after.policy)).toEqual(marksIn(world.policy));
            expect(marksIn(after.schedule)).toEqual(marksIn(world.schedule));
            const isEnabled = (each.wanted.cot ?? each.wanted.geochat ?? each.wanted.cron) !== undefined;
            if (isEnabled) expect(readSchedule(after.schedule ?? '')).not.toBe('-');
            expect(synced(after, { ...each.wanted, unit })).toEqual(after);
            if (after.policy !== world.policy)
              wrote = {
                policy: after.policy,
                cot: each.wanted.cot !== undefined,
                geochat: each.wanted.geochat !== undefined,
              };
            world = after;
          }
        },
      ),
      { numRuns: runs(500) },
    );
    expect(Math.min(counts.undone, counts.kept)).toBeGreaterThan(runs(50));
  });

  it('a text of anybody is read or refused with a line, and never throws', () => {
    const word = fc.constantFrom(
      'dataRetentionMap:',
      ' ',
      '\n',
      '  cot:',
      '3',
      '-',
      '{',
      '}',
      '[',
      '&a',
      '*a',
      '"',
      '#',
      '!!int',
      '---',
      '\t',
      '|',
    );
    const text = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.array(word, { maxLength: 20 }).map((all) => all.join('')),
    );
    fc.assert(
      fc.property(text, text, (policy, schedule) => {
        const world = { policy, schedule, memory: NO_MEMORY };
        const wanted = { cot: 30, geochat: undefined, cron: undefined, unit: 'days' } as const;
        const after = synced(world, wanted);
        if (typeof after !== 'string') expect(readPolicy(after.policy ?? '').policy.cot).toBe(30);
      }),
      { numRuns: runs(1000) },
    );
  });
});
