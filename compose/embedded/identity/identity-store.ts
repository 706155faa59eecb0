// The provider's store: one factory for everything that reads and writes its database.

import { availableParallelism } from 'node:os';
import type { Secret } from '../../../shared/domain/secret.ts';
import type { Log } from '../../../shared/ports/log.ts';
import { passwordCheck } from './check-password.ts';
import { FairLine } from '../../../shared/domain/fair-line.ts';
import { type IdentityKeys, identityKeys } from './keys.ts';
import type { CheckPassword, Roster } from './roster.ts';
import { type Accounts, accountStore } from './store/accounts.ts';
import type { RunSql } from './store/database.ts';
import { type Groups, groupStore } from './store/groups.ts';
import { rosterReader } from './store/roster-reader.ts';
import { type ServiceAccounts, serviceAccountStore } from './store/service-accounts.ts';
import { type Tokens, tokenStore } from './store/tokens.ts';

export interface IdentityStoreOptions {
  /** The migrated database `identity`. */
  run: RunSql;
  /** At least 32 random characters, kept outside the database. With another one every token and every uid changes. */
  secretKey: Secret;
  now: () => Date;
  log: Log;
  /** Default: as many hashes at once as there are cores. */
  line?: FairLine;
}

export interface IdentityStore {
  accounts: Accounts;
  serviceAccounts: ServiceAccounts;
  groups: Groups;
  tokens: Tokens;
  roster: Roster;
  checkPassword: CheckPassword;
  keys: IdentityKeys;
  /** Where every slow hash has to be made. */
  line: FairLine;
  /** Deletes tokens that expired more than an hour ago; how many. Call it every few minutes. */
  sweep(now: Date): Promise<number>;
  /** Resolves when what accepted sign-ins left to be written is written. Call it before the database ends. */
  settled: () => Promise<void>;
}

/**
 * @example
 * const store = identityStore({ run: keptDatabase(url, options), secretKey, now: () => new Date(), log });
 * const verdict = await store.checkPassword({ username: 'anna', password, appPasswords: true, place: { standing: 'usual' } });
 */
export function identityStore({ run, secretKey, now, log, line = hashLine() }: IdentityStoreOptions): IdentityStore {
  const keys = identityKeys(secretKey);
  const tokens = tokenStore(run, keys);
  const { check, settled } = passwordCheck({ run, keys, line, now, log });
  return {
    accounts: accountStore(run),
    serviceAccounts: serviceAccountStore(run, keys),
    groups: groupStore(run),
    tokens,
    roster: rosterReader(run, keys),
    checkPassword: check,
    keys,
    line,
    sweep: (at) => tokens.sweep(at),
    settled,
  };
}

/**
 * One piece of work at once for each core. Each takes a thread of libuv's pool, which files and host names share: the process
 * starts with UV_THREADPOOL_SIZE well above it.
 */
function hashLine(): FairLine {
  return new FairLine({ places: availableParallelism() });
}
