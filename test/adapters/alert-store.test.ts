// Stores of alerts against a real PostgreSQL, and the book that goes on without it.

import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { alertBook } from '../../shared/adapters/alert-book.ts';
import { alertJournal } from '../../shared/adapters/alert-journal.ts';
import { memoryAlerts } from '../../shared/adapters/alert-memory.ts';
import { type AlertTable, alertTable } from '../../shared/adapters/alert-table.ts';
import { keptDatabase } from '../../shared/adapters/kept-database.ts';
import { Secret } from '../../shared/domain/secret.ts';
import type { Alert, Alerts } from '../../shared/ports/alerts.ts';
import {
  ACCEPTED,
  alertStoreContract,
  evaluation,
  LEASE,
  newModule,
  POLICY,
  refused,
} from '../contract/alert-store.ts';
import { memoryLog } from '../fakes/deps.ts';
import { newStack, query, stop, type TestStack } from '../stack/embedded.ts';

let stack: TestStack;
const place = mkdtempSync(join(tmpdir(), 'holdfast-alerts-'));
beforeAll(async () => {
  stack = await newStack();
  expect((await stack.start()).code).toBe(0);
});
afterAll(async () => {
  await stop(stack.data);
  rmSync(place, { recursive: true, force: true });
});

const database = { name: 'alerts-test', called: 'our own database', variable: 'DATABASE_URL' };
const table = (): AlertTable => alertTable(keptDatabase(new Secret(stack.file().state_database), database));

alertStoreContract('in memory', () => memoryAlerts(() => Date.now()));
alertStoreContract('the table', table);

/** A process of its own over the one database, which can be cut off from it. */
interface Process {
  book: Alerts;
  /** While true, the database does not answer this process. */
  cut: { off: boolean; after: boolean };
  log: ReturnType<typeof memoryLog>;
  /** Lets time pass for this process. */
  later: (ms: number) => void;
}

function newProcess(file?: string): Process {
  const cut = { off: false, after: false };
  const real = table();
  const log = memoryLog();
  let aheadMs = 0;
  const fragile = Object.fromEntries(
    Object.entries(real).map(([name, method]) => [
      name,
      async (...args: unknown[]) => {
        if (cut.off) throw new Error('our own database does not answer');
        const value = await (method as (...each: unknown[]) => Promise<unknown>)(...args);
        if (cut.after) throw new Error('the connection broke before the answer came');
        return value;
      },
    ]),
  ) as unknown as AlertTable;
  const book = alertBook({
    table: fragile,
    journal: file === undefined ? undefined : alertJournal(file, log),
    policy: POLICY,
    runner: randomUUID(),
    nowMs: () => Date.now() + aheadMs,
    log,
  });
  return { book, cut, log, later: (ms) => (aheadMs += ms) };
}

const mine = (alerts: Alert[], module: string): Alert[] => alerts.filter((alert) => alert.module === module);
const rowsOf = (module: string): Promise<{ state: string; level: string; attempts: number }[]> =>
  query(
    stack.file().state_database,
    `SELECT state, level, attempts FROM alert WHERE module = '${module}' ORDER BY raised_at, attempts`,
  );

describe('two processes over one database', () => {
  it('raise once, whoever sees it first, and send once', async () => {
    const module = newModule();
    const [a, b] = [newProcess(), newProcess()];
    const seen = await Promise.all([a, b].map(({ book }) => book.observe(evaluation(module, 'critical'))));
    expect(seen.map(({ kind }) => kind).toSorted()).toEqual(['none', 'raised']);
    const taken = await Promise.all([a, b].map(({ book }) => book.takeDue(100, LEASE)));
    expect(mine(taken.flat(), module)).toHaveLength(1);
  });

  it('do not forget what is told because one of them does not see the trouble', async () => {
    const module = newModule();
    const [a, b] = [newProcess(), newProcess()];
    await a.book.observe(evaluation(module, 'ok'));
    await b.book.observe(evaluation(module, 'warning'));
    for (let turn = 0; turn < 3; turn++) {
      expect((await a.book.observe(evaluation(module, 'ok'))).kind).toBe('none');
      expect((await b.book.observe(evaluation(module, 'warning'))).kind).toBe('none');
    }
  });
});

describe('a restart', () => {
  it('alerts nobody twice, and sends what waited', async () => {
    const module = newModule();
    const before = newProcess();
    await before.book.observe(evaluation(module, 'warning'));
    const after = newProcess();
    expect((await after.book.observe(evaluation(module, 'warning'))).kind).toBe('none');
    expect(mine(await after.book.takeDue(100, LEASE), module)).toHaveLength(1);
  });

  it('notices a recovery that came between', async () => {
    const module = newModule();
    await newProcess().book.observe(evaluation(module, 'warning'));
    expect((await newProcess().book.observe(evaluation(module, 'ok'))).kind).toBe('recovered');
  });
});

describe('without the database', () => {
  it('an alert is raised and can be sent at once, and is merged when the database is back, once', async () => {
    const module = newModule();
    const { book, cut, later, log } = newProcess();
    await book.observe(evaluation(module, 'ok'));
    cut.off = true;
    expect((await book.observe(evaluation(module, 'critical'))).kind).toBe('raised');
    expect((await book.observe(evaluation(module, 'critical'))).kind).toBe('none');
    const [alert] = mine(await book.takeDue(100, LEASE), module);
    if (alert === undefined) throw new Error('nothing to send');
    await book.settle(alert, ACCEPTED);
    expect((await book.list({ module }, 0, 10)).complete).toBe(false);
    expect(await rowsOf(module)).toEqual([]);

    cut.off = false;
    later(3000);
    expect((await book.observe(evaluation(module, 'critical'))).kind).toBe('none');
    expect(await rowsOf(module)).toEqual([{ state: 'sent', level: 'critical', attempts: 1 }]);
    expect(mine(await book.takeDue(100, LEASE), module)).toEqual([]);
    expect(await book.list({ module }, 0, 10)).toMatchObject({ count: 1, complete: true });
    expect((await newProcess().book.observe(evaluation(module, 'critical'))).kind).toBe('none');
    const events = log.events.map(({ event }) => event);
    expect(events).toEqual(['alerts.database_away', 'alerts.merged', 'alerts.database_back']);
  });

  it('what was not sent meanwhile is sent by whoever comes first afterwards', async () => {
    const module = newModule();
    const { book, cut, later } = newProcess();
    cut.off = true;
    await book.observe(evaluation(module, 'critical'));
    const [alert] = mine(await book.takeDue(100, LEASE), module);
    if (alert === undefined) throw new Error('nothing to send');
    await book.settle(alert, refused(0.01));
    await delay(50);
    cut.off = false;
    later(3000);
    const [again] = mine(await book.takeDue(100, LEASE), module);
    expect(again).toMatchObject({ id: alert.id, attempts: 1 });
    expect(mine(await newProcess().book.takeDue(100, LEASE), module)).toEqual([]);
  });

  it('an alert that is on its way is not taken by another process while the states are merged', async () => {
    const module = newModule();
    const { book, cut, later } = newProcess();
    cut.off = true;
    await book.observe(evaluation(module, 'critical'));
    const [alert] = mine(await book.takeDue(100, LEASE), module);
    cut.off = false;
    later(3000);
    await book.observe(evaluation(module, 'critical'));
    expect(mine(await newProcess().book.takeDue(100, LEASE), module)).toEqual([]);
    if (alert === undefined) throw new Error('nothing to send');
    await book.settle(alert, ACCEPTED);
    await book.observe(evaluation(module, 'critical'));
    expect(await rowsOf(module)).toEqual([{ state: 'sent', level: 'critical', attempts: 1 }]);
  });

  it('the success of an alert that the database had given out is not lost', async () => {
    const module = newModule();
    const { book, cut, later } = newProcess();
    await book.observe(evaluation(module, 'warning'));
    const [alert] = mine(await book.takeDue(100, LEASE), module);
    if (alert === undefined) throw new Error('nothing to send');
    cut.off = true;
    await book.settle(alert, ACCEPTED);
    cut.off = false;
    later(3000);
    await book.takeDue(100, LEASE);
    expect(await rowsOf(module)).toEqual([{ state: 'sent', level: 'warning', attempts: 1 }]);
  });

  it('a commit whose answer was lost is not raised a second time', async () => {
    const module = newModule();
    const { book, cut, later } = newProcess();
    await book.observe(evaluation(module, 'ok'));
    cut.after = true;
    expect((await book.observe(evaluation(module, 'critical'))).kind).toBe('raised');
    const [alert] = mine(await book.takeDue(100, LEASE), module);
    if (alert === undefined) throw new Error('nothing to send');
    await book.settle(alert, ACCEPTED);
    cut.after = false;
    later(3000);
    expect((await book.observe(evaluation(module, 'critical'))).kind).toBe('none');
    expect(await rowsOf(module)).toEqual([{ state: 'sent', level: 'critical', attempts: 1 }]);
    expect(mine(await book.takeDue(100, LEASE), module)).toEqual([]);
  });

  it('a recovery is remembered, and the next trouble told', async () => {
    const module = newModule();
    const { book, cut, later } = newProcess();
    await book.observe(evaluation(module, 'warning'));
    cut.off = true;
    expect((await book.observe(evaluation(module, 'ok'))).kind).toBe('recovered');
    cut.off = false;
    later(3000);
    expect((await book.observe(evaluation(module, 'ok'))).kind).toBe('none');
    expect((await newProcess().book.observe(evaluation(module, 'critical'))).kind).toBe('raised');
  });

  it('a restart alerts nobody twice and loses nothing, by the journal', async () => {
    const [told, waiting] = [newModule(), newModule()];
    const file = join(place, 'deep/alerts.json');
    const first = newProcess(file);
    await first.book.observe(evaluation(told, 'warning'));
    first.cut.off = true;
    await first.book.observe(evaluation(waiting, 'critical'));
    expect(statSync(file).mode & 0o777).toBe(0o600);

    const second = newProcess(file);
    second.cut.off = true;
    expect((await second.book.observe(evaluation(told, 'warning'))).kind).toBe('none');
    expect((await second.book.observe(evaluation(waiting, 'critical'))).kind).toBe('none');
    const [alert] = mine(await second.book.takeDue(100, LEASE), waiting);
    if (alert === undefined) throw new Error('nothing to send');
    await second.book.settle(alert, ACCEPTED);

    const third = newProcess(file);
    expect((await third.book.observe(evaluation(waiting, 'critical'))).kind).toBe('none');
    expect(await rowsOf(waiting)).toEqual([{ state: 'sent', level: 'critical', attempts: 1 }]);
  });

  it('a journal that cannot be read or written holds nothing up', async () => {
    const file = join(place, 'broken.json');
    writeFileSync(file, '{"states": 7');
    const { book, cut, log } = newProcess(file);
    cut.off = true;
    expect(log.events.map(({ event }) => event)).toEqual(['alerts.journal_not_read']);
    expect((await book.observe(evaluation(newModule(), 'warning'))).kind).toBe('raised');
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ alerts: [{ level: 'warning' }] });
    const nowhere = newProcess('/proc/nowhere/alerts.json');
    nowhere.cut.off = true;
    expect((await nowhere.book.observe(evaluation(newModule(), 'warning'))).kind).toBe('raised');
    expect(nowhere.log.events.map(({ event }) => event)).toContain('alerts.journal_not_written');
  });
});

describe('pruning', () => {
  it('removes old history and nothing that waits', async () => {
    const module = newModule();
    const store = table();
    const old = new Date(Date.UTC(2024, 0, 1));
    await store.apply(evaluation(module, 'warning', old), POLICY, randomUUID());
    await store.apply(evaluation(newModule(), 'warning', old), { ...POLICY, anybody: false }, randomUUID());
    expect(await store.prune('2025-01-01T00:00:00Z', '2025-01-01T00:00:00Z')).toBeGreaterThanOrEqual(1);
    expect(await rowsOf(module)).toHaveLength(1);
  });
});

describe('a slow database', () => {
  it('does not turn the order of evaluations round', async () => {
    const module = newModule();
    const real = table();
    const { promise: thawed, resolve: thaw } = Promise.withResolvers<void>();
    let frozen = true;
    const slow: AlertTable = {
      ...real,
      async apply(...args) {
        if (frozen) await thawed;
        return real.apply(...args);
      },
    };
    const log = memoryLog();
    const options = { table: slow, journal: undefined, policy: POLICY, runner: 'me', nowMs: () => Date.now(), log };
    const book = alertBook(options);
    const old = book.observe(evaluation(module, 'critical'));
    const next = book.observe(evaluation(module, 'ok'));
    frozen = false;
    thaw();
    expect([(await old).kind, (await next).kind]).toEqual(['raised', 'recovered']);
  });
});
