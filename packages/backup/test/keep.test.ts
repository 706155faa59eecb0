import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DAY_MS } from '@holdfast/kit/time';
import type { Backup, Proof, ProofLevel } from '../../../shared/backups/port.ts';
import { isProven } from '../../../shared/backups/rules.ts';
import { expiredBackups, MAX_DELETED_AT_ONCE } from '../keep.ts';

const NOW = new Date('2026-03-01T02:30:00Z');

const proof = (level: ProofLevel | null): Proof => ({
  level,
  at: NOW.toISOString(),
  seconds: 1,
  error: null,
  limit: null,
  checks: [],
});

type Kept = Pick<Backup, 'name' | 'created_at' | 'permanent' | 'history' | 'proof'>;

const aged = (days: number, changes: Partial<Kept> = {}): Kept => ({
  name: `backup-${days}`,
  created_at: new Date(NOW.getTime() - days * DAY_MS).toISOString(),
  permanent: false,
  history: true,
  proof: null,
  ...changes,
});

const daily = (from: number, to: number): Kept[] => Array.from({ length: to - from + 1 }, (_, at) => aged(from + at));

describe('the keep rules', () => {
  it('delete what is outside of the window, oldest first', () => {
    expect(expiredBackups(daily(0, 32), { days: 30, count: 7 }, NOW)).toEqual(['backup-32', 'backup-31']);
  });

  it('keep the minimum count whatever its age', () => {
    expect(expiredBackups(daily(100, 106), { days: 30, count: 7 }, NOW)).toEqual([]);
    expect(expiredBackups(daily(100, 107), { days: 30, count: 7 }, NOW)).toEqual(['backup-107']);
  });

  it('keep permanent ones, and the last proven one with history', () => {
    const old = [
      aged(40),
      aged(41, { proof: proof('serves'), history: false }),
      aged(42, { proof: proof('serves') }),
      aged(43, { proof: proof('serves') }),
      aged(44, { permanent: true }),
    ];
    expect(expiredBackups(old, { days: 30, count: 1 }, NOW)).toEqual(['backup-43']);
  });

  it('do little harm when the clock is years ahead, and none when it is behind', () => {
    const all = daily(0, 40);
    const ahead = new Date(NOW.getTime() + 4000 * DAY_MS);
    expect(expiredBackups(all, { days: 30, count: 7 }, ahead)).toHaveLength(MAX_DELETED_AT_ONCE);
    expect(expiredBackups(all, { days: 30, count: 7 }, new Date(0))).toEqual([]);
  });

  const kept = fc.record({
    created_at: fc.integer({ min: -400, max: 400 }).map((days) => aged(days).created_at),
    permanent: fc.boolean(),
    history: fc.boolean(),
    proof: fc.option(
      fc.constantFrom<ProofLevel | null>(null, 'exists', 'decrypts', 'restores', 'serves').map((level) => proof(level)),
    ),
  });
  const lists = fc.array(kept, { maxLength: 60 }).map((all) => all.map((each, at) => ({ ...each, name: `b${at}` })));
  const rules = fc.record({ days: fc.integer({ min: 1, max: 365 }), count: fc.integer({ min: 1, max: 20 }) });

  it('hold for every list of backups and every clock', () => {
    fc.assert(
      fc.property(lists, rules, fc.integer({ min: -3000, max: 3000 }), (backups, rule, jump) => {
        const now = new Date(NOW.getTime() + jump * DAY_MS);
        const deleted = new Set(expiredBackups(backups, rule, now));
        const left = backups.filter(({ name }) => !deleted.has(name));
        expect(left.length).toBeGreaterThanOrEqual(Math.min(backups.length, rule.count));
        expect(left.some(isProven)).toBe(backups.some(isProven));
        expect(left.some((each) => each.history && isProven(each))).toBe(
          backups.some((each) => each.history && isProven(each)),
        );
        for (const each of backups.filter(({ name }) => deleted.has(name))) {
          expect(each.permanent).toBe(false);
          expect(Date.parse(each.created_at)).toBeLessThan(now.getTime() - rule.days * DAY_MS);
        }
        // The newest of all is never deleted, and what is left is never older than what was deleted
        // without a reason.
        const newest = Math.max(...backups.map((each) => Date.parse(each.created_at)));
        expect(left.some((each) => Date.parse(each.created_at) === newest)).toBe(backups.length > 0);
      }),
    );
  });

  it('end after so many runs, and delete nothing more then', () => {
    fc.assert(
      fc.property(lists, rules, (backups, rule) => {
        let left = backups;
        for (let run = 0; run <= backups.length; run++) {
          const deleted = new Set(expiredBackups(left, rule, NOW));
          if (deleted.size === 0) return;
          left = left.filter(({ name }) => !deleted.has(name));
        }
        throw new Error('it never ends');
      }),
    );
  });
});
