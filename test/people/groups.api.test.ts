import { beforeEach, describe, expect, it } from 'vitest';
import { UNGROUPED_GROUP } from '@holdfast/kit/names';
import { VIEWER } from '../http/fake-deps.ts';
import { peopleWorld, type PeopleWorld } from './fake-people.ts';

let world: PeopleWorld;
beforeEach(async () => {
  world = await peopleWorld();
});

async function ask(
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
): Promise<[number, unknown]> {
  const response = await world.ask(method, path, body, headers);
  const text = await response.text();
  return [response.status, text === '' ? undefined : JSON.parse(text)];
}
const idOf = async (name: string): Promise<string> => (await world.deps.identity.groups.named(name))?.id ?? '';

describe('/api/groups', () => {
  it('lists channels by name, with core_, and no group that gives a role', async () => {
    for (const name of ['core_b', 'core_A', 'other', 'core_b_READ']) await world.deps.identity.groups.create(name);
    const [status, groups] = await ask('GET', '/api/groups', undefined, VIEWER);
    expect([status, (groups as { name: string }[]).map(({ name }) => name)]).toEqual([
      200,
      ['core_A', 'core_b', 'core_b_READ'],
    ]);
    expect(Object.keys((groups as object[])[0] ?? {})).toEqual(['id', 'name']);
  });

  it('hides role groups that are called like channels', async () => {
    world = await peopleWorld({ ADMIN_GROUP: 'core_chiefs', VIEWER_GROUP: 'core_crew' });
    expect(await ask('GET', '/api/groups')).toEqual([200, []]);
    expect((await ask('GET', `/api/groups/${await idOf('core_chiefs')}`))[0]).toBe(404);
    expect((await ask('POST', '/api/groups', { name: 'CHIEFS' }))[0]).toBe(422);
  });

  it('makes a channel with or without the prefix, and shows it', async () => {
    const [status, made] = await ask('POST', '/api/groups', { name: 'Search Team 1' });
    expect([status, made]).toEqual([201, { id: await idOf('core_Search Team 1'), name: 'core_Search Team 1' }]);
    expect((await ask('POST', '/api/groups', { name: 'core_x' }))[1]).toMatchObject({ name: 'core_x' });
    expect(world.deps.audit.records.slice(0, 2)).toMatchObject([
      { action: 'group.create', target: 'core_Search Team 1', phase: 'intent' },
      { action: 'group.create', phase: 'outcome', result: 'ok' },
    ]);
  });

  it('refuses a name that is taken in any case', async () => {
    await ask('POST', '/api/groups', { name: 'blue' });
    const [status, problem] = await ask('POST', '/api/groups', { name: 'core_BLUE' });
    expect([status, problem]).toEqual([409, expect.objectContaining({ code: 'conflict' })]);
    expect(world.deps.audit.records.at(-1)).toMatchObject({ phase: 'outcome', result: 'failed' });
  });

  it.each([
    '',
    'core_',
    ' x',
    'x '.repeat(1),
    'a,b',
    'ü',
    'x'.repeat(65),
    'ROLE_ADMIN',
    'core_role_admin',
    'Stack_Viewer',
  ])('refuses the name %j', async (name) => {
    const [status, problem] = await ask('POST', '/api/groups', { name });
    expect([status, problem]).toEqual([
      422,
      expect.objectContaining({ errors: [expect.objectContaining({ path: 'name' })] }),
    ]);
    expect(world.deps.audit.records).toEqual([]);
  });

  it('refuses members that it does not know', async () => {
    expect(await ask('POST', '/api/groups', { name: 'x', admin: true })).toEqual([
      422,
      expect.objectContaining({ detail: 'unknown member "admin"' }),
    ]);
  });

  it('shows the members of a channel, without hidden accounts', async () => {
    for (const username of ['zoe', 'ada', 'svc_radio']) await world.account({ username, groups: ['core_blue'] });
    const id = await idOf('core_blue');
    expect(await ask('GET', `/api/groups/${id}`, undefined, VIEWER)).toEqual([
      200,
      {
        id,
        name: 'core_blue',
        members: [
          { id: (await world.named('ada')).id, username: 'ada' },
          { id: (await world.named('zoe')).id, username: 'zoe' },
        ],
        hidden_members: 1,
      },
    ]);
  });

  it('deletes a channel, and nothing of its members; whoever is in no other joins the ungrouped one', async () => {
    const before = await world.account({ username: 'ada', groups: ['core_blue'] });
    await world.account({ username: 'bob', groups: ['core_blue', 'core_red'] });
    const id = await idOf('core_blue');
    expect(await ask('DELETE', `/api/groups/${id}`)).toEqual([204, undefined]);
    const groups = [{ id: expect.any(String), name: UNGROUPED_GROUP }];
    expect(await world.named('ada')).toEqual({ ...before, groups });
    expect((await world.named('bob')).groups.map(({ name }) => name)).toEqual(['core_red']);
    expect((await ask('DELETE', `/api/groups/${id}`))[0]).toBe(404);
  });

  it('knows no other groups by id', async () => {
    await world.deps.identity.groups.create('other');
    const ids = await Promise.all(['core_ROLE_ADMIN', 'stack_admin', 'stack_viewer', 'other'].map(idOf));
    for (const id of [...ids, 'x', '00000000-0000-4000-8000-00000000dead'])
      for (const method of ['GET', 'DELETE'])
        expect([id, (await ask(method, `/api/groups/${id}`))[0]]).toEqual([id, 404]);
    expect(await idOf('stack_admin')).not.toBe('');
  });
});

describe('PUT /api/users/{id}/groups', () => {
  it('replaces channels and nothing else, and ignores what is named twice', async () => {
    const { id } = await world.account({ username: 'ada', groups: ['core_a', 'core_b', 'stack_viewer', 'other'] });
    await world.deps.identity.groups.create('core_c');
    const [status, user] = await ask('PUT', `/api/users/${id}/groups`, { groups: ['c', 'core_b', 'core_C', 'c'] });
    expect([status, user]).toEqual([200, expect.objectContaining({ groups: ['core_b', 'core_c'], role: 'viewer' })]);
    const names = (await world.named('ada')).groups.map(({ name }) => name).toSorted();
    expect(names).toEqual(['core_b', 'core_c', 'other', 'stack_viewer']);
    expect((await ask('PUT', `/api/users/${id}/groups`, { groups: [] }))[1]).toMatchObject({ groups: [] });
  });

  it('refuses unknown and forbidden names, all of them at once, and changes nothing', async () => {
    const before = await world.account({ username: 'ada', groups: ['core_a'] });
    const [status, problem] = await ask('PUT', `/api/users/${before.id}/groups`, { groups: ['a', 'x', 'stack_admin'] });
    expect([status, problem]).toEqual([
      422,
      expect.objectContaining({
        errors: [
          { path: 'groups.1', message: expect.stringMatching(/group core_x does not exist/) },
          { path: 'groups.2', message: expect.stringMatching(/role/) },
        ],
      }),
    ]);
    expect(await world.named('ada')).toEqual(before);
    expect(world.deps.audit.records).toEqual([]);
  });

  it('writes nothing where nothing differs', async () => {
    const { id } = await world.account({ username: 'ada', groups: ['core_a'] });
    expect((await ask('PUT', `/api/users/${id}/groups`, { groups: ['a'] }))[0]).toBe(200);
    expect(world.deps.audit.records).toEqual([]);
  });

  it('leaves one of two sets when two are put at once', async () => {
    const { id } = await world.account({ username: 'ada', groups: ['core_a', 'core_b', 'core_c', 'core_d'] });
    await Promise.all([
      ask('PUT', `/api/users/${id}/groups`, { groups: ['a', 'b'] }),
      ask('PUT', `/api/users/${id}/groups`, { groups: ['c', 'd'] }),
    ]);
    const held = (await world.named('ada')).groups.map(({ name }) => name).toSorted();
    expect([
      ['core_a', 'core_b'],
      ['core_c', 'core_d'],
    ]).toContainEqual(held);
  });

  it('is 404 for hidden accounts', async () => {
    const { id } = await world.account({ username: 'svc_x', kind: 'service' });
    expect((await ask('PUT', `/api/users/${id}/groups`, { groups: [] }))[0]).toBe(404);
  });
});
