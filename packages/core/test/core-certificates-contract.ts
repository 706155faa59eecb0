// What every CertificateStore of the core must do, held against the double and against the table.

import { createHash, randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { DAY_MS } from '@holdfast/kit/time';
import type { SignedCertificate } from '@holdfast/pki/parts';
import type { CertificateRecord, CertificateSelection, CertificateStore } from '../model/parts.ts';

export interface CertificatesUnderTest {
  /** With no rows. Ids that were given before may be left out. */
  store: CertificateStore;
  /** Another text as soon as a revocation date was set, changed or taken away. */
  mark: () => Promise<string>;
}

const NOW = new Date('2026-11-22T10:20:30.007Z');
const inDays = (days: number): Date => new Date(NOW.getTime() + days * DAY_MS);
/** Nobody gets that far: the highest that a row could have. */
const UNKNOWN = 2_147_483_647;

/** What a store sees of a signature: texts and dates, another hash each time. */
export function signedFor(commonName: string, notAfter = inDays(365)): SignedCertificate {
  const der = new Uint8Array(new TextEncoder().encode(`${commonName} ${randomUUID()}`));
  const digest = createHash('sha256').update(der).digest('hex').toUpperCase();
  return {
    pem: `-----BEGIN CERTIFICATE-----\n${Buffer.from(der).toString('base64')}\n-----END CERTIFICATE-----\n`,
    der,
    serial: '1a',
    hash: digest.replaceAll(/(?!^)../g, ':$&'),
    subject: `CN=${commonName},OU=CoT,O=Holdfast`,
    commonName,
    notBefore: inDays(-0.5),
    notAfter,
  };
}

export function coreCertificatesContract(what: string, make: () => Promise<CertificatesUnderTest>): void {
  describe(`the certificates of the core (${what})`, () => {
    let store: CertificateStore;
    let mark: () => Promise<string>;
    beforeEach(async () => {
      ({ store, mark } = await make());
    });

    const add = (name: string, clientUid: string, issued = NOW, notAfter = inDays(365)): Promise<CertificateRecord> =>
      store.add(signedFor(name, notAfter), { creator: `creator of ${name}`, clientUid }, issued);
    const idsOf = (rows: readonly CertificateRecord[]): number[] => rows.map(({ id }) => id);
    const listed = async (selection: CertificateSelection, username?: string): Promise<number[]> =>
      idsOf(await store.list(selection, NOW, username));

    it('are kept as they were signed, to the millisecond', async () => {
      const signed = signedFor('Ünï 🦊');
      const row = await store.add(signed, { creator: 'ada', clientUid: 'uid-1' }, NOW);
      expect({ ...row }).toEqual({
        id: expect.any(Number),
        creatorDn: 'ada',
        subjectDn: 'CN=Ünï 🦊,OU=CoT,O=Holdfast',
        userDn: 'Ünï 🦊',
        certificate: signed.pem,
        hash: signed.hash,
        clientUid: 'uid-1',
        issuanceDate: NOW,
        effectiveDate: signed.notBefore,
        expirationDate: signed.notAfter,
        revocationDate: null,
        token: null,
      });
      expect(await store.byHash(signed.hash)).toEqual(row);
      expect([...(await store.byIds([row.id]))]).toEqual([row]);
      expect([...(await store.list('all', NOW))]).toEqual([row]);
    });

    it('get an id each, higher than all before, also those that are gone', async () => {
      const rows = await Promise.all(['a', 'b', 'c', 'd'].map((name) => add(name, 'uid')));
      const ids = idsOf(rows);
      expect(new Set(ids).size).toBe(4);
      await store.remove(ids);
      expect((await add('e', 'uid')).id).toBeGreaterThan(Math.max(...ids));
    });

    it('change only in the table: what was given out stays as it was', async () => {
      const row = await add('ada', 'uid');
      await store.setRevoked(row.id, NOW);
      expect(row.revocationDate).toBeNull();
      row.userDn = 'eve';
      for (const read of [
        await store.byHash(row.hash),
        ...(await store.byIds([row.id])),
        ...(await store.list('all', NOW)),
      ]) {
        expect(read?.userDn).toBe('ada');
        if (read !== undefined) read.userDn = 'eve';
      }
      expect(await listed('all', 'ada')).toEqual([row.id]);
    });

    describe('listed', () => {
      let id: Record<'old' | 'new' | 'tie' | 'other' | 'bob' | 'early', number>;
      beforeEach(async () => {
        id = {
          // The newest of ada on her phone came first into the table.
          new: (await add('ada', 'phone', inDays(-1))).id,
          old: (await add('ada', 'phone', inDays(-3), inDays(-2))).id,
          other: (await add('ada', 'tablet', inDays(-9), inDays(-1))).id,
          bob: (await add('bob', 'phone', inDays(-5))).id,
          early: (await add('bob', '', inDays(-4))).id,
          tie: (await add('bob', '', inDays(-4))).id,
        };
        for (const each of [id.other, id.early]) await store.setRevoked(each, NOW);
      });

      it('all: every row', async () => {
        expect(await listed('all')).toEqual([id.early, id.tie, id.new, id.old, id.bob, id.other]);
        expect(await listed('all', 'ada')).toEqual([id.new, id.old, id.other]);
        expect(await listed('all', 'bob')).toEqual([id.early, id.tie, id.bob]);
      });

      it('active: the newest issue of each clientUid and name, revoked and expired ones too; of two at once the later row', async () => {
        expect(await listed('active')).toEqual([id.tie, id.new, id.bob, id.other]);
        expect(await listed('active', 'ada')).toEqual([id.new, id.other]);
        expect(await listed('active', 'bob')).toEqual([id.tie, id.bob]);
      });

      it('replaced: all the others', async () => {
        expect(await listed('replaced')).toEqual([id.early, id.old]);
        expect(await listed('replaced', 'ada')).toEqual([id.old]);
        expect(await listed('replaced', 'bob')).toEqual([id.early]);
      });

      it('active: the one before again when the newest is forgotten', async () => {
        await store.remove([id.new, id.tie]);
        expect(await listed('active')).toEqual([id.early, id.old, id.bob, id.other]);
        expect(await listed('replaced')).toEqual([]);
      });

      it('expired: at the time that is asked for', async () => {
        expect(await listed('expired')).toEqual([id.old, id.other]);
        expect(await listed('expired', 'ada')).toEqual([id.old, id.other]);
        expect(await listed('expired', 'bob')).toEqual([]);
        expect(idsOf(await store.list('expired', inDays(-1.5)))).toEqual([id.old]);
        expect(idsOf(await store.list('expired', inDays(-2.5)))).toEqual([]);
        expect(await store.list('expired', inDays(366))).toHaveLength(6);
      });

      it('revoked: those with a date', async () => {
        expect(await listed('revoked')).toEqual([id.early, id.other]);
        expect(await listed('revoked', 'ada')).toEqual([id.other]);
        expect(await listed('revoked', 'bob')).toEqual([id.early]);
      });

      it.each(['all', 'active', 'replaced', 'expired', 'revoked'] as const)(
        '%s: for a name that is exactly theirs',
        async (selection) => {
          for (const name of ['ADA', 'ad', 'ada ', 'ad_', '%', '', "' OR true --"])
            expect(await listed(selection, name)).toEqual([]);
        },
      );
    });

    it('are sorted by the bytes of the clientUid, no language in it, and then by id', async () => {
      const order = ['', ' ', '-b', 'A-2', 'B', 'Z', '_', 'a', 'a-2', 'a10', 'a9', 'ab', 'z', 'ä', '\uFF5E', '🦊'];
      const shuffled = [
        ...order.filter((_, at) => at % 2 === 1).toReversed(),
        ...order.filter((_, at) => at % 2 === 0),
      ];
      for (const name of ['zoe', 'ada']) for (const clientUid of shuffled) await add(name, clientUid);
      const rows = await store.list('all', NOW);
      expect(rows.map(({ clientUid, userDn }) => `${clientUid}|${userDn}`)).toEqual(
        order.flatMap((clientUid) => [`${clientUid}|zoe`, `${clientUid}|ada`]),
      );
      expect((await store.list('active', NOW, 'ada')).map(({ clientUid }) => clientUid)).toEqual(order);
    });

    it('are found by the whole hash, of two rows the first', async () => {
      const signed = signedFor('ada');
      const first = await store.add(signed, { creator: 'ada', clientUid: 'z' }, NOW);
      await store.add(signed, { creator: 'ada', clientUid: 'a' }, inDays(1));
      expect((await store.byHash(signed.hash))?.id).toBe(first.id);
      for (const hash of ['', 'AA:BB', signed.hash.toLowerCase(), signed.hash.slice(0, -1), '%'])
        expect(await store.byHash(hash)).toBeUndefined();
    });

    it('are found by ids, in their order and each once; unknown ones are skipped', async () => {
      const [a, b, c] = [(await add('a', 'z')).id, (await add('b', 'y')).id, (await add('c', 'x')).id];
      expect(idsOf(await store.byIds([c, UNKNOWN, a, c, 0]))).toEqual([a, c]);
      expect(idsOf(await store.byIds([c, b, a]))).toEqual([a, b, c]);
      for (const none of [[], [UNKNOWN]]) expect(idsOf(await store.byIds(none))).toEqual([]);
    });

    it('are revoked once: the first date stays, whatever comes later', async () => {
      const [row, other] = [await add('ada', 'uid'), await add('bob', 'uid')];
      expect(await store.setRevoked(row.id, NOW)).toEqual({ ...row, revocationDate: NOW });
      for (const days of [1, -1]) expect((await store.setRevoked(row.id, inDays(days))).revocationDate).toEqual(NOW);
      expect((await store.byHash(row.hash))?.revocationDate).toEqual(NOW);
      expect((await store.byHash(other.hash))?.revocationDate).toBeNull();
      const at = [1, 2, 3, 4].map((days) => store.setRevoked(other.id, inDays(days)));
      const dates = (await Promise.all(at)).map(({ revocationDate }) => revocationDate?.getTime());
      expect(new Set(dates).size).toBe(1);
      await expect(store.setRevoked(UNKNOWN, NOW)).rejects.toThrow();
    });

    it('are removed by ids, revoked or not; unknown ones are skipped', async () => {
      const rows = [await add('a', '1'), await add('b', '2'), await add('c', '3')];
      const [a = 0, b = 0, c = 0] = idsOf(rows);
      await store.setRevoked(a, NOW);
      await store.remove([]);
      await store.remove([UNKNOWN]);
      expect(await listed('all')).toEqual([a, b, c]);
      await store.remove([c, UNKNOWN, a, c]);
      expect(await listed('all')).toEqual([b]);
      expect(await listed('revoked')).toEqual([]);
      expect(await store.byHash(rows[0]?.hash ?? '')).toBeUndefined();
      await expect(store.setRevoked(a, NOW)).rejects.toThrow();
      await store.remove([a]);
    });

    it('have a mark that tells of revocations, and of nothing else', async () => {
      const [a, b] = [await add('a', '1'), await add('b', '2')];
      const seen = [await mark()];
      await store.remove([b.id]);
      const c = await add('c', '3');
      expect(await mark()).toBe(seen[0]);
      for (const { id } of [a, c]) {
        await store.setRevoked(id, NOW);
        seen.push(await mark());
        await store.setRevoked(id, inDays(1));
        expect(await mark()).toBe(seen.at(-1));
      }
      await store.remove([a.id]);
      seen.push(await mark());
      expect(new Set(seen).size).toBe(4);
    });
  });
}
