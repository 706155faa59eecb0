// Passwords of the identity provider and what LDAP reads, over a real PostgreSQL.

import { pbkdf2Sync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { identityStore } from '@holdfast/identity/store/store';
import { FairLine, type ClientStatus } from '@holdfast/kit/fair-queue';
import type { PasswordVerdict } from '../../packages/identity/model/roster.ts';
import type { RunSql } from '../../packages/identity/store/database.ts';
import { API_TOKEN, SECRET, testProvider } from '../e2e/embedded/identity-provider.ts';

const provider = testProvider();
const { ask, create, group, inDatabase } = provider;

async function check(
  username: string,
  password: string,
  appPasswords = true,
  status: ClientStatus = 'usual',
): Promise<string> {
  return word(await provider.store.checkPassword({ username, password, appPasswords, place: { status } }));
}
const word = (verdict: PasswordVerdict): string => (typeof verdict === 'object' ? 'accepted' : verdict);
async function withPassword(password: string, values: Record<string, unknown> = {}) {
  const user = await create(values);
  expect((await ask('POST', `/core/users/${user.pk}/set_password/`, { json: { password } })).status).toBe(204);
  return user;
}
const hashOf = async (pk: number): Promise<string> =>
  (await inDatabase<{ password_hash: string }>(`SELECT password_hash FROM account WHERE pk = ${pk}`))[0]
    ?.password_hash ?? '';
const user = async (pk: number) => (await ask('GET', `/core/users/${pk}/`)).body;

describe('a password', () => {
  it('signs in its owner, by a name of any case, and nobody else', async () => {
    const { username } = await withPassword('right one', { username: 'Zoë' });
    expect([await check(username, 'right one'), await check('ZOË', 'right one')]).toEqual(['accepted', 'accepted']);
    for (const wrong of ['Right one', 'right one ', '', 'right one\0', 'x'.repeat(1025)]) {
      expect([wrong, await check(username, wrong)]).toEqual([wrong, 'refused']);
    }
    await withPassword('other one', { username: 'somebody' });
    expect(await check('somebody', 'right one')).toBe('refused');
  });

  it.each([
    ['spaces around', '  x  '],
    ['NUL', 'a\0b'],
    ['1024 bytes', 'é'.repeat(512)],
    ['a semicolon', 'pw;123456'],
  ])('may have %s', async (_, password) => {
    const { username } = await withPassword(password);
    expect([await check(username, password), await check(username, password.slice(1))]).toEqual([
      'accepted',
      'refused',
    ]);
  });

  it.each([
    ['nothing', {}, 'This field is required.'],
    ['null', { password: null }, 'This field may not be null.'],
    ['a blank', { password: '' }, 'This field may not be blank.'],
    ['spaces', { password: '   ' }, 'This field may not be blank.'],
    ['a number', { password: 12_345_678 }, 'Not a valid string.'],
    ['1025 bytes', { password: `${'é'.repeat(512)}x` }, expect.stringMatching(/1024 bytes/)],
  ])('is refused: %s', async (_, json, message) => {
    const { pk, username } = await withPassword('stays');
    const answer = await ask('POST', `/core/users/${pk}/set_password/`, { json });
    expect([answer.status, answer.body]).toEqual([400, { password: [message] }]);
    expect(await check(username, 'stays')).toBe('accepted');
  });

  it('of nobody is 404', async () => {
    for (const what of ['set_password', 'set_password_hash']) {
      const password = await hashOf((await withPassword('x')).pk);
      expect((await ask('POST', `/core/users/2147483647/${what}/`, { json: { password } })).status).toBe(404);
    }
  });

  it('that is changed counts at once, and the time of it is shown', async () => {
    const { pk, username, password_change_date: before } = await withPassword('old');
    provider.later(5000);
    await ask('POST', `/core/users/${pk}/set_password/`, { json: { password: 'new' } });
    expect([await check(username, 'old'), await check(username, 'new')]).toEqual(['refused', 'accepted']);
    expect((await user(pk)).password_change_date > before).toBe(true);
  });

  it('does not count for unknown, inactive and password-less users, and costs nothing then', async () => {
    const works: ClientStatus[] = [];
    const line = new FairLine({ places: 2 });
    const run = line.run.bind(line);
    line.run = (place, ...rest) => {
      works.push(place.status);
      return run(place, ...rest);
    };
    const store = identityStore({
      run: provider.run,
      secretKey: SECRET,
      now: provider.now,
      log: provider.log,
      line,
    });
    const { pk, username } = await withPassword('pw');
    const { username: without } = await create();
    await ask('PATCH', `/core/users/${pk}/`, { json: { is_active: false } });
    for (const name of ['nobody', username, without, 'a\0b', 'x'.repeat(5000), '\ud800', '']) {
      const verdict = await store.checkPassword({
        username: name,
        password: 'pw',
        appPasswords: true,
        place: { status: 'suspect' },
      });
      expect([name, verdict, works.splice(0)]).toEqual([name, 'refused', []]);
    }
    await ask('PATCH', `/core/users/${pk}/`, { json: { is_active: true } });
    expect(
      await store.checkPassword({ username, password: 'pw', appPasswords: true, place: { status: 'usual' } }),
    ).toEqual({
      pk,
    });
    expect(works).toEqual(['usual']);
  });

  it.each([
    ['deactivated', (pk: number) => ask('PATCH', `/core/users/${pk}/`, { json: { is_active: false } })],
    ['deleted', (pk: number) => ask('DELETE', `/core/users/${pk}/`)],
    ['given another one', (pk: number) => ask('POST', `/core/users/${pk}/set_password/`, { json: { password: 'b' } })],
  ])('does not count for somebody who is %s while it waits in line', async (_, act) => {
    const { pk, username } = await withPassword('pw');
    const line = new FairLine({ places: 1 });
    line.run = async (_, work) => {
      await act(pk);
      return work();
    };
    const store = identityStore({ run: provider.run, secretKey: SECRET, now: provider.now, log: provider.log, line });
    const attempt = { username, password: 'pw', appPasswords: false, place: { status: 'usual' } } as const;
    expect(await store.checkPassword(attempt)).toBe('refused');
  });

  it('is not judged when too many wait, and the right one of an own account is', async () => {
    const line = new FairLine({ places: 1, maxWaiting: { suspect: 2 } });
    const store = identityStore({ run: provider.run, secretKey: SECRET, now: provider.now, log: provider.log, line });
    const { pk, username } = await withPassword('pw');
    const flood = Array.from({ length: 40 }, (_, index) =>
      store.checkPassword({ username, password: `wrong ${index}`, appPasswords: true, place: { status: 'suspect' } }),
    );
    const own = store.checkPassword({ username, password: 'pw', appPasswords: true, place: { status: 'own' } });
    expect(await own).toEqual({ pk });
    const verdicts = await Promise.all(flood);
    expect(verdicts.filter((verdict) => verdict === 'busy').length).toBeGreaterThan(20);
    expect(new Set(verdicts)).toEqual(new Set(['busy', 'refused']));
    await store.settled();
  });
});

describe('a hash from elsewhere', () => {
  const import_ = (pk: number, password: unknown) =>
    ask('POST', `/core/users/${pk}/set_password_hash/`, { json: { password } });
  const pbkdf2 = `pbkdf2_sha256$20000$salty$${pbkdf2Sync('imported', 'salty', 20_000, 32, 'sha256').toString('base64')}`;

  it('signs in, and is replaced by one of our own then', async () => {
    const { pk, username } = await create();
    expect((await import_(pk, pbkdf2)).status).toBe(204);
    expect(await check(username, 'wrong')).toBe('refused');
    await provider.store.settled();
    expect(await hashOf(pk)).toBe(pbkdf2);
    const changed = (await user(pk)).password_change_date;
    expect(await check(username, 'imported')).toBe('accepted');
    await provider.store.settled();
    expect(await hashOf(pk)).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect([await check(username, 'imported'), await check(username, 'wrong')]).toEqual(['accepted', 'refused']);
    expect((await user(pk)).password_change_date).toBe(changed);
  });

  it('lets in all who come at once the first time', async () => {
    const { pk, username } = await create();
    await import_(pk, pbkdf2);
    const all = await Promise.all(Array.from({ length: 12 }, () => check(username, 'imported')));
    expect(all).toEqual(Array.from({ length: 12 }, () => 'accepted'));
    await provider.store.settled();
  });

  it('of our own form can be carried to another account', async () => {
    const from = await withPassword('carried');
    const { pk, username } = await create();
    expect((await import_(pk, `argon2${await hashOf(from.pk)}`)).status).toBe(204);
    expect(await check(username, 'carried')).toBe('accepted');
  });

  it.each([
    '',
    'plain text',
    '$argon2id$v=19$m=4194304,t=2,p=1$c2FsdHNhbHRzYWx0$dGFndGFndGFndGFndGFndGFn',
    'pbkdf2_sha256$99999999$s$x',
    'x'.repeat(9000),
    5,
  ])('is refused as %j', async (hash) => {
    const { pk } = await create();
    const answer = await import_(pk, hash);
    expect([answer.status, answer.body]).toEqual([400, { password: expect.arrayContaining([expect.any(String)]) }]);
    expect(await hashOf(pk)).toBe('');
  });
});

describe('an app password', () => {
  it('signs in its own user as often as it is used until it ends, without a slow hash', async () => {
    const line = new FairLine({ places: 2 });
    let hashes = 0;
    const run = line.run.bind(line);
    line.run = (...args) => {
      hashes += 1;
      return run(...args);
    };
    const store = identityStore({
      run: provider.run,
      secretKey: SECRET,
      now: provider.now,
      log: provider.log,
      line,
    });
    const { pk, username } = await create();
    const { username: other } = await create();
    await ask('POST', '/core/tokens/', { json: { identifier: 'app-1', user: pk, intent: 'app_password' } });
    const password = (await ask('GET', '/core/tokens/app-1/view_key/')).body.key as string;
    const sign = async (name: string, appPasswords = true) =>
      word(await store.checkPassword({ username: name, password, appPasswords, place: { status: 'usual' } }));
    expect([await sign(username), await sign(username.toUpperCase()), hashes]).toEqual(['accepted', 'accepted', 0]);
    expect([await sign(username, false), await sign(other), await sign('nobody')]).toEqual([
      'refused',
      'refused',
      'refused',
    ]);
    await ask('PATCH', `/core/users/${pk}/`, { json: { is_active: false } });
    expect(await sign(username)).toBe('refused');
    await ask('PATCH', `/core/users/${pk}/`, { json: { is_active: true } });
    expect(await sign(username)).toBe('accepted');
    provider.later(86_400_001);
    expect(await sign(username)).toBe('refused');
    await ask('PATCH', '/core/tokens/app-1/', { json: { expiring: false } });
    expect(await sign(username)).toBe('accepted');
    await ask('DELETE', '/core/tokens/app-1/');
    expect(await sign(username)).toBe('refused');
    await store.settled();
  });

  it('is not an API token', async () => {
    expect(await check('akadmin', API_TOKEN)).toBe('refused');
  });

  it('stands beside the password of its user', async () => {
    const { pk, username } = await withPassword('mine');
    await ask('POST', '/core/tokens/', { json: { identifier: 'app-2', user: pk, intent: 'app_password' } });
    const { key } = (await ask('GET', '/core/tokens/app-2/view_key/')).body;
    expect([await check(username, 'mine'), await check(username, key), await check(username, key, false)]).toEqual([
      'accepted',
      'accepted',
      'refused',
    ]);
  });
});

describe('the time of the last login', () => {
  it('is noted at most once a minute, and changes nothing else', async () => {
    const made = await withPassword('pw');
    const { pk, username } = made;
    const last = async () => {
      await provider.store.settled();
      return (await user(pk)).last_login as string | null;
    };
    await check(username, 'wrong');
    expect(await last()).toBeNull();
    const updated = (await user(pk)).last_updated;
    await check(username, 'pw');
    const first = await last();
    expect(first).not.toBeNull();
    provider.later(30_000);
    await check(username, 'pw');
    expect(await last()).toBe(first);
    provider.later(30_000);
    await check(username, 'pw');
    expect((await last())! > first!).toBe(true);
    expect((await user(pk)).last_updated).toBe(updated);
  });

  it('that cannot be written keeps nobody out', async () => {
    const { pk, username } = await withPassword('pw');
    let calls = 0;
    const failing: RunSql = (use) => ((calls += 1) <= 2 ? provider.run(use) : Promise.reject(new Error('disk full')));
    const store = identityStore({ run: failing, secretKey: SECRET, now: provider.now, log: provider.log });
    expect(
      await store.checkPassword({ username, password: 'pw', appPasswords: true, place: { status: 'usual' } }),
    ).toEqual({
      pk,
    });
    await store.settled();
    expect(provider.log.events.at(-1)).toMatchObject({ level: 'warn', event: 'identity.login_not_noted' });
  });
});

describe('what LDAP reads', () => {
  it('is a person by name in any case', async () => {
    const g = await group({ name: 'Crew' });
    const made = await withPassword('x', { username: 'Mia', email: 'M@x.org', groups: [g.pk], attributes: { a: [1] } });
    const person = await provider.store.roster.person('mIA');
    expect(person).toEqual({
      pk: made.pk,
      uid: made.uid,
      username: 'Mia',
      name: 'N',
      email: 'M@x.org',
      isActive: true,
      isSuperuser: false,
      attributes: { a: [1] },
      groups: [{ name: 'Crew' }],
      createdAt: expect.any(Date),
      changedAt: expect.any(Date),
      passwordChangedAt: expect.any(Date),
    });
    expect((await provider.store.roster.person('akadmin'))?.passwordChangedAt).toBeUndefined();
    for (const name of ['nobody', 'mia\0', '', '%', '\ud800'])
      expect(await provider.store.roster.person(name)).toBeUndefined();
  });

  it('are people and groups, piece by piece, narrowed by any name', async () => {
    const { roster } = provider.store;
    const [a, b] = [
      await create({ username: 'Pat', email: 'p@x.org' }),
      await create({ username: 'quin', email: 'P@x.org' }),
    ];
    const crew = await group({ name: 'Walk', users: [b.pk, a.pk], attributes: { g: 1 } });
    const names = async (where: object) => (await roster.people(where, 0, 100)).map(({ username }) => username);
    expect(await names({ email: 'p@X.ORG' })).toEqual(['Pat', 'quin']);
    expect(await names({ group: 'WALK' })).toEqual(['Pat', 'quin']);
    expect(await names({ group: 'walk', username: 'PAT' })).toEqual(['Pat']);
    expect(await names({ group: 'none' })).toEqual([]);
    const everyone = await names({});
    const pieces: string[] = [];
    for (let after = 0; ;) {
      const piece = await roster.people({}, after, 3);
      pieces.push(...piece.map(({ username }) => username));
      if (piece.length < 3) break;
      after = piece.at(-1)?.pk ?? 0;
    }
    expect(pieces).toEqual(everyone);
    const [tree] = await roster.groups({ name: 'wALK' }, 0, 10);
    expect(tree).toEqual({
      uuid: crew.pk,
      numPk: crew.num_pk,
      name: 'Walk',
      isSuperuser: false,
      attributes: { g: 1 },
      members: [{ username: 'Pat' }, { username: 'quin' }],
      createdAt: expect.any(Date),
      changedAt: expect.any(Date),
    });
    expect((await roster.groups({ member: 'pAT' }, 0, 10)).map(({ name }) => name)).toEqual(['Walk']);
    expect(await roster.groups({ member: 'pat\0' }, 0, 10)).toEqual([]);
    expect(await roster.groups({}, crew.num_pk, 10)).toEqual([]);
    expect(await roster.groups({}, 0, 1)).toHaveLength(1);
  });
});
