// /Marti/api/groups, against the reference.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CoreCaller } from '../model/parts.ts';
import { ADMIN, adminWorld, byCertificate, NODE_ID } from './fake-core-admin.ts';

const BASE = '/Marti/api/groups';
const TYPE = 'com.bbn.marti.remote.groups.Group';
const ADA = byCertificate('ada');

describe('groups', () => {
  let world: ReturnType<typeof adminWorld>;
  beforeEach(() => {
    world = adminWorld();
    for (const name of ['core_Ops', 'core_Air_READ', 'core_Ground_WRITE', 'core_ROLE_ADMIN', 'stack_admin'])
      world.people.addGroup(name);
    world.people.addPerson('ada', 'x').groups.push('core_Ops', 'core_Air_READ', 'stack_admin');
    world.people.addPerson('bob', 'x').groups.push('core_Ops', 'core_ROLE_ADMIN');
    world.people.addPerson('eve', 'x');
  });
  afterEach(() => world.end());

  async function shown(as: CoreCaller = ADA, path = '/all?useCache=true'): Promise<string[]> {
    const { body } = await world.ask('GET', BASE + path, { as });
    const rows = (body as { data: { name: string; direction: string; active: boolean }[] }).data;
    return rows.map(({ name, direction, active }) => `${name} ${direction} ${active ? 'on' : 'off'}`);
  }

  it('are shown to devices as they read them', async () => {
    const { status, type, body } = await world.ask('GET', `${BASE}/all`, { as: ADA });
    expect([status, type]).toEqual([200, 'application/json']);
    const created = '2026-11-22';
    expect(body).toEqual({
      version: '3',
      type: TYPE,
      nodeId: NODE_ID,
      data: [
        { name: 'Ops', direction: 'IN', created, type: 'LDAP', bitpos: 3, active: true },
        { name: 'Ops', direction: 'OUT', created, type: 'LDAP', bitpos: 3, active: true },
        { name: 'Air', direction: 'OUT', created, type: 'LDAP', bitpos: 4, active: true },
      ],
    });
  });

  it('of those who are in none are none', async () => {
    for (const name of ['eve', 'nobody']) expect(await shown(byCertificate(name))).toEqual([]);
  });

  it('are all known ones, OUT, for admins', async () => {
    expect(await shown(ADMIN)).toEqual(['__ANON__ OUT on']);
    await shown(ADA);
    expect(await shown(ADMIN)).toEqual(['Air OUT on', 'Ops OUT on', '__ANON__ OUT on']);
  });

  it('are switched: what is not named as active is off, for that person only', async () => {
    const rows = [
      { name: 'Ops', direction: 'OUT', active: true, bitpos: 9, created: 'x' },
      { name: 'Ops', direction: 'IN', active: false },
      { name: 'Ground', direction: 'IN', active: true },
    ];
    const answer = await world.ask('PUT', `${BASE}/active?clientUid=device-1`, { as: ADA, json: rows });
    expect(answer).toMatchObject({ status: 200, text: '' });
    expect(await shown()).toEqual(['Ops IN off', 'Ops OUT on', 'Air OUT off']);
    expect(await shown(byCertificate('ADA'))).toEqual(['Ops IN off', 'Ops OUT on', 'Air OUT off']);
    expect(await shown(byCertificate('bob'))).toEqual(['Ops IN on', 'Ops OUT on']);
    expect(world.regrouped).toEqual([{ usernames: ['ada'], clientUid: 'device-1' }]);
  });

  it('are switched by their places too', async () => {
    await shown();
    expect((await world.ask('PUT', `${BASE}/activebits`, { as: ADA, json: [4, 99] })).status).toBe(200);
    expect(await shown()).toEqual(['Ops IN off', 'Ops OUT off', 'Air OUT on']);
    await world.ask('PUT', `${BASE}/activebits`, { as: ADA, json: [3, 4] });
    expect(await shown()).toEqual(['Ops IN on', 'Ops OUT on', 'Air OUT on']);
  });

  it('are always on for a certificate without the key usage for channels', async () => {
    await world.ask('PUT', `${BASE}/active`, { as: ADA, json: [] });
    expect(await shown()).toEqual(['Ops IN off', 'Ops OUT off', 'Air OUT off']);
    expect(await shown(byCertificate('ada', 'ROLE_ANONYMOUS', false))).toEqual([
      'Ops IN on',
      'Ops OUT on',
      'Air OUT on',
    ]);
  });

  it.each([
    ['active', undefined],
    ['active', '{}'],
    ['active', '[{"name":"Ops"}]'],
    ['active', '[{"name":"Ops","direction":"BOTH"}]'],
    ['activebits', '["1"]'],
    ['activebits', '[-1]'],
    ['activebits', '[1.5]'],
    ['activebits', 'nonsense'],
  ])('are not switched by a body that is none: %s %s', async (what, body) => {
    const answer = await world.ask('PUT', `${BASE}/${what}`, { as: ADA, ...(body === undefined ? {} : { body }) });
    expect(answer.status).toBe(400);
    expect(await shown()).toEqual(['Ops IN on', 'Ops OUT on', 'Air OUT on']);
  });

  it('are not switched by a body without end', async () => {
    const status = async (as: CoreCaller, bytes: number): Promise<number> =>
      (await world.ask('PUT', `${BASE}/activebits`, { as, body: '[2]'.padEnd(bytes) })).status;
    expect([await status(ADA, 262_144), await status(ADA, 262_145)]).toEqual([200, 413]);
    expect([await status(ADMIN, 262_145), await status(ADMIN, 4_000_001)]).toEqual([200, 413]);
  });

  it('are switched for others by admins', async () => {
    const json = [{ name: 'Ops', direction: 'OUT', active: true }];
    expect((await world.ask('PUT', `${BASE}/activeForce?username=ada`, { json })).status).toBe(200);
    expect(await shown()).toEqual(['Ops IN off', 'Ops OUT on', 'Air OUT off']);
    expect((await world.ask('PUT', `${BASE}/activeForce?username=nobody`, { json })).status).toBe(404);
    expect((await world.ask('PUT', `${BASE}/activeForce`, { json })).status).toBe(400);
  });

  it('are read one by one: the own ones, any known one for admins', async () => {
    const one = (path: string, as: CoreCaller) => world.ask('GET', BASE + path, { as });
    expect((await one('/Ops/IN', ADA)).body).toMatchObject({ type: TYPE, data: { name: 'Ops', direction: 'IN' } });
    expect((await one('/Air/IN', ADA)).body).toMatchObject({ status: 'NOT_FOUND', code: 1 });
    expect((await one('/Air/OUT', byCertificate('bob'))).status).toBe(404);
    expect((await one('/Air/IN', ADMIN)).body).toMatchObject({ data: { name: 'Air', direction: 'IN' } });
    expect((await one('/None/IN', ADMIN)).status).toBe(404);
    expect((await one('/Ops/BOTH', ADA)).body).toMatchObject({ code: 2 });
  });

  it('of somebody are shown to admins', async () => {
    expect(await shown(ADMIN, '/user?username=ada')).toEqual(['Ops IN on', 'Ops OUT on', 'Air OUT on']);
    expect((await world.ask('GET', `${BASE}/user?username=nobody`)).body).toMatchObject({ code: 1 });
    expect((await world.ask('GET', `${BASE}/user`)).body).toMatchObject({ code: 2 });
  });

  it('are taken anew from the directory when an admin says so', async () => {
    await shown();
    world.people.people.get('ada')?.groups.splice(0);
    expect(await shown()).toHaveLength(3);
    expect((await world.ask('POST', `${BASE}/update`, { json: ['ada', 'bob'] })).status).toBe(200);
    expect(await shown()).toEqual([]);
    expect(await world.ask('GET', `${BASE}/update/a.da`)).toMatchObject({ status: 200, text: '', type: null });
    expect(world.regrouped.map(({ usernames }) => usernames)).toEqual([['ada', 'bob'], ['a.da']]);
  });

  it('are kept in a cache, as the core says', async () => {
    expect((await world.ask('GET', `${BASE}/groupCacheEnabled`, { as: ADA })).body).toEqual({
      version: '3',
      type: 'java.lang.Boolean',
      data: true,
      nodeId: NODE_ID,
    });
  });

  it('of the directory are listed by text, without those that are no groups of the core', async () => {
    const dn = (name: string): string => `cn=${name},ou=groups,DC=core,DC=holdfast`;
    const list = async (filter: string): Promise<unknown> =>
      (await world.ask('GET', `${BASE}?groupNameFilter=${filter}`)).body;
    expect(await list('')).toMatchObject({ type: 'com.bbn.marti.remote.LdapGroup' });
    expect(await list('ops')).toMatchObject({
      data: [{ cn: 'core_Ops', dn: dn('core_Ops'), description: 'Operations' }],
    });
    expect(((await list('')) as { data: { cn: string }[] }).data.map(({ cn }) => cn)).toEqual([
      'core_Air_READ',
      'core_Ground_WRITE',
      'core_Ops',
    ]);
  });

  it('of the directory have so many members, each counted once, and a prefix', async () => {
    const count = async (filter: string): Promise<unknown> =>
      (await world.ask('GET', `${BASE}/members?groupNameFilter=${filter}`)).body;
    expect(await count('core_')).toMatchObject({ type: 'java.lang.Integer', data: 2 });
    expect(await count('air')).toMatchObject({ data: 1 });
    expect(await count('none')).toMatchObject({ data: 0 });
    expect((await world.ask('GET', '/Marti/api/groupprefix')).body).toMatchObject({ data: 'core_' });
  });

  it('cannot be told while the directory is away', async () => {
    world.people.mood = 'down';
    for (const path of ['/all', '/Ops/IN', '/user?username=ada', '?groupNameFilter=x', '/members'])
      expect((await world.ask('GET', BASE + path, { as: byCertificate('x') })).status).toBeOneOf([503, 403]);
    expect((await world.ask('GET', `${BASE}/all`, { as: ADA })).status).toBe(503);
    expect((await world.ask('GET', `${BASE}/members`)).status).toBe(503);
    expect(await shown(ADMIN)).toEqual(['__ANON__ OUT on']);
  });
});
