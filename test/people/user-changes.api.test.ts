import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { peopleWorld, type PeopleWorld } from './fake-people.ts';

let world: PeopleWorld;
beforeEach(async () => {
  world = await peopleWorld();
});

type Body = Record<string, unknown>;
async function ask(method: string, path: string, body?: unknown): Promise<[number, Body]> {
  const response = await world.ask(method, path, body);
  return [response.status, (await response.json()) as Body];
}
const patch = async (username: string, body: Body): Promise<[number, Body]> =>
  ask('PATCH', `/api/users/${(await world.named(username)).id}`, body);
const deactivate = async (username: string): Promise<[number, Body]> =>
  ask('DELETE', `/api/users/${(await world.named(username)).id}`);
const groupsOf = async (username: string): Promise<string[]> =>
  (await world.named(username)).groups.map(({ name }) => name).toSorted();
const FUTURE = '2027-01-02T03:04:05Z';
const PAST_SECONDS = 1_600_000_000;

describe('PATCH /api/users/{id}', () => {
  it('changes everything that is named, in one deed', async () => {
    await world.account({
      username: 'ada',
      name: 'Ada',
      email: 'a@example.org',
      groups: ['core_a'],
      attributes: { x: 1 },
    });
    const body = { name: 'Countess', email: '', expires_at: '2027-01-02T03:04Z', role: 'viewer' };
    expect(await patch('ada', body)).toEqual([
      200,
      expect.objectContaining({
        name: 'Countess',
        email: '',
        is_active: true,
        expires_at: '2027-01-02T03:04:00Z',
        role: 'viewer',
        groups: ['core_a'],
      }),
    ]);
    expect((await world.named('ada')).attributes).toEqual({ x: 1, app_expires: Date.parse(body.expires_at) / 1000 });
    expect(world.deps.audit.records.map(({ action, phase, result }) => [action, phase, result])).toEqual([
      ['user.update', 'intent', null],
      ['user.update', 'outcome', 'ok'],
    ]);
    expect(await world.deps.signIns.epoch('ada')).toBe(0);
  });

  it('takes an expiry away with null, also one that is no time', async () => {
    for (const app_expires of [4e9, 'soon']) {
      await world.account({ username: `u${app_expires}`, attributes: { app_expires } });
      expect((await patch(`u${app_expires}`, { expires_at: null }))[1]).toMatchObject({ expires_at: null });
      expect((await world.named(`u${app_expires}`)).attributes).toEqual({});
    }
  });

  it('writes nothing where nothing differs', async () => {
    await world.account({ username: 'ada', name: 'Ada', groups: ['stack_viewer'] });
    for (const body of [{}, { name: 'Ada', email: '', is_active: true, expires_at: null, role: 'viewer' }])
      expect((await patch('ada', body))[0]).toBe(200);
    expect(world.deps.audit.records).toEqual([]);
  });

  it.each([
    [{ name: 'New', email: 'nowhere' }, 'email'],
    [{ name: 'New', role: 'boss' }, 'role'],
    [{ name: 'New', expires_at: '2020-01-01T00:00:00+00:00' }, 'expires_at'],
    [{ name: 'New', is_active: 'yes' }, 'is_active'],
    [{ name: null }, 'name'],
    [{ name: 'New', username: 'other' }, ''],
    [{ name: 'New', groups: [] }, ''],
  ])('refuses %j and changes nothing', async (body, path) => {
    const before = await world.account({ username: 'ada' });
    expect(await patch('ada', body)).toEqual([
      422,
      expect.objectContaining({ errors: [{ path, message: expect.stringMatching(/./) }] }),
    ]);
    expect(await world.named('ada')).toEqual(before);
  });

  it('changes nothing when the provider refuses the address, and says so', async () => {
    const before = await world.account({ username: 'ada' });
    // A plain name to us, no address to the provider.
    expect((await patch('ada', { email: 'ada@hosts', role: 'admin', expires_at: FUTURE }))[0]).toBe(422);
    expect(await world.named('ada')).toEqual(before);
    expect(world.deps.audit.records.at(-1)).toMatchObject({ phase: 'outcome', result: 'failed' });
  });

  it('gives and takes roles by their groups, and leaves channels', async () => {
    await world.account({ username: 'ada', groups: ['core_a', 'other'] });
    for (const [role, groups] of [
      ['admin', ['core_a', 'other', 'stack_admin']],
      ['viewer', ['core_a', 'other', 'stack_viewer']],
      ['none', ['core_a', 'other']],
    ] as const) {
      expect((await patch('ada', { role }))[1]).toMatchObject({ role });
      expect(await groupsOf('ada')).toEqual(groups);
    }
    await world.account({ username: 'chief', groups: ['core_ROLE_ADMIN'] });
    expect((await patch('chief', { role: 'viewer' }))[1]).toMatchObject({ role: 'viewer' });
    expect(await groupsOf('chief')).toEqual(['stack_viewer']);
  });

  it('ends the sign-ins of whoever loses a role, not of whoever gains one', async () => {
    await world.account({ username: 'ada' });
    const epochs: number[] = [];
    for (const role of ['admin', 'viewer', 'none', 'viewer'] as const) {
      await patch('ada', { role });
      epochs.push(await world.deps.signIns.epoch('ada'));
    }
    expect(epochs).toEqual([0, 1, 2, 2]);
  });

  it('lets a new role count at once for whoever is signed in', async () => {
    await world.person('ada');
    const headers = { authorization: `Basic ${btoa('ada:correct horse battery')}` };
    expect((await world.ask('GET', '/api/users', undefined, headers)).status).toBe(403);
    world.deps.directory.people.get('ada')?.groups.push('stack_viewer');
    await patch('ada', { role: 'viewer' });
    expect((await world.ask('GET', '/api/users', undefined, headers)).status).toBe(200);
  });

  it('reactivates, but an expired user only with a new expiry or none', async () => {
    await world.account({ username: 'ada', attributes: { app_expires: PAST_SECONDS } });
    await deactivate('ada');
    expect(await patch('ada', { is_active: true })).toEqual([
      409,
      expect.objectContaining({ detail: expect.stringMatching(/ada has expired.*expires_at/) }),
    ]);
    expect((await patch('ada', { is_active: true, expires_at: FUTURE }))[1]).toMatchObject({ is_active: true });
    await world.account({ username: 'bob', attributes: { app_expires: PAST_SECONDS } });
    await deactivate('bob');
    expect((await patch('bob', { is_active: true, expires_at: null }))[1]).toMatchObject({
      is_active: true,
      expires_at: null,
    });
  });

  it('is 404 for nobody and for hidden accounts', async () => {
    await world.account({ username: 'svc_x', kind: 'service' });
    for (const username of ['svc_x', 'akadmin']) {
      expect((await patch(username, { name: 'x' }))[0]).toBe(404);
      expect((await deactivate(username))[0]).toBe(404);
    }
    expect((await ask('PATCH', '/api/users/999999', { name: 'x' }))[0]).toBe(404);
  });

  it('leaves the rest to a job when the provider goes away in the middle', async () => {
    await world.account({ username: 'ada' });
    world.deps.identity.accounts.changeAttributes = async () => {
      throw new AppError('unavailable', 'The provider does not answer.');
    };
    const [status, problem] = await patch('ada', { name: 'New', expires_at: FUTURE });
    expect([status, problem['detail']]).toEqual([503, expect.stringMatching(/^The provider does not answer. /)]);
    expect(world.deps.audit.records.map(({ phase }) => phase)).toEqual(['intent']);
  });
});

describe('deactivation', () => {
  it('keeps the record, and ends app passwords and everything that was signed', async () => {
    const attributes = { app_expires: 4e9, app_note: 'kept' };
    const before = await world.account({ username: 'ada', groups: ['core_a', 'stack_viewer'], attributes });
    await world.deps.identity.appPasswords.create({
      identifier: 'phone',
      accountId: before.id,
      description: '',
      expiresAt: null,
    });
    expect(await deactivate('ada')).toEqual([200, expect.objectContaining({ is_active: false, groups: ['core_a'] })]);
    expect(await world.named('ada')).toEqual({ ...before, isActive: false });
    expect(await world.deps.identity.appPasswords.list('ada')).toEqual([]);
    expect(await world.deps.signIns.epoch('ada')).toBe(1);
  });

  it('may be repeated, and is the same by PATCH', async () => {
    await world.account({ username: 'ada' });
    for (let times = 0; times < 2; times += 1) expect((await deactivate('ada'))[1]).toMatchObject({ is_active: false });
    expect((await patch('ada', { is_active: false }))[1]).toMatchObject({ is_active: false });
    expect(world.deps.audit.records.map(({ action }) => action).slice(-1)).toEqual(['user.update']);
  });

  it('forgets at once whoever was let in a moment ago', async () => {
    await world.person('ada', ['stack_viewer']);
    const headers = { authorization: `Basic ${btoa('ada:correct horse battery')}` };
    expect((await world.ask('GET', '/api/users', undefined, headers)).status).toBe(200);
    const person = world.deps.directory.people.get('ada');
    if (person !== undefined) person.active = false;
    await deactivate('ada');
    expect((await world.ask('GET', '/api/users', undefined, headers)).status).toBe(401);
  });
});

describe('an administrator who is being put out', () => {
  /** Requests of evan that are under way while webadmin does `deed`; resolves when all have ended. */
  async function meanwhile(action: (id: number) => Promise<[number, Body]>, evil: [string, string, Body]) {
    const { id } = await world.person('evan', ['stack_admin']);
    world.deps.directory.people.get('evan')?.groups.splice(0, 1, 'stack_admin');
    const expiresAt = '2030-01-01T00:00:00.000Z';
    const token = { name: 'x', scope: 'admin', owner: 'evan', expiresAt } as const;
    const headers = { authorization: `Bearer ${(await world.deps.signIns.createToken(token)).text}` };
    const { peopleLock } = world.deps;
    const [method, path, body] = evil;
    let answer: Promise<Response> | undefined;
    let requested = false;
    world.deps.peopleLock = async (key, work) =>
      peopleLock(key, async () => {
        if (requested) return work();
        requested = true;
        // He was let in before, and waits for his turn.
        answer = world.ask(method, path.replace('{id}', String(id)), body, headers);
        await new Promise((turn) => setTimeout(turn, 30));
        return work();
      });
    const [status] = await action(id);
    return { status, evil: (await answer)?.status };
  }

  function putOut(change: () => void): void {
    change();
    world.deps.signIns.endAllOf('evan');
    void world.deps.authenticator.forget('evan');
  }

  it('cannot make himself active again with a request that was on its way', async () => {
    const auditedAction = async (id: number): Promise<[number, Body]> => {
      const answer = ask('DELETE', `/api/users/${id}`);
      const { accounts } = world.deps.identity;
      const change = accounts.change.bind(accounts);
      accounts.change = async (...args) => {
        putOut(() => Object.assign(world.deps.directory.people.get('evan') ?? {}, { active: false }));
        return change(...args);
      };
      return answer;
    };
    const ended = await meanwhile(auditedAction, ['PATCH', '/api/users/{id}', { is_active: true, role: 'viewer' }]);
    expect(ended).toEqual({ status: 200, evil: 401 });
    expect((await world.named('evan')).isActive).toBe(false);
  });

  it('cannot take the role back', async () => {
    const auditedWork = async (id: number): Promise<[number, Body]> => {
      const { groups } = world.deps.identity;
      const removeMember = groups.removeMember.bind(groups);
      groups.removeMember = async (...args) => {
        world.deps.directory.people.get('evan')?.groups.splice(0, 1, 'stack_viewer');
        return removeMember(...args);
      };
      return ask('PATCH', `/api/users/${id}`, { role: 'viewer' });
    };
    const ended = await meanwhile(auditedWork, ['PATCH', '/api/users/{id}', { role: 'admin', name: 'x' }]);
    expect(ended).toEqual({ status: 200, evil: 401 });
    expect(await groupsOf('evan')).toEqual(['stack_viewer']);
  });

  it('cannot set another password over the new one', async () => {
    const audits = async (id: number): Promise<[number, Body]> => {
      const { status } = await world.ask('POST', `/api/users/${id}/password`, { password: 'the right password' });
      return [status, {}];
    };
    const body = { password: 'his own password' };
    const ended = await meanwhile(audits, ['POST', '/api/users/{id}/password', body]);
    expect(ended).toEqual({ status: 204, evil: 401 });
  });
});

describe('the last administrator', () => {
  const TAKING = [{ is_active: false }, { role: 'viewer' }, { role: 'none' }, { expires_at: FUTURE }];

  it.each(TAKING)('webadmin is never changed by %j', async (body) => {
    await world.account({ username: 'chief', groups: ['stack_admin'] });
    const before = await world.named('webadmin');
    expect(await patch('webadmin', { ...body, name: 'Changed' })).toEqual([
      409,
      expect.objectContaining({ detail: expect.stringMatching(/^webadmin is the first administrator/) }),
    ]);
    expect((await deactivate('webadmin'))[0]).toBe(409);
    expect(await world.named('webadmin')).toEqual(before);
    expect((await patch('webadmin', { name: 'Boss' }))[1]).toMatchObject({ name: 'Boss' });
  });

  async function withoutWebadmin(): Promise<void> {
    const { accounts } = world.deps.identity;
    await accounts.change((await world.named('webadmin')).id, { isActive: false });
  }

  it.each(TAKING)('is not changed by %j while no other is left, then is', async (body) => {
    await withoutWebadmin();
    await world.account({ username: 'chief', groups: ['stack_admin'] });
    await world.account({ username: 'expiring', groups: ['stack_admin'], attributes: { app_expires: 4e9 } });
    await world.account({ username: 'adm_hidden', groups: ['stack_admin'] });
    await world.account({ username: 'program', kind: 'service', groups: ['stack_admin'] });
    const { id } = await world.account({ username: 'former', groups: ['stack_admin'] });
    await world.deps.identity.accounts.change(id, { isActive: false });
    expect(await patch('chief', body)).toEqual([
      409,
      expect.objectContaining({ detail: expect.stringMatching(/^chief is the last administrator.*Make another/) }),
    ]);
    await world.account({ username: 'second', groups: ['core_ROLE_ADMIN'] });
    expect((await patch('chief', body))[0]).toBe(200);
  });

  it('is left when two are demoted, deactivated or given an expiry at once', async () => {
    for (const body of TAKING) {
      world = await peopleWorld();
      await withoutWebadmin();
      for (const username of ['one', 'two']) await world.account({ username, groups: ['stack_admin'] });
      const statuses = await Promise.all([patch('one', body), patch('two', body)]);
      expect(new Set(statuses.map(([status]) => status))).toEqual(new Set([200, 409]));
    }
  });

  it('is found among more than a page of them', async () => {
    await withoutWebadmin();
    const attributes = { app_expires: 4e9 };
    for (let index = 0; index < 120; index += 1)
      await world.account({ username: `a${index}`, groups: ['stack_admin'], attributes });
    await world.account({ username: 'chief', groups: ['stack_admin'] });
    expect((await deactivate('chief'))[0]).toBe(409);
    await world.account({ username: 'zoe', groups: ['stack_admin'] });
    expect((await deactivate('chief'))[0]).toBe(200);
  });

  it('is counted in a group of ADMIN_GROUP that the provider spells in another case', async () => {
    world = await peopleWorld({ ADMIN_GROUP: 'CHIEFS' });
    const { groups } = world.deps.identity;
    await groups.delete((await groups.named('CHIEFS'))?.id ?? '');
    await withoutWebadmin();
    for (const username of ['one', 'two']) await world.account({ username, groups: ['Chiefs'] });
    expect((await deactivate('one'))[0]).toBe(200);
    expect((await deactivate('two'))[0]).toBe(409);
  });
});
