// What every audit log must do, held against the fake and against the one in the database.

import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Audit, AuditSubject } from '../../shared/audit/port.ts';

export interface AuditBench {
  audit: Audit;
  /** Whose sign-ins were ended, in their order. */
  ended: string[];
}

/** Of a target that nobody else has. */
export function subject(change: Partial<AuditSubject> = {}): AuditSubject {
  const actor = { username: 'webadmin', address: '192.0.2.7', requestId: 'request-1' };
  return { actor, action: 'user.create', target: `target-${randomUUID()}`, ...change };
}

const ANY = 100;

export function auditContract(what: string, make: () => AuditBench): void {
  describe(`the audit log (${what})`, () => {
    it('has the intent before the deed and its outcome after it, with all that was said', async () => {
      const { audit } = make();
      const about = subject();
      const before = new Date().toISOString();
      const intent = await audit.intend(about, { groups: ['core_Red', 'core_Grün'] });
      const { results: open } = await audit.list({ target: about.target }, 0, ANY);
      expect(open.map(({ phase, result }) => [phase, result])).toEqual([['intent', null]]);
      await audit.conclude(intent, about, { result: 'failed', detail: { error: 'no "answer"' } });
      const { results, count } = await audit.list({ target: about.target }, 0, ANY);
      expect(count).toBe(2);
      const shared = {
        at: expect.any(String) as string,
        actor: 'webadmin',
        address: '192.0.2.7',
        action: 'user.create',
        target: about.target,
        request_id: 'request-1',
        hash: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      };
      const [outcome, first] = results;
      expect(first).toEqual({
        ...shared,
        seq: intent,
        phase: 'intent',
        result: null,
        intent: null,
        detail: first?.detail,
      });
      expect(outcome).toEqual({
        ...shared,
        seq: intent + 1,
        phase: 'outcome',
        result: 'failed',
        intent,
        detail: outcome?.detail,
      });
      expect(JSON.parse(first?.detail ?? '')).toEqual({ groups: ['core_Red', 'core_Grün'] });
      expect(JSON.parse(outcome?.detail ?? '')).toEqual({ error: 'no "answer"' });
      expect(new Date(first?.at ?? '').toISOString()).toBe(first?.at);
      expect((first?.at ?? '') >= before && (first?.at ?? '') <= (outcome?.at ?? '')).toBe(true);
    });

    it('numbers records without gaps, also those of many at once', async () => {
      const { audit } = make();
      const about = subject();
      const seqs = await Promise.all(Array.from({ length: 10 }, () => audit.intend(about)));
      const sorted = seqs.toSorted((a, b) => a - b);
      expect(sorted).toEqual(Array.from({ length: 10 }, (_, index) => (sorted[0] ?? 0) + index));
      expect(await audit.verify()).toMatchObject({ ok: true, first_broken: null });
    });

    it('lists newest first, in parts, with the number of all that match', async () => {
      const { audit } = make();
      const about = subject();
      const seqs: number[] = [];
      for (let n = 0; n < 5; n += 1) seqs.push(await audit.intend(about));
      const part = async (offset: number, limit: number) => {
        const { results, count } = await audit.list({ target: about.target }, offset, limit);
        return [results.map(({ seq }) => seq), count];
      };
      expect(await part(0, 2)).toEqual([[seqs[4], seqs[3]], 5]);
      expect(await part(4, 2)).toEqual([[seqs[0]], 5]);
      expect(await part(99, 2)).toEqual([[], 5]);
    });

    it('finds by actor, action, its first words, target and time', async () => {
      const { audit } = make();
      const { target } = subject();
      const actor = { username: 'vera', address: '', requestId: '' };
      for (const action of ['user.create', 'user.password.set', 'users.count', 'user'])
        await audit.intend({ ...subject({ action }), target });
      const boundary = new Date().toISOString();
      await delay(5);
      await audit.intend({ actor, action: 'group.create', target });
      const found = async (filter: object): Promise<string[]> =>
        (await audit.list({ target, ...filter }, 0, ANY)).results.map(({ action }) => action).toReversed();
      expect(await found({ action: 'user' })).toEqual(['user.create', 'user.password.set', 'user']);
      expect(await found({ action: 'user.' })).toEqual(['user.create', 'user.password.set']);
      expect(await found({ action: 'user.password' })).toEqual(['user.password.set']);
      expect(await found({ action: 'use' })).toEqual([]);
      expect(await found({ action: 'user%' })).toEqual([]);
      expect(await found({ actor: 'vera' })).toEqual(['group.create']);
      expect(await found({ actor: 'ver' })).toEqual([]);
      expect(await found({ since: boundary, action: 'group' })).toEqual(['group.create']);
      expect(await found({ until: boundary, action: 'group' })).toEqual([]);
      expect(await found({ target: `${target}x` })).toEqual([]);
    });

    it('shows in a list what was noted before it was asked', async () => {
      const { audit } = make();
      const about = subject({ action: 'sign-in' });
      await audit.note(about, 'denied', { reason: 'wrong' });
      const { results } = await audit.list({ target: about.target }, 0, ANY);
      expect(results).toMatchObject([{ phase: 'outcome', result: 'denied', intent: null }]);
    });

    it('ends what was signed for a person with the outcome that says so', async () => {
      const { audit, ended } = make();
      const about = subject({ action: 'user.deactivate' });
      const intent = await audit.intend(about);
      expect(ended).toEqual([]);
      await audit.conclude(intent, about, { result: 'ok', endsSignInsOf: 'Vera' });
      expect(ended).toEqual(['Vera']);
    });

    it('knows the intents that have no outcome, and what was intended later', async () => {
      const { audit } = make();
      const [first, second, done] = [subject(), subject(), subject()];
      const one = await audit.intend(first, { step: 1 });
      const two = await audit.intend(second);
      await audit.conclude(await audit.intend(done), done, { result: 'ok' });
      await delay(5);
      const later = new Date().toISOString();
      await delay(5);
      const three = await audit.intend(first);
      const mine = [first.target, second.target, done.target];
      const open = async (before: string) =>
        (await audit.unfinished(before, ANY))
          .filter(({ target }) => mine.includes(target))
          .map(({ seq, later: those }) => [seq, those.length]);
      expect(await open(later)).toEqual([
        [one, 1],
        [two, 0],
      ]);
      expect(await open(new Date(0).toISOString())).toEqual([]);
      await audit.conclude(one, first, { result: 'ok' });
      const end = new Date(Date.now() + 60_000).toISOString();
      expect(await open(end)).toEqual([
        [two, 0],
        [three, 0],
      ]);
      expect(await audit.unfinished(end, 1)).toHaveLength(1);
      await audit.conclude(two, second, { result: 'unknown' });
      await audit.conclude(three, first, { result: 'ok' });
      expect(await open(end)).toEqual([]);
    });

    it('tells of an open intent what was intended later of the same kind for the same, and was not refused', async () => {
      const { audit } = make();
      const about = subject({ action: 'user.update' });
      const { target } = about;
      const open = await audit.intend(about, { role: 'none' });
      const refused = subject({ target, action: 'user.deactivate' });
      await audit.conclude(await audit.intend(refused), refused, { result: 'failed' });
      await audit.intend(subject({ target, action: 'session.create' }));
      await audit.intend(subject({ target, action: 'user' }));
      const done = subject({ target, action: 'user.groups' });
      await audit.conclude(await audit.intend(done, { groups: ['core_"Red'] }), done, { result: 'unknown' });
      const end = new Date(Date.now() + 60_000).toISOString();
      const found = (await audit.unfinished(end, ANY)).find(({ seq }) => seq === open);
      expect(found?.later.map(({ action, detail }) => [action, JSON.parse(detail)])).toEqual([
        ['user', {}],
        ['user.groups', { groups: ['core_"Red'] }],
      ]);
    });

    it('finds itself as it was written', async () => {
      const { audit } = make();
      await audit.intend(subject());
      const { ok, records, first_broken } = await audit.verify();
      expect([ok, first_broken]).toEqual([true, null]);
      expect(records).toBe((await audit.list({}, 0, 1)).count);
    });
  });
}
