// Alerts over a real PostgreSQL, and what becomes of them while it is away, slow, or loses answers.

import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { alertBook } from '../../shared/adapters/alert-book.ts';
import { type AlertTable, alertTable } from '../../shared/adapters/alert-table.ts';
import { keptDatabase } from '../../shared/adapters/kept-database.ts';
import { Secret } from '../../shared/domain/secret.ts';
import { accepted, alertsContract, evaluation, newModule, POLICY, refused, take, takeOne } from '../contract/alerts.ts';
import { alertProcess, type AlertProcess } from '../fakes/alert-processes.ts';
import { alertsHolding } from '../fakes/alerts.ts';
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
const newProcess = (file?: string): AlertProcess => alertProcess(table(), POLICY, file);
const inDatabase = <T extends object>(text: string): Promise<T[]> => query<T>(stack.file().state_database, text);
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
    let taken = 0;
    for (let waited = 0; waited < 20 && taken === 0; waited++) {
      taken = (await take(b.alerts, module)).length;
      await delay(1000);
    }
    expect(taken).toBe(1);
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

describe('without the database', () => {
  it('an alert is raised and can be sent at once, and is merged when the database is back, once', async () => {
    const module = newModule();
    const { alerts, line, later, log } = newProcess();
    await alerts.observe(evaluation(module, 'ok'));
    line.state = 'cut';
    expect((await alerts.observe(evaluation(module, 'critical'))).kind).toBe('raised');
    expect((await alerts.observe(evaluation(module, 'critical'))).kind).toBe('none');
    await alerts.settle(await takeOne(alerts, module), accepted());
    expect(await alerts.list({ module }, 0, 10)).toMatchObject({ complete: false, count: 1 });
    await expect(alerts.summary()).rejects.toThrow('does not answer');
    expect(await rowsOf(module)).toEqual([]);

    line.state = 'good';
    later(BREAK_MS);
    expect((await alerts.observe(evaluation(module, 'critical'))).kind).toBe('none');
    expect(await rowsOf(module)).toEqual([{ state: 'sent', level: 'critical', attempts: 1 }]);
    expect(await take(alerts, module)).toEqual([]);
    expect(await alerts.list({ module }, 0, 10)).toMatchObject({ count: 1, complete: true });
    expect((await newProcess().alerts.observe(evaluation(module, 'critical'))).kind).toBe('none');
    const events = log.events.map(({ event }) => event).filter((event) => event !== 'alerts.not_listed');
    expect(events).toEqual(['alerts.database_away', 'alerts.database_back']);
  });

  it('what was raised before it went is sent all the same', async () => {
    const module = newModule();
    const { alerts, line } = newProcess();
    await alerts.observe(evaluation(module, 'critical'));
    line.state = 'cut';
    expect(await take(alerts, module)).toHaveLength(1);
  });

  it('what could not be sent before it went is tried again all the same', async () => {
    const module = newModule();
    const { alerts, line, later } = newProcess();
    await alerts.observe(evaluation(module, 'critical'));
    await alerts.settle(await takeOne(alerts, module), refused(5));
    line.state = 'cut';
    expect(await take(alerts, module)).toEqual([]);
    later(5000);
    const again = await takeOne(alerts, module);
    await alerts.settle(again, accepted());
    line.state = 'good';
    later(BREAK_MS);
    await alerts.takeDue(1);
    expect(await rowsOf(module)).toEqual([{ state: 'sent', level: 'critical', attempts: 2 }]);
  });

  it('what another process has taken over is not sent from memory', async () => {
    const module = newModule();
    const [a, b] = [newProcess(), newProcess()];
    await a.alerts.observe(evaluation(module, 'critical'));
    await a.alerts.settle(await takeOne(a.alerts, module), refused(0));
    await takeOne(b.alerts, module);
    await take(a.alerts, module);
    a.line.state = 'cut';
    a.later(60_000);
    expect(await take(a.alerts, module)).toEqual([]);
  });

  it('what was not sent meanwhile is sent by one of them afterwards', async () => {
    const module = newModule();
    const { alerts, line, later } = newProcess();
    line.state = 'cut';
    await alerts.observe(evaluation(module, 'critical'));
    const alert = await takeOne(alerts, module);
    await alerts.settle(alert, refused(0));
    line.state = 'good';
    later(BREAK_MS);
    expect(await takeOne(alerts, module)).toMatchObject({ id: alert.id, attempts: 1 });
    expect(await take(newProcess().alerts, module)).toEqual([]);
  });

  it('an alert that is on its way is given to nobody while the rest is merged', async () => {
    const module = newModule();
    const { alerts, line, later } = newProcess();
    line.state = 'cut';
    await alerts.observe(evaluation(module, 'critical'));
    const alert = await takeOne(alerts, module);
    line.state = 'good';
    later(BREAK_MS);
    await alerts.observe(evaluation(module, 'critical'));
    expect(await take(newProcess().alerts, module)).toEqual([]);
    await alerts.settle(alert, accepted());
    expect(await rowsOf(module)).toEqual([{ state: 'sent', level: 'critical', attempts: 1 }]);
  });

  it('a success is not lost', async () => {
    const module = newModule();
    const { alerts, line, later } = newProcess();
    await alerts.observe(evaluation(module, 'warning'));
    const alert = await takeOne(alerts, module);
    line.state = 'cut';
    await alerts.settle(alert, accepted());
    line.state = 'good';
    later(BREAK_MS);
    await alerts.takeDue(1);
    expect(await rowsOf(module)).toEqual([{ state: 'sent', level: 'warning', attempts: 1 }]);
  });

  it('a commit whose answer was lost is neither raised nor sent a second time', async () => {
    const module = newModule();
    const { alerts, line, later } = newProcess();
    await alerts.observe(evaluation(module, 'ok'));
    line.state = 'lost';
    later(60_000);
    expect((await alerts.observe(evaluation(module, 'critical'))).kind).toBe('raised');
    const alert = await takeOne(alerts, module);
    line.state = 'good';
    later(BREAK_MS);
    expect(await take(alerts, module)).toEqual([]);
    await alerts.settle(alert, accepted());
    expect((await alerts.observe(evaluation(module, 'critical'))).kind).toBe('none');
    expect(await rowsOf(module)).toEqual([{ state: 'sent', level: 'critical', attempts: 1 }]);
    expect(await take(alerts, module)).toEqual([]);
  });

  it('a recovery is remembered, and the next trouble told', async () => {
    const module = newModule();
    const { alerts, line, later } = newProcess();
    await alerts.observe(evaluation(module, 'warning'));
    line.state = 'cut';
    expect((await alerts.observe(evaluation(module, 'ok'))).kind).toBe('recovered');
    line.state = 'good';
    later(BREAK_MS);
    expect((await alerts.observe(evaluation(module, 'ok'))).kind).toBe('none');
    expect((await newProcess().alerts.observe(evaluation(module, 'critical'))).kind).toBe('raised');
  });

  it('a restart alerts nobody twice and loses nothing, by the journal', async () => {
    const [told, waiting] = [newModule(), newModule()];
    const file = join(place, 'deep/alerts.json');
    const first = newProcess(file);
    await first.alerts.observe(evaluation(told, 'warning'));
    first.line.state = 'cut';
    await first.alerts.observe(evaluation(waiting, 'critical'));
    expect(statSync(file).mode & 0o777).toBe(0o600);

    const second = newProcess(file);
    second.line.state = 'cut';
    expect((await second.alerts.observe(evaluation(told, 'warning'))).kind).toBe('none');
    expect((await second.alerts.observe(evaluation(waiting, 'critical'))).kind).toBe('none');
    const due = await second.alerts.takeDue(1000);
    expect(due.map(({ module }) => module).toSorted()).toEqual([told, waiting].toSorted());
    for (const alert of due) await second.alerts.settle(alert, accepted());

    const third = newProcess(file);
    for (const module of [told, waiting]) {
      expect((await third.alerts.observe(evaluation(module, module === told ? 'warning' : 'critical'))).kind).toBe(
        'none',
      );
      expect(await rowsOf(module)).toMatchObject([{ state: 'sent', attempts: 1 }]);
    }
  });
});

describe('what is broken', () => {
  it('in a journal is set aside, and one that cannot be written holds nothing up', async () => {
    const file = join(place, 'broken.json');
    writeFileSync(file, '{"states": 7');
    const { alerts, line, log } = newProcess(file);
    line.state = 'cut';
    expect(log.events.map(({ event }) => event)).toEqual(['alerts.journal_not_read']);
    expect(readFileSync(`${file}.bad`, 'utf8')).toBe('{"states": 7');
    expect((await alerts.observe(evaluation(newModule(), 'warning'))).kind).toBe('raised');
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ held: [{ alert: { level: 'warning' } }] });
    const nowhere = newProcess('/proc/nowhere/alerts.json');
    nowhere.line.state = 'cut';
    expect((await nowhere.alerts.observe(evaluation(newModule(), 'warning'))).kind).toBe('raised');
    expect(nowhere.log.events.map(({ event }) => event)).toContain('alerts.journal_not_written');
    expect(await nowhere.alerts.trouble()).toMatch(/ENOENT/);
    expect(existsSync('/proc/nowhere')).toBe(false);
  });

  it('in a row of the table holds no other one up', async () => {
    const [bad, good] = [newModule(), newModule()];
    const { alerts } = newProcess();
    for (const module of [bad, good]) await alerts.observe(evaluation(module, 'critical'));
    await inDatabase(`UPDATE alert SET deliveries = '"nonsense"', raised_at = '2020-01-01' WHERE module = '${bad}'`);
    await inDatabase(`UPDATE alert_state SET state = '{"told": 5}' WHERE module = '${bad}'`);
    const other = newProcess();
    expect((await other.alerts.observe(evaluation(bad, 'critical'))).kind).toBe('raised');
    expect(await take(alerts, good)).toHaveLength(1);
    expect((await alerts.list({ module: good }, 0, 10)).complete).toBe(true);
  });

  it('in an alert that the database refuses holds no other one up, and it is sent from here', async () => {
    const [bad, good] = [newModule(), newModule()];
    const { alerts, line, later, log } = newProcess();
    line.state = 'cut';
    await alerts.observe({ ...evaluation(bad, 'critical'), at: '+275760-09-13T00:00:00.000Z' });
    await alerts.observe(evaluation(good, 'critical'));
    line.state = 'good';
    later(BREAK_MS);
    const due = await alerts.takeDue(1000);
    expect(due.map(({ module }) => module)).toEqual(expect.arrayContaining([bad, good]));
    expect(log.events.map(({ event }) => event)).toContain('alerts.not_merged');
    expect(await rowsOf(good)).toHaveLength(1);
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
    const clock = { wallMs: () => Date.now(), steadyMs: () => performance.now() };
    const options = {
      table: slow,
      reads: real,
      journal: undefined,
      policy: POLICY,
      runner: 'me',
      clock,
      log: memoryLog(),
    };
    const alerts = alertBook(options);
    const old = alerts.observe(evaluation(module, 'critical'));
    const next = alerts.observe(evaluation(module, 'ok'));
    frozen = false;
    thaw();
    expect([(await old).kind, (await next).kind]).toEqual(['raised', 'recovered']);
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
