// What a process leaves behind that dies at any moment of making or deleting a service account, and what the job makes of it.

import { describe, expect, it } from 'vitest';
import { run } from '../../jobs/finish-intents.ts';
import { createServiceAccount } from '../../shared/people/service-accounts/create.ts';
import {
  deleteServiceAccount,
  readServiceAccount,
  type ServiceAccountContext,
} from '../../shared/people/service-accounts/service-accounts.ts';
import type { FakeDeps } from '../http/fake-deps.ts';
import { ACTOR, Died, peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

const never = new AbortController().signal;
const NAME = 'svc_backup';

/** A process that dies at its `nth` call to anything outside, before it is made or with its answer lost. */
function dyingAt(deps: FakeDeps, nth: number, when: 'before' | 'after'): FakeDeps & { calls: () => number } {
  let calls = 0;
  function around<T extends object>(port: T): T {
    return new Proxy(port, {
      get(target, name, receiver) {
        const member: unknown = Reflect.get(target, name, receiver);
        if (typeof member === 'object' && member !== null) return around(member);
        if (typeof member !== 'function') return member;
        return async (...args: unknown[]): Promise<unknown> => {
          if (calls >= nth) throw new Died('dead already');
          calls += 1;
          if (calls === nth && when === 'before') throw new Died('before the call');
          const answer: unknown = await (member as (...given: unknown[]) => unknown).apply(target, args);
          if (calls === nth) throw new Died('after the call');
          return answer;
        };
      },
    });
  }
  const { identity, core, coreEnrollment, coreDevices, adminGrants, clientKeys, certificateStore } = deps;
  const ports = { identity, core, coreEnrollment, coreDevices, adminGrants, clientKeys, certificateStore };
  return {
    ...deps,
    ...(Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, around(port)])) as typeof ports),
    audit: {
      ...deps.audit,
      conclude: async (...given) => {
        if (calls < nth) await deps.audit.conclude(...given);
      },
    },
    calls: () => calls,
  };
}

async function prepare(values: Record<string, string> = {}): Promise<PeopleWorld> {
  const world = await peopleWorld(values);
  for (const name of ['core_a', 'core_b']) await world.deps.identity.groups.create(name);
  return world;
}

async function finish(world: PeopleWorld): Promise<void> {
  world.around.now = new Date(world.around.now.getTime() + 3 * 60_000);
  await run(world.deps, world.around.now, never);
}

const contextOf = (deps: FakeDeps): ServiceAccountContext => ({ deps, actor: ACTOR });

/** Every moment of it: counts the calls of a run that nobody disturbs. */
async function moments(begin: () => Promise<[PeopleWorld, (deps: FakeDeps) => Promise<unknown>]>): Promise<number> {
  const [world, act] = await begin();
  const deps = dyingAt(world.deps, Infinity, 'before');
  await act(deps);
  return deps.calls();
}

const outcomes = ({ deps }: PeopleWorld): unknown[] =>
  deps.audit.records.filter(({ phase }) => phase === 'outcome').map(({ action, result }) => [action, result]);

/** Complete, or nothing: never an account that is active and whose key nobody has. */
async function mustBeWholeOrGone(world: PeopleWorld, kind: string, keep: boolean, where: string): Promise<string> {
  const { deps } = world;
  const account = await deps.identity.accounts.named(NAME);
  const result = outcomes(world).at(-1);
  expect(await deps.audit.unfinished('2100', 9), where).toEqual([]);
  const noted = new Set((await deps.certificateStore.revocations([NAME])).map(({ hash }) => hash));
  const status = deps.theCore.certificates.filter(({ hash, username }) => username === NAME && !noted.has(hash));
  if (account === undefined || !account.isActive) {
    expect([deps.theCore.admins.size, status], where).toEqual([0, []]);
    expect(result, where).not.toEqual(['service_account.create', 'ok']);
    return 'gone';
  }
  const shown = await readServiceAccount(deps, account);
  expect(
    status.map(({ hash }) => hash),
    where,
  ).toEqual([shown.certificate?.fingerprint]);
  expect([keep, shown.certificate?.state, shown.certificate?.downloadable], where).toEqual([true, 'active', true]);
  expect([shown.kind, shown.groups, result], where).toEqual([
    kind,
    ['core_a', 'core_b'],
    ['service_account.create', 'ok'],
  ]);
  if (kind === 'admin')
    expect(await deps.coreDevices.roles(shown.certificate?.fingerprint ?? ''), where).toEqual(['ROLE_ADMIN']);
  return 'whole';
}

describe.each([
  ['data', 'true'],
  ['admin', 'true'],
  ['data', 'false'],
  ['admin', 'false'],
] as const)('a process that dies while it makes a service account of the kind %s (keys are kept: %s)', (kind, kept) => {
  const act = (deps: FakeDeps): Promise<unknown> =>
    createServiceAccount(contextOf(deps), { name: 'backup', kind, groups: ['a', 'b'] });

  it.each(['before', 'after'] as const)('leaves one that is complete, or none: %s each call', async (when) => {
    const calls = await moments(async () => [await prepare({ KEEP_CLIENT_KEYS: kept }), act]);
    expect(calls).toBeGreaterThan(8);
    const ends = new Set<string>();
    for (let nth = 1; nth <= calls; nth += 1) {
      const world = await prepare({ KEEP_CLIENT_KEYS: kept });
      await expect(act(dyingAt(world.deps, nth, when))).rejects.toThrow();
      await finish(world);
      ends.add(await mustBeWholeOrGone(world, kind, kept === 'true', `${when} call ${nth}`));
    }
    expect([...ends].toSorted()).toEqual(kept === 'true' ? ['gone', 'whole'] : ['gone']);
  });
});

describe('a process that dies while it deletes a service account', () => {
  async function begin(): Promise<[PeopleWorld, (deps: FakeDeps) => Promise<unknown>]> {
    const world = await prepare();
    const { id } = await createServiceAccount(contextOf(world.deps), { name: 'backup', kind: 'admin' });
    const access = { identifier: 'x', accountId: id, description: '', expiresAt: null };
    await world.deps.identity.appPasswords.create(access);
    return [world, (deps) => deleteServiceAccount(contextOf(deps), { id })];
  }

  it.each(['before', 'after'] as const)('has it deleted by the job: %s each call', async (when) => {
    const calls = await moments(begin);
    for (let nth = 1; nth <= calls; nth += 1) {
      const [world, act] = await begin();
      await act(dyingAt(world.deps, nth, when)).catch(() => undefined);
      const begun = world.deps.audit.records.some(({ action }) => action === 'service_account.delete');
      await finish(world);
      const { identity, theCore, audit } = world.deps;
      const account = await identity.accounts.named(NAME);
      const left = [account?.isActive, theCore.admins.size, (await identity.appPasswords.list(NAME)).length];
      expect(left, `${when} call ${nth}`).toEqual(begun ? [false, 0, 0] : [true, 1, 1]);
      expect(await audit.unfinished('2100', 9)).toEqual([]);
    }
  });

  it('does not delete what was made anew since', async () => {
    const [world, act] = await begin();
    const { certificateStore, core, now } = world.deps;
    const { audit } = world.deps;
    await act({ ...world.deps, audit: { ...audit, conclude: async () => undefined } });
    await certificateStore.wantRevoked(await core.certificates(NAME), now().toISOString());
    await createServiceAccount(contextOf(world.deps), { name: 'backup', kind: 'data' });
    await finish(world);
    expect((await world.deps.identity.accounts.named(NAME))?.isActive).toBe(true);
  });
});
