// What every CertificateBook and every EnrollmentTokens must do, held against the fakes and against the tables. Names are new
// in each test: the real ones are shared.

import { randomBytes, randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import type {
  CertificateStore,
  EnrollmentToken,
  EnrollmentTokens,
  MadeCertificate,
} from '../../shared/devices/port.ts';

let seconds = 0;
/** Each later than the one before. */
const time = (): string => new Date(Date.parse('2026-03-04T05:06:07.089Z') + (seconds += 1000)).toISOString();
const holder = (): string => `Person.${randomUUID().slice(0, 8)}`;

export function certificate(username: string, change: Partial<MadeCertificate> = {}): MadeCertificate {
  const hash = Array.from(randomBytes(32), (byte) => byte.toString(16).toUpperCase().padStart(2, '0')).join(':');
  const serial = `1${randomBytes(15).toString('hex')}`;
  const [issuedAt, expiresAt] = [time(), '2027-03-04T05:06:07.089Z'];
  return { hash, username, name: 'phone', serial, clientUid: 'holdfast-phone', issuedAt, expiresAt, ...change };
}

/** `make` gives one that is empty. */
export function certificateStoreContract(what: string, make: () => CertificateStore | Promise<CertificateStore>): void {
  describe(`the book of certificates (${what})`, () => {
    let store: CertificateStore;
    beforeEach(async () => {
      store = await make();
    });
    const hashes = async (list: Promise<{ hash: string }[]>) => (await list).map(({ hash }) => hash).toSorted();

    it('knows what was made, of some users in any case of their names, or of everybody', async () => {
      const name = holder();
      const [one, two] = [certificate(name), certificate(name.toUpperCase(), { name: '' })];
      const other = certificate(`${name}-doe`);
      for (const each of [one, two, other]) await store.remember(each);
      expect(await store.made([name.toLowerCase()])).toEqual([one, two]);
      expect(await store.made([name, other.username])).toEqual([one, two, other]);
      expect(await store.made()).toEqual([one, two, other]);
      expect(await store.made([])).toEqual([]);
      expect(await store.made([holder()])).toEqual([]);
    });

    it('takes a name as it is written, whatever is in it', async () => {
      for (const username of ["o'neil", 'ä"{},\\', '%', 'name\nline']) {
        const one = certificate(username);
        await store.remember(one);
        await store.wantRevoked([one], time());
        expect([await store.made([username]), (await store.revocations([username]))[0]?.username]).toEqual([
          [one],
          username,
        ]);
      }
    });

    it('has nothing under a name that no text can hold, and what it has of the others', async () => {
      const one = certificate(holder());
      await store.remember(one);
      for (const nobody of ['a\0b', '\uD800']) {
        expect(await store.made([nobody, one.username])).toEqual([one]);
        expect(await store.revocations([nobody])).toEqual([]);
      }
    });

    it('remembers a certificate once, with the last of its names', async () => {
      const one = certificate(holder());
      await store.remember(one);
      await store.remember({ ...one, name: 'tablet' });
      expect(await store.made([one.username])).toEqual([{ ...one, name: 'tablet' }]);
    });

    it('notes what is to be revoked, once', async () => {
      const [one, two] = [certificate(holder()), certificate(holder())];
      const [wantedAt, later] = [time(), time()];
      await store.wantRevoked([], wantedAt);
      await store.wantRevoked([one], wantedAt);
      await store.wantRevoked([one, two], later);
      const { name: _, ...noted } = one;
      const open = { state: 'revoking', checkedAt: null, provenAt: null, problem: null, streams: null };
      expect(await store.revocations([one.username.toUpperCase()])).toEqual([{ ...noted, wantedAt, ...open }]);
      expect(await hashes(store.revocations())).toEqual([one.hash, two.hash].toSorted());
      expect(await store.revocations([])).toEqual([]);
    });

    it('gives what is not proven, oldest first, as many as are asked for', async () => {
      const all = Array.from({ length: 4 }, () => certificate(holder()));
      for (const each of all.toReversed()) await store.wantRevoked([each], time());
      const oldest = all.toReversed().map(({ hash }) => hash);
      expect((await store.openRevocations(9)).map(({ hash }) => hash)).toEqual(oldest);
      expect((await store.openRevocations(2)).map(({ hash }) => hash)).toEqual(oldest.slice(0, 2));
      const settled = { checkedAt: time(), problem: null, streams: null };
      await store.settle(oldest[0] ?? '', { ...settled, state: 'revoked' });
      await store.settle(oldest[1] ?? '', { ...settled, state: 'revocation_failed' });
      expect((await store.openRevocations(9)).map(({ hash }) => hash)).toEqual(oldest.slice(1));
    });

    it('tells which of some are noted, and which were proven since a time', async () => {
      const all = Array.from({ length: 4 }, () => certificate(holder()));
      const [open = '', early = '', late = '', unknown = ''] = all.map(({ hash }) => hash);
      await store.wantRevoked(all.slice(0, 3), time());
      const settled = { state: 'revoked', problem: null, streams: null } as const;
      const [before, since] = [time(), time()];
      await store.settle(early, { ...settled, checkedAt: before });
      await store.settle(late, { ...settled, checkedAt: since });
      await store.settle(open, { ...settled, checkedAt: since, state: 'revocation_failed' });
      expect(await store.noted([late, unknown, open])).toHaveLength(2);
      expect(new Set(await store.noted([late, unknown, open]))).toEqual(new Set([late, open]));
      expect(await store.noted([])).toEqual([]);
      expect(await store.provenSince(since)).toEqual([late]);
      expect((await store.provenSince(before)).toSorted()).toEqual([early, late].toSorted());
    });

    it('counts what is not proven', async () => {
      expect(await store.openRevocationCount()).toBe(0);
      const all = Array.from({ length: 3 }, () => certificate(holder()));
      await store.wantRevoked(all, time());
      const settled = { checkedAt: time(), problem: null, streams: null };
      await store.settle(all[0]?.hash ?? '', { ...settled, state: 'revoked' });
      await store.settle(all[1]?.hash ?? '', { ...settled, state: 'revocation_failed' });
      expect(await store.openRevocationCount()).toBe(2);
    });

    it('settles how far the proof has come; what is proven stays so', async () => {
      const one = certificate(holder());
      const of = async () => (await store.revocations([one.username]))[0];
      await store.wantRevoked([one], time());
      const failed = { state: 'revocation_failed', checkedAt: time(), problem: 'was let in', streams: null } as const;
      await store.settle(one.hash, failed);
      expect(await of()).toMatchObject({ ...failed, provenAt: null });
      const proven = { state: 'revoked', checkedAt: time(), problem: null, streams: 'unverifiable' } as const;
      await store.settle(one.hash, proven);
      const final = { ...proven, provenAt: proven.checkedAt };
      expect(await of()).toMatchObject(final);
      await store.settle(one.hash, { ...failed, checkedAt: time() });
      await store.wantRevoked([one], time());
      expect(await of()).toMatchObject(final);
      await store.settle('AA:BB', failed);
      expect(await store.revocations()).toHaveLength(1);
    });

    it('keeps one order for each user, until it is closed as it was given last', async () => {
      const [name, other] = [holder(), holder()];
      const [first, second, third] = [time(), time(), time()];
      await store.order({ username: name, wantedAt: first });
      await store.order({ username: other, wantedAt: second });
      expect(await store.orders()).toEqual([
        { username: name, wantedAt: first },
        { username: other, wantedAt: second },
      ]);
      await store.order({ username: name.toUpperCase(), wantedAt: third });
      await store.closeOrder({ username: name, wantedAt: first });
      expect(await store.orders()).toEqual([
        { username: other, wantedAt: second },
        { username: name.toUpperCase(), wantedAt: third },
      ]);
      await store.closeOrder({ username: name.toLowerCase(), wantedAt: third });
      expect(await store.orders()).toEqual([{ username: other, wantedAt: second }]);
    });

    it('knows the last canary', async () => {
      expect(await store.lastCanary()).toBeUndefined();
      const [early, late] = [time(), time()];
      const passed = { at: late, ok: true, signed: true, problem: null, coreStartedAt: time() };
      await store.recordCanary(passed);
      await store.recordCanary({ at: early, ok: false, signed: true, problem: 'was let in', coreStartedAt: null });
      expect(await store.lastCanary()).toEqual(passed);
      await store.recordCanary({ ...passed, ok: false });
      expect(await store.lastCanary()).toEqual(passed);
      const failed = { at: time(), ok: false, signed: true, problem: 'was let in', coreStartedAt: null };
      await store.recordCanary(failed);
      expect(await store.lastCanary()).toEqual(failed);
    });

    it('has open work while there is an order or a revocation without proof, and not for a canary', async () => {
      const one = certificate(holder());
      const order = { username: one.username, wantedAt: time() };
      await store.recordCanary({ at: time(), ok: false, signed: true, problem: 'was let in', coreStartedAt: null });
      await store.remember(one);
      expect(await store.hasOpenWork()).toBe(false);
      await store.order(order);
      expect(await store.hasOpenWork()).toBe(true);
      await store.closeOrder(order);
      expect(await store.hasOpenWork()).toBe(false);
      await store.wantRevoked([one], time());
      expect(await store.hasOpenWork()).toBe(true);
      const settled = { checkedAt: time(), problem: 'was let in', streams: null };
      await store.settle(one.hash, { ...settled, state: 'revocation_failed' });
      expect(await store.hasOpenWork()).toBe(true);
      await store.settle(one.hash, { ...settled, state: 'revoked' });
      expect(await store.hasOpenWork()).toBe(false);
    });
  });
}

export function enrollmentTokensContract(what: string, make: () => EnrollmentTokens): void {
  describe(`enrollment tokens (${what})`, () => {
    let accounts = 2 ** 40;
    const token = (accountId: number): EnrollmentToken => ({
      identifier: `holdfast-enroll-${randomUUID()}`,
      accountId,
      username: holder(),
      caFingerprint: 'AA:BB',
      createdAt: time(),
      expiresAt: time(),
    });

    it('are those of an account, newest first, also when they have ended', async () => {
      const tokens = make();
      const [mine, theirs] = [(accounts += 1), (accounts += 1)];
      const [one, two, other] = [token(mine), token(mine), token(theirs)];
      for (const each of [one, two, other]) await tokens.add(each);
      expect(await tokens.of(mine)).toEqual([two, one]);
      expect(await tokens.of(theirs)).toEqual([other]);
      expect(await tokens.of((accounts += 1))).toEqual([]);
    });

    it('are removed one by one; one that is gone is no error', async () => {
      const tokens = make();
      const mine = (accounts += 1);
      const [one, two] = [token(mine), token(mine)];
      for (const each of [one, two]) await tokens.add(each);
      await tokens.remove(one.identifier);
      await tokens.remove(one.identifier);
      expect(await tokens.of(mine)).toEqual([two]);
    });

    it('have identifiers of their own', async () => {
      const tokens = make();
      const one = token((accounts += 1));
      await tokens.add(one);
      await expect(tokens.add({ ...one, accountId: (accounts += 1) })).rejects.toThrow();
      expect(await tokens.of(one.accountId)).toEqual([one]);
    });
  });
}
