// Deps in which the people of the directory have accounts at the identity provider too, ways to ask the app as somebody,
// and a provider that dies in the middle.

import { ADMIN_ROLE_GROUP, WEBADMIN } from '@holdfast/kit/names';
import { createApp } from '../../functions/app.ts';
import type { App, Bindings } from '../../shared/http/context.ts';
import type { Account, NewAccount } from '../../shared/identity/port.ts';
import { NOW, type World, world } from '../health/fake-monitored.ts';
import { ADMIN, type FakeDeps, fakeDeps, PASSWORD } from '../http/fake-deps.ts';
import { fakeIdentity } from '../identity/fake-identity.ts';

export const CONNECTION: Bindings = { requestId: 'request-1', clientAddress: '192.0.2.7', secure: false };
export const ACTOR = { username: 'webadmin', address: '192.0.2.7', requestId: 'request-1' };

export interface PeopleWorld {
  deps: FakeDeps;
  around: World;
  app: App;
  /** An account at the provider; `groups` are made when they are missing. */
  account(wanted: Partial<NewAccount> & { username: string; groups?: string[] }): Promise<Account>;
  /** A person of the directory with that password and these groups, and its account. */
  person(username: string, groups?: string[]): Promise<Account>;
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
  named(username: string): Promise<Account>;
}

export async function peopleWorld(values: Record<string, string> = {}): Promise<PeopleWorld> {
  const around = world();
  around.now = new Date(NOW);
  const deps = fakeDeps(values, around);
  deps.identity = fakeIdentity({ now: () => around.now });
  deps.peopleLock = oneAtATime();
  deps.deviceLock = oneAtATime();
  deps.feedLock = oneAtATime();
  const app = createApp(deps);
  const { identity, settings } = deps;

  async function account({
    groups = [],
    ...wanted
  }: Partial<NewAccount> & { username: string; groups?: string[] }): Promise<Account> {
    const { id } = await identity.accounts.create({ name: wanted.username, ...wanted });
    for (const name of groups) {
      const group = (await identity.groups.named(name)) ?? (await identity.groups.create(name));
      await identity.groups.addMember(group.id, id);
    }
    return (await identity.accounts.get(id)) as Account;
  }

  for (const name of [ADMIN_ROLE_GROUP, settings.ADMIN_GROUP, settings.VIEWER_GROUP])
    await identity.groups.create(name);
  await account({ username: WEBADMIN, groups: [ADMIN_ROLE_GROUP] });
  await account({ username: 'vera', groups: [settings.VIEWER_GROUP] });
  await account({ username: 'nora' });

  return {
    deps,
    around,
    app,
    account,
    person: async (username, groups = []) => {
      for (const name of groups) deps.directory.addGroup(name);
      deps.directory.addPerson(username, PASSWORD).groups.push(...groups);
      return account({ username, groups });
    },
    ask: async (method, path, body, headers = ADMIN) =>
      app.request(
        path,
        {
          method,
          headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        },
        CONNECTION,
      ),
    named: async (username) => (await identity.accounts.named(username)) as Account,
  };
}

/** A lock as the real one is for one process: pieces of work of a key come one after the other. */
function oneAtATime(): FakeDeps['peopleLock'] {
  const tails = new Map<string, Promise<unknown>>();
  return async (key, work) => {
    const mine = (tails.get(key) ?? Promise.resolve()).then(work, work);
    tails.set(
      key,
      mine.catch(() => undefined),
    );
    return mine;
  };
}

export class Died extends Error {}

type Port =
  | 'identity'
  | 'core'
  | 'coreEnrollment'
  | 'coreDevices'
  | 'coreAuthority'
  | 'clientKeys'
  | 'certificateStore'
  | 'coreRetention'
  | 'retentionHistory'
  | 'opsJobs'
  | 'vacuumFacts'
  | 'coreVacuum'
  | 'coreNotices'
  | 'health';
/** Everything that a revocation touches. */
export const OF_REVOCATION: readonly Port[] = ['identity', 'core', 'coreDevices', 'clientKeys', 'certificateStore'];

/** Everything that a run of retention touches once it is ordered. */
export const OF_RETENTION: readonly Port[] = ['coreRetention', 'retentionHistory', 'opsJobs', 'health'];

/** Everything that a vacuum touches once it is ordered. */
export const OF_VACUUM: readonly Port[] = ['vacuumFacts', 'coreVacuum', 'coreNotices', 'opsJobs', 'health'];

/**
 * The same deps in a process that dies at the `nth` call (from 1) to these ports, the provider if nothing is said: before the
 * call is made, or after it was, with its answer lost. A dead process writes no outcome either. `calls` counts.
 */
export function dyingAt(
  deps: FakeDeps,
  nth: number,
  when: 'before' | 'after',
  ports: readonly Port[] = ['identity'],
): FakeDeps & { calls: () => number } {
  let calls = 0;
  const isDead = (): boolean => calls >= nth;

  function around<T extends object>(port: T): T {
    return new Proxy(port, {
      get(target, name, receiver) {
        const member: unknown = Reflect.get(target, name, receiver);
        if (typeof member === 'object' && member !== null) return around(member);
        if (typeof member !== 'function') return member;
        return async (...args: unknown[]): Promise<unknown> => {
          if (isDead()) throw new Died('dead already');
          calls += 1;
          if (calls === nth && when === 'before') throw new Died('before the call');
          const answer: unknown = await (member as (...given: unknown[]) => unknown).apply(target, args);
          if (calls === nth) throw new Died('after the call');
          return answer;
        };
      },
    });
  }

  const mortal = Object.fromEntries(ports.map((name) => [name, around<object>(deps[name])])) as Pick<FakeDeps, Port>;
  return {
    ...deps,
    ...mortal,
    audit: {
      ...deps.audit,
      conclude: async (...args) => {
        if (!isDead()) await deps.audit.conclude(...args);
      },
    },
    calls: () => calls,
  };
}
