// Whose access ends by itself, asked in one call for everybody: a list of certificates needs no call per row. Where more people
// than that have an end, or the provider gave nothing, each is asked for by name.

import { nameKey } from '../domain/names.ts';
import { EXPIRES } from '../domain/people.ts';
import type { Account, Identity } from '../ports/identity.ts';
import { isAway } from './while-core-is-away.ts';

interface Deps {
  identity: { accounts: Pick<Identity['accounts'], 'list' | 'named'> };
}

const MOST = 200;

/** `named` as the port has it, for those who have an end; undefined for everybody else, and while the provider is away. */
export function expiringAccounts({ identity }: Deps): { accounts: Pick<Identity['accounts'], 'named'> } {
  let asked: Promise<ReadonlyMap<string, Account> | undefined> | undefined;

  async function all(): Promise<ReadonlyMap<string, Account> | undefined> {
    const found = await identity.accounts.list({ attributes: { [`${EXPIRES}__gt`]: 0 }, page: 1, pageSize: MOST });
    return found.count > found.results.length
      ? undefined
      : new Map(found.results.map((each) => [nameKey(each.username), each]));
  }

  return {
    accounts: {
      named: async (username) => {
        try {
          const known = await (asked ??= all());
          return known === undefined ? await identity.accounts.named(username) : known.get(nameKey(username));
        } catch (error) {
          if (isAway(error)) return undefined;
          throw error;
        }
      },
    },
  };
}
