// What every store of alerts must do, held against the memory of a process and against the table.

import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { AlertStore } from '../../shared/adapters/alert-store.ts';
import { NO_HISTORY } from '../../shared/domain/evaluate.ts';
import type { Status } from '../../shared/domain/status.ts';
import type { Alert, AlertEvaluation, Attempt } from '../../shared/ports/alerts.ts';

export const POLICY = { cooldownSeconds: 300, anybody: true };
export const LEASE = 30;

/** A module of its own for each test. */
export const newModule = (): string => `module-${randomUUID().slice(0, 8)}`;

export function evaluation(module: string, status: Status, at = new Date()): AlertEvaluation {
  const details = status === 'ok' ? [] : [`${module} stands at 91 %; critical from 90 %.`];
  return {
    module,
    status,
    shouldAlert: status !== 'ok',
    message: `${module} is ${status}.`,
    details,
    at: at.toISOString(),
    ...NO_HISTORY,
  };
}

const RECIPIENT = { channel: 'email', recipient: 'duty@example.org', at: '2026-01-02T03:04:05.000Z' } as const;
export const ACCEPTED: Attempt = {
  deliveries: [{ ...RECIPIENT, accepted: true, detail: '250 queued' }],
  state: 'sent',
  reason: null,
  pauseSeconds: null,
};
export const refused = (pauseSeconds: number | null): Attempt => ({
  deliveries: [{ ...RECIPIENT, accepted: false, detail: '451 later' }],
  state: pauseSeconds === null ? 'failed' : 'pending',
  reason: '451 later',
  pauseSeconds,
});

export function alertStoreContract(what: string, make: () => AlertStore): void {
  const raise = async (store: AlertStore, module: string, status: Status = 'warning'): Promise<Alert> => {
    const { observation } = await store.apply(evaluation(module, status), POLICY, randomUUID());
    if (observation.kind !== 'raised') throw new Error(`${observation.kind}, not raised`);
    return observation.alert;
  };
  const take = async (store: AlertStore, module: string, runner = 'me', lease = LEASE): Promise<Alert[]> =>
    (await store.takeDue(runner, 1000, lease)).filter((alert) => alert.module === module);
  const only = async (store: AlertStore, module: string): Promise<Alert | undefined> =>
    (await store.list({ module }, 0, 10)).results[0];

  describe(`a store of alerts (${what})`, () => {
    it('keeps what was raised, with everything that is said about it', async () => {
      const store = make();
      const module = newModule();
      const at = new Date(Date.now() - 5000);
      await store.apply({ ...evaluation(module, 'note', at), shouldAlert: false }, POLICY, randomUUID());
      const alert = await raise(store, module, 'critical');
      expect(await only(store, module)).toEqual(alert);
      expect(alert).toMatchObject({
        module,
        level: 'critical',
        message: `${module} is critical.`,
        details: [`${module} stands at 91 %; critical from 90 %.`],
        since: at.toISOString(),
        state: 'pending',
        attempts: 0,
        sent_at: null,
        deliveries: [],
      });
    });

    it('raises an unchanged level once, and an escalation at once', async () => {
      const store = make();
      const module = newModule();
      const kinds: string[] = [];
      const statuses = ['warning', 'warning', 'critical', 'critical', 'warning', 'ok', 'ok'] as const;
      for (const [second, status] of statuses.entries()) {
        const at = new Date(Date.UTC(2026, 0, 1, 0, 0, second));
        const { observation } = await store.apply(evaluation(module, status, at), POLICY, randomUUID());
        kinds.push(observation.kind);
      }
      expect(kinds).toEqual(['raised', 'none', 'raised', 'none', 'none', 'recovered', 'none']);
      expect((await store.list({ module }, 0, 10)).results.map(({ level }) => level)).toEqual(['critical', 'warning']);
    });

    it('keeps what the cooldown suppressed, with the reason', async () => {
      const store = make();
      const module = newModule();
      const alert = await raise(store, module);
      await take(store, module);
      await store.settle('me', alert, ACCEPTED);
      for (const status of ['ok', 'warning'] as const)
        await store.apply(evaluation(module, status), POLICY, randomUUID());
      expect((await store.list({ module, state: 'suppressed' }, 0, 10)).results).toMatchObject([
        { level: 'warning', reason: expect.stringMatching(/less than 300 s before/), next_attempt_at: null },
      ]);
    });

    it('keeps what measurements in a row have left behind, and the time since when, until the module is ok', async () => {
      const store = make();
      const module = newModule();
      const at = new Date(Date.now() - 60_000);
      const row = { failuresInRow: 2, pollsInRow: 200 };
      await store.apply({ ...evaluation(module, 'warning', at), ...row }, POLICY, randomUUID());
      const { state } = await store.apply({ ...evaluation(module, 'warning'), ...row }, POLICY, randomUUID());
      expect(state).toMatchObject({ sinceMs: at.getTime(), history: { failuresInRow: 2, pollsInRow: 100 } });
      expect((await store.apply(evaluation(module, 'ok'), POLICY, randomUUID())).state).toMatchObject({
        sinceMs: null,
        history: null,
      });
    });

    it('gives a due alert to one of many', async () => {
      const store = make();
      const module = newModule();
      const alert = await raise(store, module);
      const taken = await Promise.all(['a', 'b', 'c', 'd'].map((runner) => take(store, module, runner)));
      expect(taken.flat()).toEqual([alert]);
      expect(await take(store, module, 'late')).toEqual([]);
    });

    it('gives it to another when the lease has ended', async () => {
      const store = make();
      const module = newModule();
      await raise(store, module);
      expect(await take(store, module, 'dies', 0.2)).toHaveLength(1);
      await delay(250);
      expect(await take(store, module, 'heir')).toHaveLength(1);
    });

    it('gives back what was not sent, after the pause, and starts the cooldown with the success', async () => {
      const store = make();
      const module = newModule();
      const alert = await raise(store, module);
      await take(store, module);
      await store.settle('me', alert, refused(0.3));
      expect(await take(store, module)).toEqual([]);
      await delay(350);
      const [again] = await take(store, module);
      expect(again).toMatchObject({ id: alert.id, attempts: 1, state: 'pending', reason: '451 later' });
      if (again === undefined) throw new Error('nothing to take');
      const known = await store.settle('me', again, ACCEPTED);
      expect(known?.state).toMatchObject({ told: 'warning', raised: { id: alert.id, sent: true } });
      expect(await only(store, module)).toMatchObject({
        state: 'sent',
        attempts: 2,
        reason: null,
        next_attempt_at: null,
        sent_at: expect.stringMatching(/^\d{4}-/),
        deliveries: [{ accepted: true, detail: '250 queued' }],
      });
      expect(await take(store, module)).toEqual([]);
    });

    it('lets a standing level be raised again when the alert about it was given up', async () => {
      const store = make();
      const module = newModule();
      const alert = await raise(store, module);
      await take(store, module);
      await store.settle('me', alert, refused(null));
      expect(await only(store, module)).toMatchObject({ state: 'failed', reason: '451 later' });
      expect((await store.summary()).failed).toBeGreaterThanOrEqual(1);
      expect((await raise(store, module)).id).not.toBe(alert.id);
    });

    it('lists newest first, filtered and in pages', async () => {
      const store = make();
      const module = newModule();
      const at = (seconds: number): Date => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds));
      const policy = { cooldownSeconds: 1, anybody: false };
      for (let second = 0; second < 10; second++) {
        const status = second % 2 === 0 ? 'warning' : 'ok';
        await store.apply(evaluation(module, status, at(second)), policy, randomUUID());
      }
      const seconds = async (filter: object, offset = 0, limit = 10): Promise<number[]> =>
        (await store.list({ module, ...filter }, offset, limit)).results.map((alert) =>
          new Date(alert.raised_at).getUTCSeconds(),
        );
      expect(await seconds({})).toEqual([8, 6, 4, 2, 0]);
      expect(await seconds({}, 1, 2)).toEqual([6, 4]);
      expect(await seconds({}, 100, 2)).toEqual([]);
      expect(await seconds({ since: at(4).toISOString() })).toEqual([8, 6, 4]);
      expect(await seconds({ until: at(4).toISOString() })).toEqual([2, 0]);
      expect(await seconds({ level: 'critical' })).toEqual([]);
      expect(await seconds({ state: 'suppressed', level: 'warning' })).toHaveLength(5);
      expect((await store.list({ module }, 1, 2)).count).toBe(5);
    });

    it('keeps any text', async () => {
      const store = make();
      const module = newModule();
      const message = `'; DROP TABLE alert; -- \u0000 \u2028 "quotes" \\ 🚒`;
      const { observation } = await store.apply(
        { ...evaluation(module, 'warning'), message, details: [message] },
        POLICY,
        randomUUID(),
      );
      if (observation.kind !== 'raised') throw new Error('not raised');
      expect(await only(store, module)).toEqual(observation.alert);
      expect(observation.alert.message).toBe(message.replace('\0', ''));
    });
  });
}
