// Limits of searches, and pages.

import { afterEach, describe, expect, it } from 'vitest';
import { type FakePerson, fakeRoster } from './fake-roster.ts';
import {
  bool,
  control,
  CORE,
  envelope,
  equal,
  EVERYTHING,
  like,
  page,
  PEOPLE,
  searchOperation,
  SERVICE,
  startLdap,
  type TestServer,
  tlv,
  user,
} from './ldap-wire.ts';

let server: TestServer;
afterEach(async () => server.stop());

const MANY: FakePerson[] = [
  { username: SERVICE, password: 'service' },
  ...Array.from({ length: 1203 }, (_, count) => ({ username: `u${count}`, groups: [`g${count % 7}`] })),
];

describe('limits', () => {
  it('of the client and of the server are held, with 4', async () => {
    server = await startLdap({ people: MANY, limits: { entries: 600 } });
    const wire = await server.asService();
    const users = `ou=users,${CORE}`;
    for (const [sizeLimit, code, count] of [
      [5, 4, 5],
      [0, 4, 600],
      [700, 4, 600],
    ]) {
      const found = await wire.search(users, { scope: 1, sizeLimit: sizeLimit ?? 0, attributes: ['1.1'] });
      expect([found.code, found.entries.length]).toEqual([code, count]);
    }
    const groups = await wire.search(`ou=groups,${CORE}`, { scope: 1, sizeLimit: 7, attributes: ['1.1'] });
    expect([groups.code, groups.entries.length]).toEqual([0, 7]);
  });

  it('of time are held, with 3, and abandon ends a search without an answer', async () => {
    const fake = fakeRoster(PEOPLE);
    server = await startLdap({ fake: { ...fake, people: async () => new Promise(() => undefined) } });
    const wire = await server.asService();
    expect((await wire.search(CORE, { timeLimit: 1 })).code).toBe(3);
    wire.send(envelope(100, searchOperation(CORE)), envelope(101, tlv(0x50, Buffer.from([100]))));
    wire.send(envelope(102, searchOperation(CORE, { scope: 0 })));
    expect((await wire.result(102)).code).toBe(0);
    expect(await wire.bind(user(SERVICE), 'service')).toBe(0);
    expect(wire.answers.filter(({ id, tag }) => id === 100 && tag !== 0x64)).toEqual([]);
  });

  it('failures of the store are 1 with neutral words', async () => {
    const fake = fakeRoster(PEOPLE);
    const groups = async (): Promise<never> => Promise.reject(new Error('relation "people" does not exist'));
    server = await startLdap({ fake: { ...fake, groups } });
    const wire = await server.asService();
    const { code, text } = await wire.search(CORE);
    expect([code, text]).toEqual([1, 'the directory cannot answer now']);
    expect((await wire.search(`ou=users,${CORE}`)).code).toBe(0);
  });
});

describe('pages', () => {
  async function* pages(
    size: number,
    filter = EVERYTHING,
    sizeLimit = 0,
  ): AsyncGenerator<{ code: number; dns: string[] }> {
    const wire = await server.asService();
    let cookie: Buffer | undefined = Buffer.alloc(0);
    while (cookie !== undefined) {
      const found = await wire.search(CORE, { filter, sizeLimit, attributes: ['1.1'] }, [page(size, cookie)]);
      yield found;
      cookie = found.cookie !== undefined && found.cookie.length > 0 ? found.cookie : undefined;
    }
  }

  it.each([1, 2, 3, 7, 100, 499, 500, 501, 3000])('of %i give every entry exactly once', async (size) => {
    server = await startLdap({ people: size < 5 ? MANY.slice(0, 40) : MANY });
    const wire = await server.asService();
    const all = (await wire.search(CORE, { attributes: ['1.1'] })).dns;
    const got: string[] = [];
    for await (const { code, dns } of pages(size)) {
      expect(code).toBe(0);
      expect(dns.length).toBeLessThanOrEqual(size);
      got.push(...dns);
    }
    expect(got).toEqual(all);
  });

  it('have no empty one at the end, and stop at the size limit over all of them', async () => {
    server = await startLdap({ people: MANY });
    const sizes: number[] = [];
    for await (const { dns } of pages(50, like('cn', [0x80, 'u11']))) sizes.push(dns.length);
    expect(sizes).toEqual([50, 50, 50, 50, 22]);
    const limited: [number, number][] = [];
    for await (const { code, dns } of pages(4, EVERYTHING, 10)) limited.push([code, dns.length]);
    expect(limited).toEqual([
      [0, 4],
      [0, 4],
      [4, 2],
    ]);
  });

  it('lose and repeat nothing that stays when people come and go in between', async () => {
    server = await startLdap({ people: MANY.slice(0, 101) });
    const got: string[] = [];
    let count = 0;
    for await (const { dns } of pages(7, equal('objectClass', 'user'))) {
      got.push(...dns);
      server.roster.remove(`u${count}`);
      if (count++ < 5) server.roster.add({ username: `new${count}` });
    }
    expect(new Set(got).size).toBe(got.length);
    expect(got).toHaveLength(106);
  });

  it('refuse a cookie that was not given for this search', async () => {
    server = await startLdap({ people: MANY.slice(0, 40) });
    const wire = await server.asService();
    const { cookie } = await wire.search(CORE, { attributes: ['1.1'] }, [page(2)]);
    expect((await wire.search(CORE, { attributes: ['cn'] }, [page(2, cookie)])).code).toBe(53);
    expect((await wire.search(CORE, { attributes: ['1.1'] }, [page(2, Buffer.from('nonsense'))])).code).toBe(53);
    expect((await wire.search(CORE, { attributes: ['1.1'] }, [page(2), page(2)])).code).toBe(2);
    expect((await wire.search(CORE, {}, [control('1.2.840.113556.1.4.319', true, bool(true))])).code).toBe(2);
    expect((await wire.search(CORE, {}, [page(-1)])).code).toBe(2);
  });
});
