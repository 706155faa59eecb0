// Failed sign-ins of all processes, in memory.

import type { FailureTable, SharedFailures } from '../../shared/sign-in/lockouts.ts';

interface Row {
  failedMs: number[];
  lockedUntilMs: number | undefined;
  changedMs: number;
}

const MINUTE = 60_000;

export function fakeFailures(nowMs: () => number): FailureTable {
  const rows = new Map<string, Row>();
  const isLocked = (row: Row | undefined): boolean => row?.lockedUntilMs !== undefined && row.lockedUntilMs > nowMs();
  const recent = (row: Row | undefined): number[] =>
    (row?.failedMs ?? []).filter((each) => nowMs() - each < 5 * MINUTE);

  const shown = (address: string, row: Row | undefined): SharedFailures => ({
    address,
    failedMsAgo: recent(row).map((each) => nowMs() - each),
    lockedForMs: row?.lockedUntilMs !== undefined && isLocked(row) ? row.lockedUntilMs - nowMs() : null,
  });

  return {
    async failed(address) {
      const row = rows.get(address);
      if (isLocked(row)) return { ...shown(address, row), counted: false };
      const failedMs = [...recent(row), nowMs()];
      const locks = failedMs.length >= 10;
      const next = {
        failedMs: locks ? [] : failedMs,
        lockedUntilMs: locks ? nowMs() + 15 * MINUTE : undefined,
        changedMs: nowMs(),
      };
      rows.set(address, next);
      return { ...shown(address, next), counted: true };
    },
    async changed(withinMs = 15 * MINUTE) {
      return [...rows]
        .filter(([, { changedMs }]) => nowMs() - changedMs < withinMs)
        .toSorted(([, a], [, b]) => a.changedMs - b.changedMs)
        .map(([address, row]) => shown(address, row));
    },
    async release(address) {
      const row = rows.get(address);
      if (row === undefined) return false;
      const counted = isLocked(row) || recent(row).length > 0;
      rows.set(address, { failedMs: [], lockedUntilMs: undefined, changedMs: nowMs() });
      return counted;
    },
  };
}
