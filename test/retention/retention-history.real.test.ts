// What Holdfast remembers of retention, in tables that no job works on: the contract, and what two processes do at once.

import { beforeAll, describe, expect, it } from 'vitest';
import { keptDatabase, type RunSql } from '@holdfast/kit/kept-database';
import { KEEP_ALL } from '@holdfast/kit/retention';
import { Secret } from '@holdfast/kit/secret';
import { retentionHistoryTable } from '../../shared/retention/history-table.ts';
import { MIGRATIONS } from '../../shared/runtime/migrations/index.ts';
import { emptyDatabase } from '../e2e/embedded/empty-database.ts';
import { retentionHistoryContract, runAt } from './retention-history-contract.ts';

const OPTIONS = { name: 'retention-test', called: 'our own database', variable: 'DATABASE_URL', withinMs: 20_000 };
const at = (second: number): string => new Date(Date.parse('2026-03-04T05:06:07.089Z') + second * 1000).toISOString();

const { url, inDatabase } = emptyDatabase();
let run: RunSql;
beforeAll(async () => {
  await inDatabase(MIGRATIONS.find(({ name }) => name === 'retention')?.sql ?? '');
  run = keptDatabase(new Secret(url()), OPTIONS);
});

const emptied = async () => {
  await inDatabase('TRUNCATE retention_run, retention_in_force, retention_day');
  return retentionHistoryTable(run);
};

retentionHistoryContract('in the database', emptied);

describe('the book of retention in the database', () => {
  it('keeps a run once, ended, though many processes tell of it at once', async () => {
    const store = await emptied();
    const states = ['running', 'done', 'running', 'running', 'done', 'running'] as const;
    await Promise.all(states.map((state) => store.keepRuns([runAt(1, { state }), runAt(2)])));
    expect((await store.runs(0, 9)).results).toEqual([runAt(2), runAt(1)]);
  });

  it('keeps a run whatever its error says', async () => {
    const history = await emptied();
    await history.keepRuns([runAt(1, { state: 'failed', error: 'a\0b \uD800 c' })]);
    expect((await history.runs(0, 9)).results[0]?.error).toBe('ab \uFFFD c');
  });

  it('gives one answer to processes that see the same at once, and when the clock has gone back', async () => {
    const records = await emptied();
    const what = { policy: { ...KEEP_ALL, cot: 30 }, schedule: '-' };
    const notices = await Promise.all(Array.from({ length: 8 }, (_, index) => records.seenInForce(at(index), what)));
    const since = await records.seenInForce(at(60), what);
    expect(new Set(notices)).toEqual(new Set([since]));
    expect(await records.seenInForce(at(61), what)).toBe(since);
    const back = await records.seenInForce(at(-1000), { ...what, schedule: '0 0 3 * * ?' });
    expect(back > since).toBe(true);
    expect(await records.seenInForce(at(-999), { ...what, schedule: '0 0 3 * * ?' })).toBe(back);
  });

  it('keeps the last hundred of what was in force', async () => {
    const stored = await emptied();
    for (let second = 0; second < 105; second++)
      await stored.seenInForce(at(second), { policy: { ...KEEP_ALL, cot: second + 1 }, schedule: '-' });
    const count = 'SELECT count(*)::int AS count, min(since) AS first FROM retention_in_force';
    expect([...(await inDatabase(count))]).toEqual([{ count: 100, first: new Date(at(5)) }]);
  });

  it('says so while the database is away', async () => {
    const nowhere = retentionHistoryTable(keptDatabase(new Secret('postgres://nobody:nothing@127.0.0.1:1/x'), OPTIONS));
    const refusal = { code: 'unavailable', message: expect.stringContaining('Our own database does not answer') };
    await expect(nowhere.lastDone()).rejects.toMatchObject(refusal);
  });
});
