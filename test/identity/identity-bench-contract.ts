// Things of unique names for tests in an identity provider that others may use too; taken away after each test.

import { randomUUID } from 'node:crypto';
import { afterEach } from 'vitest';
import type { Account, Identity, NewAccount } from '../../shared/identity/port.ts';

/** Makes things of unique names in a provider. */
export interface Bench {
  identity: () => Identity;
  /** Nobody else's names begin with it. */
  prefix: string;
  account: (wanted?: Partial<NewAccount>) => Promise<Account>;
  /** Deletes a group of this id afterwards. */
  forgetGroup: (id: string) => void;
  forgetAppPassword: (identifier: string) => void;
}

/** An id that no provider has given yet. */
export const NO_ACCOUNT = 2_000_000_001;
export const NO_GROUP = '00000000-0000-4000-8000-00000000dead';

export function unique(): string {
  return randomUUID().slice(0, 8);
}

export function newBench(make: () => Identity): Bench {
  const prefix = `hf-test-${unique()}`;
  const groups: string[] = [];
  const appPasswords: string[] = [];
  let provider: Identity | undefined;
  const identity = (): Identity => (provider ??= make());

  afterEach(async () => {
    for (const identifier of appPasswords.splice(0)) await identity().appPasswords.delete(identifier);
    for (const id of groups.splice(0)) await identity().groups.delete(id);
    // Also those that a test was not told of.
    const { results } = await identity().accounts.list({ page: 1, pageSize: 100, search: prefix });
    for (const { id, username } of results) {
      if (username.toLowerCase().startsWith(prefix)) await identity().accounts.delete(id);
    }
  });

  return {
    identity,
    prefix,
    account: (wanted = {}) =>
      identity().accounts.create({ username: `${prefix}-${unique()}`, name: 'Test', ...wanted }),
    forgetGroup: (id) => groups.push(id),
    forgetAppPassword: (identifier) => appPasswords.push(identifier),
  };
}
