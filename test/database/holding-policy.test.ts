// Which retention would hold the size of the database, and when none does.

import { describe, expect, it } from 'vitest';
import { type PolicyFacts, policyThatHolds } from '../../shared/database/holding-policy.ts';

const GB = 1e9;

/** 20 GB of events, a million a day of 1,000 bytes each; 1 GB is something else. */
const facts = (change: Partial<PolicyFacts> = {}): PolicyFacts => ({
  databaseBytes: 21 * GB,
  budgetBytes: 40 * GB,
  growthPerDay: 1 * GB,
  types: {
    cot: { bytes: 20 * GB, rows: 20e6, rowsPerDay: 1e6 },
    geochat: { bytes: 0, rows: 0, rowsPerDay: 0 },
  },
  inForce: undefined,
  unitIsSet: true,
  maxDays: 36_500,
  otherTable: undefined,
  otherPerDay: 0,
  ...change,
});

describe('the policy that would hold the size', () => {
  it('names whole days and the size at which the database settles, with what deleted rows leave unused', () => {
    const policy = policyThatHolds(facts());
    expect(policy).toMatchObject({ state: 'suggested', cot_days: 34, geochat_days: null, budget_bytes: 40 * GB });
    expect(policy.says).toBe('COT_RETENTION_DAYS=34 would hold the database at about 40 GB');
    expect(policy.holds_bytes).toBeLessThanOrEqual(40 * GB);
    expect(policyThatHolds(facts({ budgetBytes: 41.2 * GB })).cot_days).toBe(35);
  });

  it('names chat where chat matters', () => {
    const { cot } = facts().types;
    const geochat = { bytes: 5 * GB, rows: 5e6, rowsPerDay: 0.5e6 };
    expect(policyThatHolds(facts({ databaseBytes: 26 * GB, types: { cot, geochat } })).says).toBe(
      'COT_RETENTION_DAYS=22 and GEOCHAT_RETENTION_DAYS=22 would hold the database at about 39 GB',
    );
    const little = { ...geochat, rowsPerDay: 1000 };
    expect(policyThatHolds(facts({ types: { cot, geochat: little } })).geochat_days).toBeNull();
  });

  it('says so when the one in force does', () => {
    const inForce = { cot: 21, geochat: null };
    expect(policyThatHolds(facts({ inForce }))).toMatchObject({
      state: 'in_force',
      cot_days: 21,
      says: 'COT_RETENTION_DAYS=21 (in force) holds the database at about 25 GB',
    });
  });

  it('is a shorter one when the one in force does not, or deletes no chat that matters', () => {
    expect(policyThatHolds(facts({ inForce: { cot: 90, geochat: null } }))).toMatchObject({
      state: 'suggested',
      cot_days: 34,
    });
    const geochat = { bytes: 5 * GB, rows: 5e6, rowsPerDay: 0.5e6 };
    const types = { cot: facts().types.cot, geochat };
    expect(policyThatHolds(facts({ types, inForce: { cot: 7, geochat: null } })).state).toBe('suggested');
  });

  it('says what only VACUUM FULL gives back when the database is larger already', () =>
    expect(policyThatHolds(facts({ budgetBytes: 12 * GB }))).toMatchObject({
      cot_days: 9,
      says: 'COT_RETENTION_DAYS=9 would hold the database at about 12 GB; only VACUUM FULL frees the space already used beyond that',
    }));

  it('is at least one day: where not even that fits, none helps', () => {
    expect(policyThatHolds(facts({ budgetBytes: 3.3 * GB })).cot_days).toBe(1);
    expect(policyThatHolds(facts({ budgetBytes: 3.1 * GB }))).toMatchObject({
      state: 'nothing_helps',
      cot_days: null,
      says: expect.stringMatching(/^no retention helps: not even one day of events fits/),
    });
    const inForce = { cot: 1, geochat: null };
    expect(policyThatHolds(facts({ budgetBytes: 0.5 * GB, inForce })).state).toBe('nothing_helps');
  });

  it('does not blame events for what another table does', () =>
    expect(policyThatHolds(facts({ growthPerDay: 10 * GB, otherTable: 'public.resource' }))).toMatchObject({
      state: 'nothing_helps',
      says: 'retention of events does not help: the table public.resource grows most',
    }));

  it('does not say that the one in force holds what grows beside the events, however many of these come and go', () => {
    const inForce = { cot: 20, geochat: null };
    expect(policyThatHolds(facts({ inForce })).state).toBe('in_force');
    expect(policyThatHolds(facts({ inForce, otherTable: 'public.resource', otherPerDay: 0.9 * GB }))).toMatchObject({
      state: 'nothing_helps',
      says: 'retention of events does not help: the table public.resource grows most',
    });
  });

  it('is not needed where nothing grows, or ten years fit', () => {
    expect(policyThatHolds(facts({ growthPerDay: 0 })).state).toBe('not_needed');
    expect(policyThatHolds(facts({ budgetBytes: 9000 * GB })).state).toBe('not_needed');
  });

  it('says that a unit must be set with it', () =>
    expect(policyThatHolds(facts({ unitIsSet: false })).says).toContain(
      '(with CORE_RETENTION_UNIT, which is not set)',
    ));
});
