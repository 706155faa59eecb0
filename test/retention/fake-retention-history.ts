// What Holdfast remembers of retention, in memory.

import type { CountedDay, InForce, RetentionHistory, RetentionRun } from '../../shared/retention/port.ts';

const MAX_RUNS = 1000;

export function fakeRetentionHistory(now: () => Date): RetentionHistory {
  const runs = new Map<string, RetentionRun>();
  const days = { cot: new Map<string, CountedDay>(), geochat: new Map<string, CountedDay>() };
  let inForce: { since: string; what: InForce } | undefined;
  const newestFirst = (): RetentionRun[] =>
    [...runs.values()].toSorted((a, b) => b.startedAt.localeCompare(a.startedAt) || b.id.localeCompare(a.id));

  return {
    async keepRuns(given) {
      for (const run of given) {
        const known = runs.get(run.id)?.state ?? 'running';
        if (known === 'running' || run.state !== 'running') runs.set(run.id, structuredClone(run));
      }
      for (const { id } of newestFirst().slice(MAX_RUNS)) runs.delete(id);
    },
    async runs(offset, limit) {
      const all = newestFirst();
      return { results: structuredClone(all.slice(offset, offset + limit)), count: all.length };
    },
    lastDone: async () => structuredClone(newestFirst().find(({ state }) => state === 'done')),
    async seenInForce(at, what) {
      if (inForce === undefined || JSON.stringify(inForce.what) !== JSON.stringify(what))
        inForce = { since: at, what: structuredClone(what) };
      return inForce.since;
    },
    async keepDays(type, from, to, given) {
      for (const day of days[type].keys()) if (day >= from && day < to) days[type].delete(day);
      for (const { day, rows } of given) days[type].set(day, { day, rows, countedAt: now().toISOString() });
    },
    async days(type) {
      const all = [...days[type].values()].toSorted((a, b) => a.day.localeCompare(b.day));
      return { days: structuredClone(all) };
    },
  };
}
