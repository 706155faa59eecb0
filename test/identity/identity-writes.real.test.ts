// How the identity provider's client writes accounts and makes app passwords: nothing lost, nothing half-made.

import { beforeEach, describe, expect, it } from 'vitest';
import type { Account } from '../../shared/identity/port.ts';
import { request, at, failureOf, newAccount, newProviderForEachTest, PASSWORD, when } from './fake-identity-moods.ts';
import { type Mood, sayJson } from './fake-identity-server.ts';

newProviderForEachTest();

const CEILING = 'goauthentik.io/user/token-maximum-lifetime';

describe('writing accounts', () => {
  it('writes nothing where nothing changes, whatever the order of members', async () => {
    const attributes = { app_a: { x: 1, y: [1, { z: null }] }, app_b: null };
    const { id } = await at.identity.accounts.create({ username: 'ada', name: '', attributes });
    await at.identity.accounts.changeAttributes(id, { app_a: { y: [1, { z: null }], x: 1 }, app_gone: null });
    expect(request('PATCH', '')).toEqual([]);
    await at.identity.accounts.changeAttributes(id, { app_a: { y: [{ z: null }, 1], x: 1 } });
    expect(request('PATCH', '').map(({ body }) => body)).toEqual([
      { attributes: { app_a: { x: 1, y: [{ z: null }, 1] }, app_b: null } },
    ]);
  });

  it('keeps strange attributes of others', async () => {
    const strange = JSON.parse(
      '{"__proto__": {"a": 1}, "constructor": 1, "": [], "null": null}',
    ) as Account['attributes'];
    const { id } = await at.identity.accounts.create({ username: 'ada', name: '', attributes: strange });
    await at.identity.accounts.changeAttributes(id, { app_x: 1 });
    const [written] = request('PATCH', '');
    expect(JSON.stringify(written?.body['attributes'])).toBe(
      '{"__proto__":{"a":1},"constructor":1,"":[],"null":null,"app_x":1}',
    );
  });

  it('has one writer per account, whatever is written', async () => {
    const { id } = await newAccount();
    let inside = 0;
    let most = 0;
    const slow: Mood = (call, response) => {
      if (!call.path.startsWith(`/core/users/${id}/`) || call.method === 'GET') return false;
      most = Math.max(most, (inside += 1));
      const user = at.server.users.get(id);
      setTimeout(() => {
        inside -= 1;
        if (call.method === 'POST') sayJson(response, 204);
        else sayJson(response, 200, { ...user, ...call.body, groups_obj: [] });
      }, 20);
      return true;
    };
    at.server.mood = slow;
    await Promise.all([
      at.identity.accounts.change(id, { isActive: false }),
      at.identity.accounts.changeAttributes(id, { app_x: 1 }),
      at.identity.accounts.setPassword(id, PASSWORD),
    ]);
    expect(most).toBe(1);
  });

  it('says conflict when somebody else was faster, and what was refused when nobody was', async () => {
    when('POST', '/core/users/', (response) => sayJson(response, 400, { username: ['Déjà pris.'] }));
    expect((await failureOf(newAccount())).code).toBe('invalid');
    when('POST', '/core/users/', (response, { body }) => {
      const [other] = at.server.users.values();
      if (other !== undefined)
        at.server.users.set(99, {
          ...other,
          pk: 99,
          username: JSON.stringify(body['username']).slice(1, -1).toUpperCase(),
        });
      sayJson(response, 400, { username: ['Déjà pris.'] });
    });
    expect((await failureOf(newAccount())).code).toBe('conflict');
  });
});

describe('making app passwords', () => {
  const now = new Date();
  const after = (minutes: number): Date => new Date(now.getTime() + minutes * 60_000);
  let id: number;
  beforeEach(async () => {
    ({ id } = await newAccount());
    at.server.calls.length = 0;
  });
  const create = (expiresAt: Date | null) =>
    at.identity.appPasswords.create({ identifier: 'tablet', accountId: id, description: '', expiresAt });
  const ceiling = () => at.server.users.get(id)?.attributes[CEILING];

  it('leaves the ceiling alone where it suffices', async () => {
    await create(after(60));
    expect(ceiling()).toBeUndefined();
    expect(at.server.calls.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /core/tokens/',
      'GET /core/tokens/tablet/view_key/',
    ]);
  });

  it('raises the ceiling for more than a day when it must, and never lowers it', async () => {
    await create(after(3 * 1440));
    expect(ceiling()).toMatch(/^minutes=43(2[89]|3\d)$/);
    await at.identity.appPasswords.delete('tablet');
    at.server.lifetimeMinutes = 30;
    await create(after(60));
    expect([ceiling(), request('PATCH', '').length]).toEqual([expect.stringMatching(/^minutes=43/), 1]);
    await at.identity.appPasswords.delete('tablet');
    await create(after(31 * 1440));
    expect(ceiling()).toMatch(/^minutes=446\d\d$/);
  });

  it('leaves a ceiling alone that another form of a duration says to suffice', async () => {
    const owner = at.server.users.get(id);
    if (owner !== undefined) owner.attributes = { [CEILING]: 'days=29; hours=36.5;seconds=1' };
    when('POST', '/core/tokens/', (response) => sayJson(response, 400, { expires: ['timed out'] }));
    expect((await failureOf(create(after(30 * 1440)))).code).toBe('invalid');
    expect(ceiling()).toBe('days=29; hours=36.5;seconds=1');
    expect((await failureOf(create(after(31 * 1440)))).code).toBe('invalid');
    expect(ceiling()).toMatch(/^minutes=446/);
  });

  it('raises the ceiling of a provider that allows less than a day, and asks once more', async () => {
    at.server.lifetimeMinutes = 30;
    const made = await create(after(120));
    expect(made.expiresAt).toBe(after(120).toISOString());
    expect(request('POST', '/core/tokens/')).toHaveLength(2);
    expect(ceiling()).toMatch(/^minutes=1[23]\d$/);
  });

  it('gives up when the ceiling does not help', async () => {
    when('POST', '/core/tokens/', (response) =>
      sayJson(response, 400, { expires: ['exceeds maximum lifetime (1 h)'] }),
    );
    for (const end of [after(120), after(9999)]) {
      const error = await failureOf(create(end));
      expect(error).toMatchObject({
        code: 'invalid',
        fields: [{ path: 'expiresAt', message: 'exceeds maximum lifetime (1 h)' }],
      });
    }
    expect(request('POST', '/core/tokens/')).toHaveLength(4);
  });

  it.each([500, 404, 403])('leaves none whose key cannot be seen (%i)', async (status) => {
    when('GET', '/view_key/', (response) => sayJson(response, status, { detail: 'no' }));
    expect((await failureOf(create(null))).code).toBe('upstream');
    expect([...at.server.tokens.keys()]).toEqual(['own-api']);
  });

  it('says so when one whose key cannot be seen stays', async () => {
    when('GET', '/view_key/', (response) => sayJson(response, 200, { key: 7 }));
    when('DELETE', '/core/tokens/', (response) => sayJson(response, 500));
    const error = await failureOf(create(null));
    expect(error.message).toMatch(/unexpected shape .*tablet.*could not be deleted again/);
  });

  it.each<[string, object]>([
    ['for the owner of our token', { user: 1 }],
    ['of another kind', { intent: 'api' }],
    ['without an end', { expiring: false }],
    ['with an early end', { expires: new Date().toISOString() }],
  ])('leaves none that was made %s', async (_, other) => {
    when('POST', '/core/tokens/', (_response, call) => {
      Object.assign(call.body, other);
      return false;
    });
    const error = await failureOf(create(after(10)));
    expect([error.code, error.message]).toEqual([
      'upstream',
      expect.stringMatching(/another token .* must belong to a superuser/),
    ]);
    expect([...at.server.tokens.keys()]).toEqual(['own-api']);
  });

  it('never shows, reveals or deletes tokens of another kind', async () => {
    const { appPasswords } = at.identity;
    expect(await appPasswords.get('own-api')).toBeUndefined();
    expect(await appPasswords.reveal('own-api')).toBeUndefined();
    await appPasswords.delete('own-api');
    expect(at.server.tokens.has('own-api')).toBe(true);
    const again = appPasswords.create({ identifier: 'own-api', accountId: id, description: '', expiresAt: null });
    expect((await failureOf(again)).code).toBe('conflict');
  });
});
