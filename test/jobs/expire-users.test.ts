import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { run } from '../../jobs/expire-users.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

const never = new AbortController().signal;
const seconds = ({ around }: PeopleWorld): number => Math.floor(around.now.getTime() / 1000);
const inactive = async ({ deps }: PeopleWorld): Promise<string[]> => {
  const { results } = await deps.identity.accounts.list({ page: 1, pageSize: 200, isActive: false });
  return results.map(({ username }) => username);
};

describe('expire-users', () => {
  it('deactivates people and programs whose time is over, to the second, and nobody else', async () => {
    const world = await peopleWorld();
    const now = seconds(world);
    const expiries = { early: now - 1, exact: now, later: now + 1, text: `${now - 9}`, truth: true, none: null };
    for (const [username, app_expires] of Object.entries(expiries))
      await world.account({ username, attributes: { app_expires } });
    await world.account({ username: 'svc_old', kind: 'service', attributes: { app_expires: 1.5 } });
    await world.account({ username: 'adm_old', attributes: { app_expires: -5 } });
    expect(await run(world.deps, world.around.now, never)).toEqual({ expired: 4, kept: 0, failed: 0 });
    expect(await inactive(world)).toEqual(['adm_old', 'early', 'exact', 'svc_old']);
    expect((await world.named('early')).attributes).toEqual({ app_expires: now - 1 });
    expect(await run(world.deps, world.around.now, never)).toEqual({ expired: 0, kept: 0, failed: 0 });
    const later = new Date(world.around.now.getTime() + 1000);
    expect(await run(world.deps, later, never)).toEqual({ expired: 1, kept: 0, failed: 0 });
  });

  it('ends everything that lets the person in, and says so in the audit log', async () => {
    const world = await peopleWorld();
    const { deps } = world;
    const { id } = await world.account({ username: 'Ada', attributes: { app_expires: 1 } });
    await deps.identity.appPasswords.create({ identifier: 'phone', accountId: id, description: '', expiresAt: null });
    await run(deps, world.around.now, never);
    expect(await deps.identity.appPasswords.list('Ada')).toEqual([]);
    expect(await deps.signIns.epoch('ada')).toBe(1);
    expect(deps.audit.records).toMatchObject([
      { actor: 'expire-users', address: '', action: 'user.expire', target: 'Ada', phase: 'intent' },
      { actor: 'expire-users', action: 'user.expire', target: 'Ada', phase: 'outcome', result: 'ok' },
    ]);
  });

  it('goes on with the others when one fails', async () => {
    const world = await peopleWorld();
    const { deps } = world;
    for (const username of ['a', 'b', 'c', 'd', 'e', 'f'])
      await world.account({ username, attributes: { app_expires: 1 } });
    const { id: broken } = await world.named('c');
    const accounts = { ...deps.identity.accounts };
    deps.identity.accounts.change = async (id, what) => {
      if (id === broken) throw new AppError('unavailable', 'The provider does not answer');
      return accounts.change(id, what);
    };
    expect(await run(deps, world.around.now, never)).toEqual({ expired: 5, kept: 0, failed: 1 });
    expect(await inactive(world)).toEqual(['a', 'b', 'd', 'e', 'f']);
    expect(deps.log.events).toContainEqual(expect.objectContaining({ event: 'user.expiry_failed' }));
  });

  it('keeps webadmin, and lets an administrator with an expiry go while another is left', async () => {
    const world = await peopleWorld();
    const { deps } = world;
    await deps.identity.accounts.changeAttributes((await world.named('webadmin')).id, { app_expires: 1 });
    await world.account({ username: 'chief', groups: ['stack_admin'], attributes: { app_expires: 1 } });
    expect(await run(deps, world.around.now, never)).toEqual({ expired: 1, kept: 1, failed: 0 });
    expect(await inactive(world)).toEqual(['chief']);
    expect(deps.log.events).toContainEqual(
      expect.objectContaining({ event: 'user.not_expired', fields: expect.objectContaining({ username: 'webadmin' }) }),
    );
    expect(deps.audit.records.filter(({ target }) => target === 'webadmin')).toEqual([]);
  });

  it('keeps the last administrator who could sign in', async () => {
    const world = await peopleWorld();
    const { deps } = world;
    await deps.identity.accounts.change((await world.named('webadmin')).id, { isActive: false });
    for (const username of ['one', 'two'])
      await world.account({ username, groups: ['stack_admin'], attributes: { app_expires: 1 } });
    expect(await run(deps, world.around.now, never)).toEqual({ expired: 1, kept: 1, failed: 0 });
    expect(await inactive(world)).toHaveLength(2);
  });

  it('finds more than a page of them', async () => {
    const world = await peopleWorld();
    for (let index = 0; index < 230; index += 1)
      await world.account({ username: `user${index}`, attributes: { app_expires: 1 } });
    expect(await run(world.deps, world.around.now, never)).toEqual({ expired: 230, kept: 0, failed: 0 });
  });

  it('stops in the middle when its claim is lost', async () => {
    const world = await peopleWorld();
    const { deps } = world;
    for (let index = 0; index < 20; index += 1)
      await world.account({ username: `user${index}`, attributes: { app_expires: 1 } });
    const losing = new AbortController();
    const audit = { ...deps.audit };
    deps.audit.conclude = async (...args) => {
      losing.abort();
      return audit.conclude(...args);
    };
    const { expired } = await run(deps, world.around.now, losing.signal);
    expect(expired).toBeGreaterThan(0);
    expect(expired).toBeLessThan(20);
    expect(await run(deps, world.around.now, AbortSignal.abort())).toEqual({ expired: 0, kept: 0, failed: 0 });
  });

  it('asks the provider no more often for many users than for few', async () => {
    const calls = async (others: number): Promise<number> => {
      const world = await peopleWorld();
      for (let index = 0; index < others; index += 1) await world.account({ username: `other${index}` });
      await world.account({ username: 'old', attributes: { app_expires: 1 } });
      let count = 0;
      const accounts = { ...world.deps.identity.accounts };
      world.deps.identity.accounts.list = async (query) => {
        count += 1;
        return accounts.list(query);
      };
      await run(world.deps, world.around.now, never);
      return count;
    };
    expect(await calls(300)).toBe(await calls(1));
  });
});
