// Answers of the database that come late, get lost or say no at an awkward moment: nothing is given out twice, nothing
// is lost. Each scenario was once a defect.

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import type { Alert } from '../../shared/alerts/port.ts';
import type { AlertTable } from '../../shared/alerts/table.ts';
import { type Status, STATUSES } from '../../shared/settings/status.ts';
import { alertDatabase } from '../e2e/embedded/alert-database.ts';
import { accepted, evaluation, newModule, POLICY, refused, take, takeOne } from './alerts-contract.ts';
import { alertProcess, type AlertProcess } from './fake-alert-processes.ts';

const database = alertDatabase();
const { place, inDatabase } = database;
let table: AlertTable;
beforeAll(() => {
  table = database.table();
});

const rowsOf = (module: string): Promise<object[]> =>
  inDatabase(`SELECT state FROM alert WHERE module = '${module}' ORDER BY raised_at`);
/** A process over a table of which some answers are changed. */
const processOver = (changed: Partial<AlertTable>, file?: string): AlertProcess =>
  alertProcess({ ...table, ...changed }, POLICY, file);
const aMoment = (): Promise<void> => delay(60);
const BREAK_MS = 3000;

/** Answers that wait once it is shut. */
function gate() {
  const { promise, resolve } = Promise.withResolvers<void>();
  let shut = false;
  return { shut: () => (shut = true), open: resolve, pass: async () => (shut ? promise : undefined) };
}

async function takeWhenThere({ alerts }: AlertProcess, module: string): Promise<Alert> {
  for (;;) {
    const [alert] = await take(alerts, module);
    if (alert !== undefined) return alert;
  }
}

describe('an alert is not given out again', () => {
  it('when it is settled while something else is being merged', async () => {
    const [first, second] = [newModule(), newModule()];
    const merging = gate();
    const { alerts, line, later } = processOver({
      mergeState: async (...args) => {
        await merging.pass();
        return table.mergeState(...args);
      },
    });
    for (const module of [first, second]) await alerts.observe(evaluation(module, 'critical'));
    const one = (await alerts.takeDue(100)).find(({ module }) => module === first);
    if (one === undefined) throw new Error('nothing to send');
    line.state = 'cut';
    await alerts.observe(evaluation(second, 'warning'));
    line.state = 'good';
    later(BREAK_MS);
    merging.shut();
    const observed = alerts.observe(evaluation(second, 'warning'));
    await aMoment();
    const settled = alerts.settle(one, accepted());
    const again = alerts.takeDue(100);
    await aMoment();
    merging.open();
    await Promise.all([observed, settled]);
    expect((await again).map(({ id }) => id)).not.toContain(one.id);
  });

  it('when the answer about it is lost while it is on its way', async () => {
    const module = newModule();
    const answer = Promise.withResolvers<void>();
    const process = processOver({
      apply: async (...args) => {
        await table.apply(...args);
        await answer.promise;
        throw new AppError('unavailable', 'timed out');
      },
    });
    const observed = process.alerts.observe(evaluation(module, 'critical'));
    await takeWhenThere(process, module);
    answer.resolve();
    await observed;
    expect(await take(process.alerts, module)).toEqual([]);
  });

  it('when the answer about it comes after it was sent, and the database goes away then', async () => {
    const module = newModule();
    const answer = Promise.withResolvers<void>();
    const process = processOver({
      apply: async (...args) => {
        const applied = await table.apply(...args);
        await answer.promise;
        return applied;
      },
    });
    const observed = process.alerts.observe(evaluation(module, 'critical'));
    await process.alerts.settle(await takeWhenThere(process, module), accepted());
    answer.resolve();
    await observed;
    process.line.state = 'cut';
    expect(await take(process.alerts, module)).toEqual([]);
  });

  it('by another process that was cut off as well while it was sent from memory', async () => {
    const module = newModule();
    const [a, b] = [processOver({}), processOver({})];
    await a.alerts.observe(evaluation(module, 'critical'));
    await a.alerts.settle(await takeOne(a.alerts, module), refused(0));
    for (const { line } of [a, b]) line.state = 'cut';
    await b.alerts.takeDue(1);
    await a.alerts.settle(await takeOne(a.alerts, module), accepted());
    for (const { line } of [a, b]) line.state = 'good';
    b.later(BREAK_MS);
    expect(await take(b.alerts, module)).toEqual([]);
  });

  it('after a database that was read-only for a moment', async () => {
    const module = newModule();
    const { alerts, line, later } = processOver({});
    line.state = 'cut';
    await alerts.observe(evaluation(module, 'critical'));
    await alerts.settle(await takeOne(alerts, module), accepted());
    await inDatabase('ALTER DATABASE holdfast SET default_transaction_read_only = on');
    line.state = 'good';
    later(BREAK_MS);
    await alerts.takeDue(1);
    await inDatabase('BEGIN READ WRITE; ALTER DATABASE holdfast RESET default_transaction_read_only; COMMIT');
    later(60_000);
    expect((await alerts.observe(evaluation(module, 'critical'))).kind).toBe('none');
    expect(await rowsOf(module)).toEqual([{ state: 'sent' }]);
  });
});

describe('an alert is not lost', () => {
  it('when it is raised while the database is asked whose the others are', async () => {
    const [waiting, fresh] = [newModule(), newModule()];
    const asking = gate();
    const { alerts, line } = processOver({
      idsOf: async (...args) => {
        const ids = await table.idsOf(...args);
        await asking.pass();
        return ids;
      },
    });
    await alerts.observe(evaluation(waiting, 'critical'));
    await alerts.settle(await takeOne(alerts, waiting), refused(60));
    asking.shut();
    const taking = alerts.takeDue(10);
    await aMoment();
    await alerts.observe(evaluation(fresh, 'critical'));
    asking.open();
    await taking;
    line.state = 'cut';
    expect(await take(alerts, fresh)).toHaveLength(1);
  });

  it('by ten others that cannot be read, nor by one with a time without end', async () => {
    const [bad, good] = [newModule(), newModule()];
    const { alerts, log } = processOver({});
    const insert = (since: string, deliveries: string): Promise<object[]> =>
      inDatabase(`
        INSERT INTO alert (id, module, level, message, details, since, raised_at, state, attempts, next_attempt_at,
          deliveries, runner)
        SELECT '${randomUUID()}', '${bad}', 'note', 'x', '[]', '${since}', '2020-01-01', 'pending', 0, now(),
          '${deliveries}', runner FROM alert WHERE module = '${good}'`);
    await alerts.observe(evaluation(good, 'critical'));
    for (let row = 0; row < 10; row++) await insert('2020-01-01', '"nonsense"');
    await insert('-infinity', '[]');
    const taken = [...(await alerts.takeDue(10)), ...(await alerts.takeDue(10))].map(({ module }) => module);
    expect(taken).toContain(good);
    expect(log.events.map(({ event }) => event)).not.toContain('alerts.database_away');
    expect(new Set((await rowsOf(bad)).map((row) => JSON.stringify(row)))).toEqual(new Set(['{"state":"failed"}']));
  });

  it('when the process after a killed one is killed as well', async () => {
    const module = newModule();
    const file = join(place, 'heirs.json');
    await processOver({}, file).alerts.observe(evaluation(module, 'critical'));
    const second = processOver({}, file);
    await takeOne(second.alerts, module);
    await aMoment();
    expect(await take(processOver({}, file).alerts, module)).toHaveLength(1);
  });

  it('when a recovery is seen elsewhere while it is sent: the next trouble is told', async () => {
    const module = newModule();
    const policy = { cooldownSeconds: 0, anybody: true };
    const [a, b] = [alertProcess(table, policy), alertProcess(table, policy)];
    await a.alerts.observe(evaluation(module, 'critical'));
    const alert = await takeOne(a.alerts, module);
    expect((await b.alerts.observe(evaluation(module, 'ok'))).kind).toBe('recovered');
    await a.alerts.settle(alert, accepted());
    expect((await b.alerts.observe(evaluation(module, 'critical'))).kind).toBe('raised');
  });

  it('behind the history of a long outage', async () => {
    const [flapping, fresh] = [newModule(), newModule()];
    const { alerts, line, later } = processOver({
      mergeAlert: async (...args) => {
        await delay(50);
        return table.mergeAlert(...args);
      },
    });
    line.state = 'cut';
    await alerts.observe(evaluation(flapping, 'critical'));
    await alerts.settle(await takeOne(alerts, flapping), accepted());
    for (let flap = 0; flap < 150; flap++)
      for (const status of ['ok', 'critical'] as const) await alerts.observe(evaluation(flapping, status));
    line.state = 'good';
    later(BREAK_MS);
    const began = performance.now();
    await alerts.observe(evaluation(fresh, 'critical'));
    await takeOne(alerts, fresh);
    expect(performance.now() - began).toBeLessThan(12_000);
  });
});

type Step = { kind: 'take' } | { kind: 'observe'; status: Status } | { kind: 'settle'; success: boolean };

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('observe' as const), status: fc.constantFrom(...STATUSES) }),
  fc.record({ kind: fc.constant('take' as const) }),
  fc.record({ kind: fc.constant('settle' as const), success: fc.boolean() }),
);

describe('calls that overlap at random', () => {
  it('give nothing out twice, nor again after it was sent, and leave nothing behind', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { minLength: 5, maxLength: 25 }), async (steps) => {
        const modules = [newModule(), newModule()];
        const { alerts } = alertProcess(table, { cooldownSeconds: 0, anybody: true });
        const wrong: string[] = [];
        const [flying, sent] = [[] as Alert[], new Set<string>()];
        const takeAll = async (): Promise<void> => {
          for (const alert of (await alerts.takeDue(1000)).filter(({ module }) => modules.includes(module))) {
            if (sent.has(alert.id)) wrong.push('given out after it was sent');
            if (flying.some(({ id }) => id === alert.id)) wrong.push('given out twice');
            flying.push(alert);
          }
        };
        const settleOne = async (success: boolean): Promise<void> => {
          const alert = flying.shift();
          if (alert !== undefined && success) sent.add(alert.id);
          if (alert !== undefined) await alerts.settle(alert, success ? accepted() : refused(0));
        };
        const running: Promise<unknown>[] = [];
        for (const [index, step] of steps.entries()) {
          const module = modules[index % 2] ?? '';
          if (step.kind === 'take') running.push(takeAll());
          else if (step.kind === 'settle') running.push(settleOne(step.success));
          else running.push(alerts.observe(evaluation(module, step.status)));
          if (index % 3 === 0) await delay(index % 5);
        }
        await Promise.all(running);
        for (let round = 0; round < 4; round++) {
          await takeAll();
          while (flying.length > 0) await settleOne(true);
        }
        for (const module of modules) {
          const { results } = await alerts.list({ module }, 0, 100);
          if (results.some(({ state }) => state === 'pending')) wrong.push('left pending');
        }
        expect(wrong).toEqual([]);
      }),
      { numRuns: 80 },
    );
  });
});
