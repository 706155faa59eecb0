// What a process leaves behind that dies at any moment of a change, and what the job makes of it.

import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { run } from '../../jobs/finish-intents.ts';
import type { PeopleContext } from '../../shared/devices/accounts.ts';
import { setUserGroups } from '../../shared/people/channel-membership.ts';
import { createUser, setUserPassword } from '../../shared/people/create-user.ts';
import { deactivateUser, expireUser, updateUser } from '../../shared/people/deactivate-user.ts';
import { ACTOR, dyingAt, peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

const never = new AbortController().signal;
const MINUTE = 60_000;

interface AuditedAction {
  name: string;
  act: (context: PeopleContext, id: number) => Promise<unknown>;
  /** What the person is before and after; undefined: does not exist. */
  before: unknown;
  after: unknown;
  endsSignIns: boolean;
}

const BEFORE = {
  is_active: true,
  role: 'admin',
  groups: ['core_blue', 'core_red'],
  expires: 4e9,
  apps: 2,
  name: 'Ada',
};
const ACTIONS: AuditedAction[] = [
  {
    name: 'user.create',
    act: (context) =>
      createUser(context, {
        username: 'eve',
        name: 'Eve',
        groups: ['blue', 'red', 'green'],
        expires_at: '2096-10-02T07:06:40Z',
      }),
    before: undefined,
    after: {
      is_active: true,
      role: 'none',
      groups: ['core_blue', 'core_green', 'core_red'],
      expires: 4e9,
      apps: 0,
      name: 'Eve',
    },
    endsSignIns: true,
  },
  {
    name: 'user.update',
    act: (context, id) =>
      updateUser(context, { id, name: 'New', is_active: false, expires_at: '2128-06-11T08:53:20Z', role: 'viewer' }),
    before: BEFORE,
    after: { ...BEFORE, is_active: false, role: 'viewer', expires: 5e9, apps: 0, name: 'New' },
    endsSignIns: true,
  },
  {
    name: 'user.groups',
    act: (context, id) => setUserGroups(context, { id, groups: ['green', 'red'] }),
    before: BEFORE,
    after: { ...BEFORE, groups: ['core_green', 'core_red'] },
    endsSignIns: false,
  },
  {
    name: 'user.deactivate',
    act: (context, id) => deactivateUser(context, { id }),
    before: BEFORE,
    after: { ...BEFORE, is_active: false, apps: 0 },
    endsSignIns: true,
  },
  {
    name: 'user.expire',
    act: async (context, id) => {
      await expireUser({ ...context, deps: { ...context.deps, now: () => new Date(4e12) } }, { id });
    },
    before: BEFORE,
    after: { ...BEFORE, is_active: false, apps: 0 },
    endsSignIns: true,
  },
];

async function prepared(): Promise<{ world: PeopleWorld; id: number }> {
  const world = await peopleWorld();
  await world.deps.identity.groups.create('core_green');
  const groups = ['core_blue', 'core_red', 'stack_admin'];
  const { id } = await world.account({ username: 'ada', name: 'Ada', groups, attributes: { app_expires: 4e9 } });
  for (const identifier of ['phone', 'tablet'])
    await world.deps.identity.appPasswords.create({ identifier, accountId: id, description: '', expiresAt: null });
  return { world, id };
}

async function stateOf({ deps }: PeopleWorld, username: string): Promise<unknown> {
  const account = await deps.identity.accounts.named(username);
  if (account === undefined) return undefined;
  const names = account.groups.map(({ name }) => name);
  return {
    is_active: account.isActive,
    role: names.includes('stack_admin') ? 'admin' : names.includes('stack_viewer') ? 'viewer' : 'none',
    groups: names.filter((name) => name.startsWith('core_')).toSorted(),
    expires: account.attributes['app_expires'],
    apps: (await deps.identity.appPasswords.list(account.username)).length,
    name: account.name,
  };
}

describe.each(ACTIONS)('$name, when its process dies', ({ name, act, before, after, endsSignIns }) => {
  const who = name === 'user.create' ? 'eve' : 'ada';

  it.each(['before', 'after'] as const)('%s any call, is done or was never begun, and has an outcome', async (when) => {
    let died = 0;
    for (let nth = 1; ; nth += 1) {
      const { world, id } = await prepared();
      const { deps, around } = world;
      const dying = dyingAt(deps, nth, when);
      const epoch = await deps.signIns.epoch(who);
      const ended = await act({ deps: dying, actor: ACTOR }, id).then(
        () => true,
        () => false,
      );
      if (dying.calls() < nth) break;
      died += 1;
      const records = [...deps.audit.records];
      const intended = records.some(({ phase, action }) => phase === 'intent' && action === name);
      // Only the account that is to be shown was still to be read.
      const concluded = records.some(({ phase, result }) => phase === 'outcome' && result === 'ok');
      around.now = new Date(around.now.getTime() + 3 * MINUTE);
      const summary = await run(deps, around.now, never);
      const outcomes = deps.audit.records.filter(({ phase }) => phase === 'outcome');
      const state = await stateOf(world, who);
      if (!intended) {
        expect([ended, outcomes, state]).toEqual([false, [], before]);
        continue;
      }
      const isDone = outcomes[0]?.result === 'ok';
      expect(outcomes).toMatchObject([
        { action: name, target: who, actor: concluded ? ACTOR.username : 'finish-intents', intent: 1 },
      ]);
      expect([nth, isDone, state]).toEqual([nth, isDone, isDone ? after : before]);
      // Only an account that was never made is not made later.
      if (name !== 'user.create') expect(isDone).toBe(true);
      expect(outcomes[0]?.detail.includes('"finished_later":true')).toBe(!concluded);
      expect(summary).toMatchObject({ open: 0, unknown: 0 });
      if (endsSignIns) expect(await deps.signIns.epoch(who)).toBeGreaterThan(epoch);
      expect(await run(deps, around.now, never)).toEqual({ ok: 0, failed: 0, unknown: 0, open: 0 });
    }
    expect(died).toBeGreaterThan(2);
  });
});

describe('finish-intents', () => {
  it('leaves alone what may still be under way', async () => {
    const { world, id } = await prepared();
    const { deps, around } = world;
    await expect(deactivateUser({ deps: dyingAt(deps, 4, 'after'), actor: ACTOR }, { id })).rejects.toThrow();
    around.now = new Date(around.now.getTime() + MINUTE);
    expect(await run(deps, around.now, never)).toEqual({ ok: 0, failed: 0, unknown: 0, open: 0 });
  });

  it('tries again in the next run what the provider does not answer, and gives up after a day', async () => {
    const { world, id } = await prepared();
    const { deps, around } = world;
    const appPasswords = { ...deps.identity.appPasswords };
    deps.identity.appPasswords.list = async () => {
      throw new AppError('unavailable', 'The provider does not answer');
    };
    const failure = deactivateUser({ deps, actor: ACTOR }, { id });
    await expect(failure).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/may be incomplete/),
    });
    expect((await world.named('ada')).isActive).toBe(false);
    around.now = new Date(around.now.getTime() + 3 * MINUTE);
    expect(await run(deps, around.now, never)).toMatchObject({ open: 1 });
    deps.identity.appPasswords.list = async (username) => appPasswords.list(username);
    expect(await run(deps, around.now, never)).toMatchObject({ open: 0, ok: 1 });
    expect(await stateOf(world, 'ada')).toMatchObject({ is_active: false, apps: 0 });

    deps.identity.accounts.get = async () => {
      throw new AppError('unavailable', 'The provider does not answer');
    };
    await deps.audit.intend({ actor: ACTOR, action: 'user.deactivate', target: 'ada' }, { id, change: {} });
    around.now = new Date(around.now.getTime() + 1441 * MINUTE);
    expect(await run(deps, around.now, never)).toMatchObject({ open: 0, unknown: 1 });
  });

  it('loses no demotion to what happens later with the same person: a sign-in, another change, other groups', async () => {
    const { world, id } = await prepared();
    const { deps, around } = world;
    await world.account({ username: 'bob', groups: ['stack_admin'] });
    const context = { deps, actor: ACTOR };
    const dying = { deps: dyingAt(deps, 7, 'before'), actor: ACTOR };
    await expect(updateUser(dying, { id, name: 'Early', role: 'none' })).rejects.toThrow();
    expect(await stateOf(world, 'ada')).toMatchObject({ role: 'admin', name: 'Early' });
    const about = { actor: ACTOR, action: 'session.create', target: 'ada' };
    await deps.audit.conclude(await deps.audit.intend(about), about, { result: 'ok' });
    await updateUser(context, { id, name: 'Later' });
    await setUserGroups(context, { id, groups: ['green'] });
    around.now = new Date(around.now.getTime() + 3 * MINUTE);
    expect(await run(deps, around.now, never)).toMatchObject({ ok: 1, unknown: 0 });
    expect(await stateOf(world, 'ada')).toMatchObject({ role: 'none', name: 'Later', groups: ['core_green'] });
    expect(JSON.parse(deps.audit.records.at(-1)?.detail ?? '')).toEqual({ finished_later: true, overtaken: ['name'] });
  });

  it('is not overtaken by what was refused', async () => {
    const { world, id } = await prepared();
    const { deps, around } = world;
    await expect(updateUser({ deps: dyingAt(deps, 3, 'before'), actor: ACTOR }, { id, name: 'New' })).rejects.toThrow();
    const about = { actor: ACTOR, action: 'user.update', target: 'ada' };
    const refused = await deps.audit.intend(about, { id, change: { name: 'Refused' } });
    await deps.audit.conclude(refused, about, { result: 'failed' });
    around.now = new Date(around.now.getTime() + 3 * MINUTE);
    expect(await run(deps, around.now, never)).toMatchObject({ ok: 1, unknown: 0 });
    expect(await stateOf(world, 'ada')).toMatchObject({ name: 'New' });
  });

  it('does not undo what somebody did later, but takes the rest of the way in from whoever stays inactive', async () => {
    const { world, id } = await prepared();
    const { deps, around } = world;
    await world.account({ username: 'bob', groups: ['stack_admin'] });
    await expect(deactivateUser({ deps: dyingAt(deps, 6, 'after'), actor: ACTOR }, { id })).rejects.toThrow();
    expect((await world.named('ada')).isActive).toBe(false);
    await updateUser({ deps, actor: ACTOR }, { id, name: 'Later' });
    around.now = new Date(around.now.getTime() + 3 * MINUTE);
    expect(await run(deps, around.now, never)).toMatchObject({ ok: 1 });
    expect(await stateOf(world, 'ada')).toMatchObject({ is_active: false, name: 'Later', apps: 0 });
  });

  it('does not deactivate again whoever was made active later', async () => {
    const { world, id } = await prepared();
    const { deps, around } = world;
    await expect(deactivateUser({ deps: dyingAt(deps, 6, 'after'), actor: ACTOR }, { id })).rejects.toThrow();
    await updateUser({ deps, actor: ACTOR }, { id, is_active: true });
    around.now = new Date(around.now.getTime() + 3 * MINUTE);
    expect(await run(deps, around.now, never)).toMatchObject({ unknown: 1 });
    expect(await stateOf(world, 'ada')).toMatchObject({ is_active: true });
  });

  it('does not know about passwords, and signs the person out to be safe', async () => {
    const { world, id } = await prepared();
    const { deps, around } = world;
    const input = { id, password: 'a password of today' };
    await expect(setUserPassword({ deps: dyingAt(deps, 2, 'after'), actor: ACTOR }, input)).rejects.toThrow();
    around.now = new Date(around.now.getTime() + 3 * MINUTE);
    expect(await run(deps, around.now, never)).toMatchObject({ unknown: 1 });
    expect(await deps.signIns.epoch('ada')).toBe(1);
    expect(JSON.stringify(deps.audit.records)).not.toContain('password of today');
  });

  it('says what cannot be done any more: the account is another, a channel is gone, the last administrator', async () => {
    const { world, id } = await prepared();
    const { deps, around } = world;
    const intend = async (action: string, target: string, detail: Parameters<typeof deps.audit.intend>[1]) =>
      deps.audit.intend({ actor: ACTOR, action, target }, detail);
    await intend('user.deactivate', 'somebody', { id, change: { is_active: false } });
    await intend('user.groups', 'ada', { id, groups: ['core_blue', 'core_gone'] });
    await intend('user.update', 'nora', { nonsense: true });
    await intend('user.deactivate', 'webadmin', {
      id: (await world.named('webadmin')).id,
      change: { is_active: false },
    });
    around.now = new Date(around.now.getTime() + 3 * MINUTE);
    expect(await run(deps, around.now, never)).toEqual({ ok: 1, failed: 2, unknown: 1, open: 0 });
    expect((await world.named('webadmin')).isActive).toBe(true);
    const details = deps.audit.records.slice(-4).map(({ detail }) => detail);
    expect(details).toEqual([
      expect.stringMatching(/account somebody with the id \d+ no longer exists/),
      expect.stringMatching(/core_gone/),
      expect.stringMatching(/can't be read/),
      expect.stringMatching(/cannot be deactivated/),
    ]);
    expect(await stateOf(world, 'ada')).toMatchObject({ groups: ['core_blue'] });
  });

  it('stops when its claim is lost', async () => {
    const { world } = await prepared();
    await world.deps.audit.intend({ actor: ACTOR, action: 'user.other', target: 'x' });
    const later = new Date(world.around.now.getTime() + 3 * MINUTE);
    expect(await run(world.deps, later, AbortSignal.abort())).toMatchObject({ unknown: 0 });
    expect(await run(world.deps, later, never)).toMatchObject({ unknown: 1 });
  });
});
