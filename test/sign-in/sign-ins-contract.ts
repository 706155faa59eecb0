// What every SignIns must do, held against the fake and against the tables. Names are new in each test: the real one is shared.

import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { MAX_SESSIONS, type SignIns } from '../../shared/sign-in/port.ts';

export interface SignInsUnderTest {
  signIns: SignIns;
  /** What an outcome in the audit log does. */
  endAllOf: (username: string) => Promise<void>;
}

export const inHours = (hours: number): string => new Date(Date.now() + hours * 3_600_000).toISOString();
const FIRST = { page: 1, pageSize: 200 };

let people = 0;
export const holder = (): string => `Person.${(people += 1)}-${randomUUID().slice(0, 8)}`;

export const sessionFor = (username: string, hours = 12) => ({
  username,
  expiresAt: inHours(hours),
  address: '192.0.2.7',
  userAgent: 'Browser/1',
});

export const tokenFor = (owner: string, hours = 12) => ({
  name: 'backup',
  scope: 'users' as const,
  owner,
  expiresAt: inHours(hours),
});

export function signInsContract(what: string, make: () => SignInsUnderTest): void {
  describe(`sign-ins (${what})`, () => {
    it('recognize a session by its text, as a session only, with what was said of it', async () => {
      const { signIns } = make();
      const wanted = sessionFor(holder());
      const { text, ...session } = await signIns.openSession(wanted);
      expect(session).toEqual({ ...wanted, id: expect.any(String), createdAt: expect.any(String) });
      expect(Math.abs(Date.parse(session.createdAt) - Date.now())).toBeLessThan(60_000);
      const { id, username, expiresAt } = session;
      expect(await signIns.recognize('session', text)).toEqual({ kind: 'session', id, username, expiresAt });
      expect(await signIns.recognize('token', text)).toBeUndefined();
      expect(await signIns.sessions(username, FIRST)).toEqual({ results: [session], count: 1 });
    });

    it('recognize a token by its text, as a token only, with its scope', async () => {
      const { signIns } = make();
      const wanted = tokenFor(holder());
      const { text, ...token } = await signIns.createToken(wanted);
      expect(text).toMatch(/^hft_\S{20,}$/);
      expect(token).toEqual({ ...wanted, id: expect.any(String), createdAt: expect.any(String) });
      const { id, owner: username, scope, expiresAt } = token;
      expect(await signIns.recognize('token', text)).toEqual({ kind: 'token', id, username, scope, expiresAt });
      expect(await signIns.recognize('session', text)).toBeUndefined();
      expect(await signIns.token(id)).toEqual(token);
      expect((await signIns.tokens(FIRST)).results).toContainEqual(token);
    });

    it('take the id that is given', async () => {
      const { signIns } = make();
      const [one, two] = [randomUUID(), randomUUID()];
      expect((await signIns.openSession({ ...sessionFor(holder()), id: one })).id).toBe(one);
      expect((await signIns.createToken({ ...tokenFor(holder()), id: two })).id).toBe(two);
    });

    it('do not show the text again', async () => {
      const { signIns } = make();
      const name = holder();
      const session = await signIns.openSession(sessionFor(name));
      const token = await signIns.createToken(tokenFor(name));
      const shown = JSON.stringify([await signIns.sessions(name, FIRST), await signIns.tokens(FIRST)]);
      expect([shown.includes(session.text), shown.includes(token.text)]).toEqual([false, false]);
    });

    it('refuse what was never signed', async () => {
      const { signIns } = make();
      for (const text of ['', 'hft_', 'a.b.c', 'x'.repeat(100_000), '\0', 'hft_eyJhbGciOiJub25lIn0.e30.'])
        expect([
          text.slice(0, 20),
          await signIns.recognize('session', text),
          await signIns.recognize('token', text),
        ]).toEqual([text.slice(0, 20), undefined, undefined]);
    });

    it('end with their time, are not listed then, and cannot be ended', async () => {
      const { signIns } = make();
      const name = holder();
      const session = await signIns.openSession(sessionFor(name, -1));
      const token = await signIns.createToken(tokenFor(name, -1));
      expect(await signIns.recognize('session', session.text)).toBeUndefined();
      expect(await signIns.recognize('token', token.text)).toBeUndefined();
      expect(await signIns.sessions(name, FIRST)).toEqual({ results: [], count: 0 });
      expect(await signIns.token(token.id)).toBeUndefined();
      expect([await signIns.endSession(name, session.id), await signIns.endToken(token.id)]).toEqual([false, false]);
    });

    it('end a session of its owner only, in any case of the name, once', async () => {
      const { signIns } = make();
      const [name, other] = [holder(), holder()];
      const { id, text } = await signIns.openSession(sessionFor(name));
      const kept = await signIns.openSession(sessionFor(name));
      expect(await signIns.endSession(other, id)).toBe(false);
      expect(await signIns.recognize('session', text)).toBeDefined();
      expect(await signIns.endSession(name.toUpperCase(), id)).toBe(true);
      expect(await signIns.endSession(name, id)).toBe(false);
      expect(await signIns.recognize('session', text)).toBeUndefined();
      expect(await signIns.recognize('session', kept.text)).toBeDefined();
    });

    it('end all sessions of a person, and nobody else’s', async () => {
      const { signIns } = make();
      const [name, other] = [holder(), holder()];
      const mine = [await signIns.openSession(sessionFor(name)), await signIns.openSession(sessionFor(name))];
      const theirs = await signIns.openSession(sessionFor(other));
      const token = await signIns.createToken(tokenFor(name));
      expect(await signIns.endSessions(name.toLowerCase())).toBe(2);
      expect(await signIns.endSessions(name)).toBe(0);
      for (const { text } of mine) expect(await signIns.recognize('session', text)).toBeUndefined();
      expect(await signIns.recognize('session', theirs.text)).toBeDefined();
      expect(await signIns.recognize('token', token.text)).toBeDefined();
    });

    it('end a token once', async () => {
      const { signIns } = make();
      const { id, text } = await signIns.createToken(tokenFor(holder()));
      expect([await signIns.endToken(id), await signIns.endToken(id)]).toEqual([true, false]);
      expect([await signIns.recognize('token', text), await signIns.token(id)]).toEqual([undefined, undefined]);
    });

    it('know nothing by an id that is none', async () => {
      const { signIns } = make();
      for (const id of ['', 'x', "' OR true --", '\0', randomUUID(), `${randomUUID()}0`])
        expect([
          id,
          await signIns.endSession(holder(), id),
          await signIns.endToken(id),
          await signIns.token(id),
        ]).toEqual([id, false, false, undefined]);
    });

    it('list newest first in pages; a page beyond the last is empty', async () => {
      const { signIns } = make();
      const name = holder();
      const opened: string[] = [];
      for (let each = 0; each < 5; each++) opened.unshift((await signIns.openSession(sessionFor(name))).id);
      const page = async (number: number): Promise<[string[], number]> => {
        const { results, count } = await signIns.sessions(name, { page: number, pageSize: 2 });
        return [results.map(({ id }) => id), count];
      };
      expect([await page(1), await page(3), await page(4)]).toEqual([
        [opened.slice(0, 2), 5],
        [opened.slice(4), 5],
        [[], 5],
      ]);
      expect(await signIns.sessions(name, { page: 999_999_999, pageSize: 200 })).toEqual({ results: [], count: 5 });
      const tokens = [await signIns.createToken(tokenFor(name)), await signIns.createToken(tokenFor(name))];
      const { results, count } = await signIns.tokens({ page: 1, pageSize: 2 });
      expect(results.map(({ id }) => id)).toEqual(tokens.map(({ id }) => id).toReversed());
      expect(count).toBeGreaterThanOrEqual(2);
    });

    it(`keep ${MAX_SESSIONS} sessions of a person: the oldest ends, also when many begin at once`, async () => {
      const { signIns } = make();
      const name = holder();
      const oldest = await signIns.openSession(sessionFor(name));
      const other = await signIns.openSession(sessionFor(holder()));
      const rest = await Promise.all(
        Array.from({ length: MAX_SESSIONS + 4 }, () => signIns.openSession(sessionFor(name.toUpperCase()))),
      );
      expect((await signIns.sessions(name, FIRST)).count).toBe(MAX_SESSIONS);
      expect(await signIns.recognize('session', oldest.text)).toBeUndefined();
      expect(await signIns.recognize('session', other.text)).toBeDefined();
      const valid = await Promise.all(rest.map(({ text }) => signIns.recognize('session', text)));
      expect(valid.filter((each) => each !== undefined)).toHaveLength(MAX_SESSIONS);
    });

    it('are all void once the epoch of their owner changes, whatever the case of the name', async () => {
      const { signIns, endAllOf } = make();
      const [name, other] = [holder(), holder()];
      expect(await signIns.epoch(name)).toBe(0);
      const session = await signIns.openSession(sessionFor(name));
      const token = await signIns.createToken(tokenFor(name.toUpperCase()));
      const theirs = await signIns.createToken(tokenFor(other));
      await endAllOf(name.toLowerCase());
      expect([await signIns.epoch(name), await signIns.epoch(other)]).toEqual([1, 0]);
      expect(await signIns.recognize('session', session.text)).toBeUndefined();
      expect(await signIns.recognize('token', token.text)).toBeUndefined();
      expect(await signIns.recognize('token', theirs.text)).toBeDefined();
      expect([(await signIns.sessions(name, FIRST)).count, await signIns.token(token.id)]).toEqual([0, undefined]);
      const next = await signIns.openSession(sessionFor(name));
      expect(await signIns.recognize('session', next.text)).toBeDefined();
      await endAllOf(name);
      expect(await signIns.epoch(name)).toBe(2);
      expect(await signIns.recognize('session', next.text)).toBeUndefined();
    });

    it('are void from the beginning for somebody who was judged before the epoch changed', async () => {
      const { signIns, endAllOf } = make();
      const name = holder();
      const epoch = await signIns.epoch(name);
      await endAllOf(name);
      const session = await signIns.openSession({ ...sessionFor(name), epoch });
      const token = await signIns.createToken({ ...tokenFor(name), epoch });
      expect(await signIns.recognize('session', session.text)).toBeUndefined();
      expect(await signIns.recognize('token', token.text)).toBeUndefined();
      const now = await signIns.epoch(name);
      const later = await signIns.openSession({ ...sessionFor(name), epoch: now });
      expect(await signIns.recognize('session', later.text)).toBeDefined();
    });

    it('do not survive an end of everything that comes at the same moment', async () => {
      const { signIns, endAllOf } = make();
      const name = holder();
      const epoch = await signIns.epoch(name);
      const given = { ...sessionFor(name), epoch };
      const [, ...opened] = await Promise.all([
        endAllOf(name),
        ...Array.from({ length: 8 }, () => signIns.openSession(given)),
        ...Array.from({ length: 8 }, () => signIns.createToken({ ...tokenFor(name), epoch })),
      ]);
      for (const { text } of opened)
        expect([await signIns.recognize('session', text), await signIns.recognize('token', text)]).toEqual([
          undefined,
          undefined,
        ]);
    });

    it('have epoch 0 for a name that nobody can have', async () => {
      const { signIns } = make();
      for (const name of ['', '\0', 'a\0b', '\u{1F600}', 'x'.repeat(10_000)]) expect(await signIns.epoch(name)).toBe(0);
    });

    it('are pruned when they have expired or are void, and only then', async () => {
      const { signIns, endAllOf } = make();
      const [name, gone] = [holder(), holder()];
      await signIns.prune(inHours(0));
      const epoch = await signIns.epoch(gone);
      await endAllOf(gone);
      await signIns.createToken({ ...tokenFor(gone), epoch });
      await signIns.openSession(sessionFor(name, -2));
      await signIns.createToken(tokenFor(name, -2));
      const session = await signIns.openSession(sessionFor(name));
      const token = await signIns.createToken(tokenFor(name));
      expect(await signIns.prune(inHours(-3))).toBe(1);
      expect(await signIns.prune(inHours(-1))).toBe(2);
      expect(await signIns.prune(inHours(0))).toBe(0);
      expect(await signIns.recognize('session', session.text)).toBeDefined();
      expect(await signIns.recognize('token', token.text)).toBeDefined();
    });
  });
}
