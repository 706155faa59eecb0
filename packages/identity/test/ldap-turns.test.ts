// Requests of one account at once: how many, and who goes on when one ends or is given up.

import { setImmediate as moment } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { turns } from '../ldap/operations.ts';
import { CORE, envelope, int, searchOperation, SERVICE, startLdap, type TestServer, tlv, user } from './ldap-wire.ts';

let server: TestServer | undefined;
afterEach(async () => {
  await server?.stop();
  server = undefined;
});

describe('the turns of an account', () => {
  it('are bounded, for each account by itself; one that is given up while it waits never begins', async () => {
    const inTurn = turns(2);
    const begun: string[] = [];
    const ends = new Map<string, () => void>();
    const go = (key: string, name: string, signal = new AbortController().signal): Promise<void> =>
      inTurn(key, signal, async () => {
        begun.push(name);
        await new Promise<void>((end) => ends.set(name, end));
      });
    const given = new AbortController();
    const all = [go('a', 'a1'), go('a', 'a2')];
    const third = go('a', 'a3', given.signal);
    all.push(go('a', 'a4'), go('b', 'b1'));
    await moment();
    expect(begun).toEqual(['a1', 'a2', 'b1']);
    ends.get('a1')?.();
    given.abort(new Error('given up'));
    await expect(third).rejects.toThrow('given up');
    await moment();
    expect(begun).toEqual(['a1', 'a2', 'b1', 'a4']);
    for (const end of ends.values()) end();
    await Promise.all(all);
    const again = go('a', 'a5');
    expect(begun.at(-1)).toBe('a5');
    ends.get('a5')?.();
    await again;
  });
});

describe('searches that are given up', () => {
  it.each([
    ['a person', user('Alice'), 'right', 8],
    ['the service account', user(SERVICE), 'service', 32],
  ])('of %s keep their place until the store has answered', async (_, dn, password, most) => {
    server = await startLdap();
    const wire = await server.as(dn, password);
    const { roster } = server;
    const release = Promise.withResolvers<void>();
    let requested = 0;
    const person = roster.person.bind(roster);
    roster.person = async (name) => {
      requested += 1;
      await release.promise;
      return person(name);
    };
    for (let id = 100; id < 300; id += 2) {
      wire.send(envelope(id, searchOperation(CORE)));
      wire.send(envelope(id + 1, tlv(0x50, int(id).subarray(2))));
    }
    // The server is of this process, and takes a message in each turn of the event loop.
    for (let turn = 0; turn < 1_000; turn++) await moment();
    expect(requested).toBe(most);
    release.resolve();
    const next = await server.as(dn, password);
    expect(await next.search(CORE)).toMatchObject({ code: 0 });
  });
});
