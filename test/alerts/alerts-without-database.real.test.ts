// Alerts while the database is away or loses answers, and with broken things in it or in the journal.

import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Status } from '../../shared/settings/status.ts';
import { alertDatabase, serverIsOld } from '../e2e/embedded/alert-database.ts';
import { accepted, evaluation, newModule, POLICY, refused, take, takeOne } from './alerts-contract.ts';
import { alertProcess, type AlertProcess } from './fake-alert-processes.ts';

const database = alertDatabase();
const { place, table, inDatabase } = database;
beforeAll(() => serverIsOld(database));

const newProcess = (file?: string): AlertProcess => alertProcess(table(), POLICY, file);
const rowsOf = (module: string): Promise<{ state: string; level: string; attempts: number }[]> =>
  inDatabase(`SELECT state, level, attempts FROM alert WHERE module = '${module}' ORDER BY raised_at, attempts`);

const BREAK_MS = 3000;
const GRACE_MS = 15_000;

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
    b.later(GRACE_MS);
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

  it('a process that does not hear of the trouble of another machine does not end it', async () => {
    const module = newModule();
    const [troubled, well] = [newProcess(), newProcess()];
    const shared = (status: Status) => ({ ...evaluation(module, status), isShared: true });
    expect((await troubled.alerts.observe(shared('critical'))).kind).toBe('raised');
    await well.alerts.observe(shared('critical'));
    for (const { line } of [troubled, well]) line.state = 'cut';
    for (let count = 0; count < 2; count++) {
      await take(well.alerts, module);
      await troubled.alerts.observe(shared('critical'));
      expect((await well.alerts.observe(shared('ok'))).kind).toBe('none');
    }
    for (const { line, later } of [troubled, well]) {
      line.state = 'good';
      later(60_000);
    }
    // Before it hears of the other one again.
    await well.alerts.observe(shared('ok'));
    await take(well.alerts, module);
    await well.alerts.observe(shared('ok'));
    expect((await well.alerts.observe(shared('critical'))).kind).toBe('none');
    expect((await troubled.alerts.observe(shared('critical'))).kind).toBe('none');
    expect(await rowsOf(module)).toHaveLength(1);
    well.later(GRACE_MS);
    expect((await well.alerts.observe(shared('ok'))).kind).toBe('recovered');
  });

  it('a restart alerts nobody twice and loses nothing, by the journal', async () => {
    const [reported, waiting] = [newModule(), newModule()];
    const file = join(place, 'deep/alerts.json');
    const first = newProcess(file);
    await first.alerts.observe(evaluation(reported, 'warning'));
    first.line.state = 'cut';
    await first.alerts.observe(evaluation(waiting, 'critical'));
    expect(statSync(file).mode & 0o777).toBe(0o600);

    const second = newProcess(file);
    second.line.state = 'cut';
    expect((await second.alerts.observe(evaluation(reported, 'warning'))).kind).toBe('none');
    expect((await second.alerts.observe(evaluation(waiting, 'critical'))).kind).toBe('none');
    const due = await second.alerts.takeDue(1000);
    expect(due.map(({ module }) => module).toSorted()).toEqual([reported, waiting].toSorted());
    for (const alert of due) await second.alerts.settle(alert, accepted());

    const third = newProcess(file);
    for (const module of [reported, waiting]) {
      expect((await third.alerts.observe(evaluation(module, module === reported ? 'warning' : 'critical'))).kind).toBe(
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
