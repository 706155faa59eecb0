// Alerts over a real PostgreSQL: the contract, several processes, restarts, slowness, clocks.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { AlertStore } from '../../shared/alerts/store.ts';
import type { AlertTable } from '../../shared/alerts/table.ts';
import { alertDatabase, serverIsOld } from '../e2e/embedded/alert-database.ts';
import { memoryLog } from '../http/fake-deps.ts';
import { accepted, alertsContract, evaluation, newModule, POLICY, refused, take, takeOne } from './alerts-contract.ts';
import { alertProcess, type AlertProcess } from './fake-alert-processes.ts';
import { alertsHolding } from './fake-alerts.ts';

const database = alertDatabase();
const { place, table, inDatabase } = database;
beforeAll(() => serverIsOld(database));

const newProcess = (file?: string): AlertProcess => alertProcess(table(), POLICY, file);
const rowsOf = (module: string): Promise<{ state: string; level: string; attempts: number }[]> =>
  inDatabase(`SELECT state, level, attempts FROM alert WHERE module = '${module}' ORDER BY raised_at, attempts`);

const BREAK_MS = 3000;
const GRACE_MS = 15_000;

alertsContract('in memory', () => alertsHolding([]));
alertsContract('over the database', () => newProcess().alerts);

describe('two processes over one database', () => {
  it('raise once, whoever sees it first, and send once', async () => {
    const module = newModule();
    const both = [newProcess(), newProcess()];
    const seen = await Promise.all(both.map(({ alerts }) => alerts.observe(evaluation(module, 'critical'))));
    expect(seen.map(({ kind }) => kind).toSorted()).toEqual(['none', 'raised']);
    const taken = await Promise.all(both.map(({ alerts }) => take(alerts, module)));
    expect(taken.flat()).toHaveLength(1);
  });

  it('do not forget what is told because one of them does not see the trouble', async () => {
    const module = newModule();
    const [a, b] = [newProcess(), newProcess()];
    await a.alerts.observe(evaluation(module, 'ok'));
    await b.alerts.observe(evaluation(module, 'warning'));
    for (let turn = 0; turn < 3; turn++) {
      expect((await a.alerts.observe(evaluation(module, 'ok'))).kind).toBe('none');
      expect((await b.alerts.observe(evaluation(module, 'warning'))).kind).toBe('none');
    }
  });

  it('notice within a minute that a trouble which the other told is over', async () => {
    const module = newModule();
    const [a, b] = [newProcess(), newProcess()];
    await a.alerts.observe(evaluation(module, 'ok'));
    await b.alerts.observe(evaluation(module, 'critical'));
    a.later(60_000);
    expect((await a.alerts.observe(evaluation(module, 'ok'))).kind).toBe('recovered');
  });

  it('know of a success whichever of them sent it', async () => {
    const module = newModule();
    const [a, b] = [newProcess(), newProcess()];
    await a.alerts.observe(evaluation(module, 'warning'));
    await a.alerts.settle(await takeOne(a.alerts, module), refused(0));
    b.later(GRACE_MS);
    await b.alerts.settle(await takeOne(b.alerts, module), accepted());
    expect(await take(a.alerts, module)).toEqual([]);
    await a.alerts.observe(evaluation(module, 'ok'));
    expect(await a.alerts.observe(evaluation(module, 'warning'))).toMatchObject({
      alert: { reason: expect.stringMatching(/was sent less than/) },
    });
  });

  it('leave to each other what was on its way when both were cut off', async () => {
    const module = newModule();
    const [a, b] = [newProcess(), newProcess()];
    await a.alerts.observe(evaluation(module, 'critical'));
    const alert = await takeOne(a.alerts, module);
    await b.alerts.observe(evaluation(module, 'critical'));
    for (const { line } of [a, b]) line.state = 'cut';
    await a.alerts.settle(alert, accepted());
    expect(await take(b.alerts, module)).toEqual([]);
    await inDatabase(`UPDATE alert SET lease_until = now() - interval '1 second' WHERE module = '${module}'`);
    for (const { line, later } of [a, b]) {
      line.state = 'good';
      later(BREAK_MS);
    }
    expect(await take(b.alerts, module)).toEqual([]);
    await a.alerts.observe(evaluation(module, 'critical'));
    expect(await rowsOf(module)).toEqual([{ state: 'sent', level: 'critical', attempts: 1 }]);
    b.later(GRACE_MS);
    expect(await take(b.alerts, module)).toEqual([]);
  });

  it('take over what one of them had on its way when it died', async () => {
    const module = newModule();
    const [a, b] = [newProcess(), newProcess()];
    await a.alerts.observe(evaluation(module, 'critical'));
    await takeOne(a.alerts, module);
    await inDatabase(`UPDATE alert SET lease_until = now() - interval '1 second' WHERE module = '${module}'`);
    expect(await take(b.alerts, module)).toEqual([]);
    b.later(GRACE_MS);
    expect(await take(b.alerts, module)).toHaveLength(1);
  });
});

describe('a restart', () => {
  it('alerts nobody twice, and sends what waited', async () => {
    const module = newModule();
    const file = join(place, 'restart.json');
    await newProcess(file).alerts.observe(evaluation(module, 'warning'));
    const after = newProcess(file);
    expect((await after.alerts.observe(evaluation(module, 'warning'))).kind).toBe('none');
    expect(await take(after.alerts, module)).toHaveLength(1);
  });

  it('notices a recovery that came between', async () => {
    const module = newModule();
    await newProcess().alerts.observe(evaluation(module, 'warning'));
    expect((await newProcess().alerts.observe(evaluation(module, 'ok'))).kind).toBe('recovered');
  });

  it('does not believe an old journal more than the database', async () => {
    const module = newModule();
    const file = join(place, 'old.json');
    const first = newProcess(file);
    await first.alerts.observe(evaluation(module, 'ok'));
    const old = readFileSync(file, 'utf8');
    await first.alerts.observe(evaluation(module, 'critical'));
    writeFileSync(file, old);
    const second = newProcess(file);
    expect((await second.alerts.observe(evaluation(module, 'ok'))).kind).toBe('recovered');
  });
});

describe('a slow database', () => {
  /** A process whose evaluations are answered when they may be; they are committed before. */
  function slowProcess(table: AlertTable, before: Promise<void> | undefined, after: Promise<void> | undefined) {
    const slow: AlertTable = {
      ...table,
      async apply(...args) {
        await before;
        const applied = await table.apply(...args);
        await after;
        return applied;
      },
    };
    const clock = { wallMs: () => Date.now(), steadyMs: () => performance.now() };
    const rest = { reads: table, journal: undefined, policy: POLICY, runner: 'me', clock, log: memoryLog() };
    return new AlertStore({ table: slow, ...rest });
  }

  it('does not turn the order of evaluations round', async () => {
    const module = newModule();
    const { promise: thawed, resolve: thaw } = Promise.withResolvers<void>();
    const alerts = slowProcess(table(), thawed, undefined);
    const old = alerts.observe(evaluation(module, 'critical'));
    const next = alerts.observe(evaluation(module, 'ok'));
    thaw();
    expect([(await old).kind, (await next).kind]).toEqual(['raised', 'recovered']);
  });

  it('does not give out twice what it was late to say that it has', async () => {
    const module = newModule();
    const { promise: thawed, resolve: thaw } = Promise.withResolvers<void>();
    const alerts = slowProcess(table(), undefined, thawed);
    const observed = alerts.observe(evaluation(module, 'critical'));
    let taken: unknown[] = [];
    while (taken.length === 0) taken = await take(alerts, module);
    thaw();
    await observed;
    expect(await take(alerts, module)).toEqual([]);
  });
});

describe('clocks that differ', () => {
  it('delay no alert', async () => {
    for (const hours of [-1, 1]) {
      const module = newModule();
      const { alerts } = newProcess();
      await alerts.observe(evaluation(module, 'critical', new Date(Date.now() + hours * 3_600_000)));
      expect(await take(alerts, module)).toHaveLength(1);
    }
  });
});

describe('pruning', () => {
  it('removes old history and nothing that waits', async () => {
    const [waiting, done] = [newModule(), newModule()];
    const old = new Date(Date.UTC(2024, 0, 1));
    const { alerts } = newProcess();
    await alerts.observe(evaluation(waiting, 'warning', old));
    const silent = alertProcess(table(), { ...POLICY, anybody: false }).alerts;
    await silent.observe(evaluation(done, 'warning', old));
    expect(await alerts.prune('2025-01-01T00:00:00Z', '2025-01-01T00:00:00Z')).toBeGreaterThanOrEqual(1);
    expect([await rowsOf(waiting), await rowsOf(done)].map((rows) => rows.length)).toEqual([1, 0]);
  });
});
