// What every Alerts must do, held against one in memory alone and against the one over our own database.

import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Alert, AlertEvaluation, AlertFilter, Alerts, Attempt } from '../../shared/alerts/port.ts';
import { NO_HISTORY, type Status } from '../../shared/settings/status.ts';

export const POLICY = { cooldownSeconds: 300, anybody: true };

/** A module of its own for each test. */
export const newModule = (): string => `module-${randomUUID().slice(0, 8)}`;

export function evaluation(module: string, status: Status, at = new Date()): AlertEvaluation {
  const details = status === 'ok' ? [] : [`${module} stands at 91 %; critical from 90 %.`];
  const reported = {
    message: `${module} is ${status}.`,
    details,
    remedies: details.map(() => 'Free some room.'),
    at: at.toISOString(),
  };
  return { module, status, shouldAlert: status !== 'ok', ...reported, ...NO_HISTORY };
}

const RECIPIENT = { channel: 'email', recipient: 'duty@example.org' } as const;
export const accepted = (): Attempt => ({
  deliveries: [{ ...RECIPIENT, at: new Date().toISOString(), accepted: true, detail: '250 queued' }],
  state: 'sent',
  reason: null,
  pauseSeconds: null,
});
export const refused = (pauseSeconds: number | null): Attempt => ({
  deliveries: [{ ...RECIPIENT, at: new Date().toISOString(), accepted: false, detail: '451 later' }],
  state: pauseSeconds === null ? 'failed' : 'pending',
  reason: '451 later',
  pauseSeconds,
});

/** The alerts of that module among those that are due. */
export async function take(alerts: Alerts, module: string): Promise<Alert[]> {
  return (await alerts.takeDue(1000)).filter((alert) => alert.module === module);
}

/** The one alert that is due. */
export async function takeOne(alerts: Alerts, module: string): Promise<Alert> {
  const [alert, ...more] = await take(alerts, module);
  if (alert === undefined || more.length > 0) throw new Error(`${more.length + (alert ? 1 : 0)} alerts are due, not 1`);
  return alert;
}

export function alertsContract(what: string, make: () => Alerts): void {
  const raise = async (alerts: Alerts, module: string, status: Status = 'warning'): Promise<Alert> => {
    const observation = await alerts.observe(evaluation(module, status));
    if (observation.kind !== 'raised') throw new Error(`${observation.kind}, not raised`);
    return observation.alert;
  };
  const only = async (alerts: Alerts, module: string): Promise<Alert | undefined> =>
    (await alerts.list({ module }, 0, 10)).results[0];

  describe(`alerts (${what})`, () => {
    it('keep what was raised, with everything that is said about it', async () => {
      const alerts = make();
      const module = newModule();
      const at = new Date(Date.now() - 5000);
      await alerts.observe({ ...evaluation(module, 'note', at), shouldAlert: false });
      const alert = await raise(alerts, module, 'critical');
      expect(await only(alerts, module)).toEqual({ ...alert, next_attempt_at: expect.any(String) });
      expect(alert).toMatchObject({
        module,
        level: 'critical',
        message: `${module} is critical.`,
        details: [`${module} stands at 91 %; critical from 90 %.`],
        remedies: ['Free some room.'],
        since: at.toISOString(),
        state: 'pending',
        attempts: 0,
        sent_at: null,
        deliveries: [],
      });
    });

    it('raise an unchanged level once, and an escalation at once', async () => {
      const alerts = make();
      const module = newModule();
      const kinds: string[] = [];
      const statuses = ['warning', 'warning', 'critical', 'critical', 'warning', 'ok', 'ok'] as const;
      for (const [second, status] of statuses.entries()) {
        const at = new Date(Date.UTC(2026, 0, 1, 0, 0, second));
        kinds.push((await alerts.observe(evaluation(module, status, at))).kind);
      }
      expect(kinds).toEqual(['raised', 'none', 'raised', 'none', 'none', 'recovered', 'none']);
      expect((await alerts.list({ module }, 0, 10)).results.map(({ level }) => level)).toEqual(['critical', 'warning']);
    });

    it('raise three for ok, warning, ok, warning, critical, ten minutes apart', async () => {
      const alerts = make();
      const module = newModule();
      const raised: string[] = [];
      const start = Date.now() - 3_600_000;
      for (const [index, status] of (['ok', 'warning', 'ok', 'warning', 'critical'] as const).entries()) {
        const at = new Date(start + index * 600_000);
        const observation = await alerts.observe(evaluation(module, status, at));
        if (observation.kind !== 'raised') continue;
        raised.push(observation.alert.level);
        const attempt = accepted();
        const deliveries = attempt.deliveries.map((each) => ({ ...each, at: at.toISOString() }));
        await alerts.settle(await takeOne(alerts, module), { ...attempt, deliveries });
      }
      expect(raised).toEqual(['warning', 'warning', 'critical']);
    });

    it('keep what the cooldown suppressed, with the reason', async () => {
      const alerts = make();
      const module = newModule();
      await raise(alerts, module);
      await alerts.settle(await takeOne(alerts, module), accepted());
      for (const status of ['ok', 'warning'] as const) await alerts.observe(evaluation(module, status));
      expect((await alerts.list({ module, state: 'suppressed' }, 0, 10)).results).toMatchObject([
        { level: 'warning', reason: expect.stringMatching(/less than 300 s before/), next_attempt_at: null },
      ]);
    });

    it('remember what measurements in a row have left behind, until the module is ok', async () => {
      const alerts = make();
      const module = newModule();
      await alerts.observe({ ...evaluation(module, 'warning'), failuresInRow: 2, pollsInRow: 200 });
      expect(await alerts.history(module)).toEqual({ failuresInRow: 2, pollsInRow: 100 });
      await alerts.observe(evaluation(module, 'ok'));
      expect(await alerts.history(module)).toEqual(NO_HISTORY);
    });

    it('give out a due alert once until it is settled', async () => {
      const alerts = make();
      const module = newModule();
      const { id } = await raise(alerts, module);
      const taken = await Promise.all([1, 2, 3].map(() => take(alerts, module)));
      expect(taken.flat().map((alert) => alert.id)).toEqual([id]);
      expect(await take(alerts, module)).toEqual([]);
    });

    it('give back what was not sent, after the pause, and start the cooldown with the success', async () => {
      const alerts = make();
      const module = newModule();
      const { id } = await raise(alerts, module);
      await alerts.settle(await takeOne(alerts, module), refused(1));
      expect(await take(alerts, module)).toEqual([]);
      await delay(1100);
      const again = await takeOne(alerts, module);
      expect(again).toMatchObject({ id, attempts: 1, state: 'pending', reason: '451 later' });
      await alerts.settle(again, accepted());
      expect((await alerts.observe(evaluation(module, 'ok'))).kind).toBe('recovered');
      expect((await alerts.observe(evaluation(module, 'warning'))).kind).toBe('suppressed');
      expect((await alerts.list({ module, state: 'sent' }, 0, 10)).results).toMatchObject([
        {
          id,
          attempts: 2,
          reason: null,
          next_attempt_at: null,
          sent_at: expect.stringMatching(/^\d{4}-/),
          deliveries: [{ accepted: true, detail: '250 queued' }],
        },
      ]);
    });

    it('raise a standing level again when the alert about it was given up', async () => {
      const alerts = make();
      const module = newModule();
      const { id } = await raise(alerts, module);
      await alerts.settle(await takeOne(alerts, module), refused(null));
      expect((await alerts.list({ module, state: 'failed' }, 0, 10)).results).toMatchObject([
        { id, reason: '451 later' },
      ]);
      expect((await alerts.summary()).failed_unreached).toBeGreaterThanOrEqual(1);
      expect((await raise(alerts, module)).id).not.toBe(id);
    });

    it('are listed newest first, filtered and in pages', async () => {
      const alerts = make();
      const module = newModule();
      const at = (second: number): Date => new Date(Date.UTC(2026, 0, 1, 0, 0, second * 400));
      for (let turn = 0; turn < 10; turn++)
        await alerts.observe(evaluation(module, turn % 2 === 0 ? 'warning' : 'ok', at(turn)));
      const turns = async (filter: AlertFilter, offset = 0, limit = 10): Promise<number[]> =>
        (await alerts.list({ module, ...filter }, offset, limit)).results.map(
          (alert) => (Date.parse(alert.raised_at) - at(0).getTime()) / 400_000,
        );
      expect(await turns({})).toEqual([8, 6, 4, 2, 0]);
      expect(await turns({}, 1, 2)).toEqual([6, 4]);
      expect(await turns({}, 100, 2)).toEqual([]);
      expect(await turns({ since: at(4).toISOString() })).toEqual([8, 6, 4]);
      expect(await turns({ until: at(4).toISOString() })).toEqual([2, 0]);
      expect(await turns({ level: 'critical' })).toEqual([]);
      expect(await turns({ state: 'suppressed', level: 'warning' })).toHaveLength(4);
      expect((await alerts.list({ module }, 1, 2)).count).toBe(5);
    });

    it('take any text', async () => {
      const alerts = make();
      const module = newModule();
      const message = `'; DROP TABLE alert; -- \u0000 \u2028 "quotes" \\ 🚒 \ud83d`;
      const observation = await alerts.observe({ ...evaluation(module, 'warning'), message, details: [message] });
      if (observation.kind !== 'raised') throw new Error('not raised');
      const kept = message.replace('\0', '').toWellFormed();
      expect(await only(alerts, module)).toMatchObject({ message: kept, details: [kept] });
    });
  });
}
