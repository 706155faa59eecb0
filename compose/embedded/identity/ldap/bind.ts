// Simple binds: who may try, in which order, and what the answer tells.

import { normalName } from '../../../../shared/domain/distinguished-name.ts';
import { createLockout, lockoutAddress } from '../../../../shared/domain/lockout.ts';
import { attemptsAtOnce } from './attempts-at-once.ts';
import { knownPassword } from './known-password.ts';
import type { CheckPassword, PasswordVerdict, Urgency } from '../roster.ts';
import type { LdapEvents } from './events.ts';
import type { BindRequest } from './message.ts';
import { RecentKeys } from './recent-keys.ts';
import { RESULT, type Result } from './result.ts';
import { placeOf, readName, treeOf, type Tree } from './tree.ts';

export interface Identity {
  tree: Tree;
  username: string;
}

/** What a connection is, as far as binds care. */
export interface Binder {
  readonly address: string;
  /** The service account has bound on this connection: its binds are made for others, and neither count nor are locked out. */
  vouched: boolean;
  identity: Identity | undefined;
}

export interface BindDeps {
  trees: readonly Tree[];
  checkPassword: CheckPassword;
  searchAccount: string;
  bindMs: number;
  events: LdapEvents;
  now: () => number;
}

const KEYS = 10_000;
const SUSPECT_MS = 5 * 60_000;
const TRUSTED_MS = 60 * 60_000;

const REFUSED: Result = { code: RESULT.invalidCredentials };
const DENIED: Result = { code: RESULT.insufficientAccessRights };

/** The caller has made the connection anonymous before; a success gives it an identity. */
export type Bind = (binder: Binder, request: BindRequest) => Promise<Result>;

export function createBind(deps: BindDeps): Bind {
  const { checkPassword, events, now } = deps;
  const lockout = createLockout({ keys: KEYS });
  const failedAddresses = new RecentKeys(KEYS);
  const successes = new RecentKeys(KEYS);
  const inTurn = attemptsAtOnce((key) => lockout.left(key, now()));
  const knows = knownPassword();

  function urgencyOf(binder: Binder, address: string, key: string): Urgency {
    if (binder.vouched) return 'vouched';
    if (successes.within(key, TRUSTED_MS, now())) return 'usual';
    return failedAddresses.within(address, SUSPECT_MS, now()) ? 'suspect' : 'usual';
  }

  async function attempt(binder: Binder, identity: Identity, password: string, key: string): Promise<Result> {
    const { tree, username } = identity;
    const address = lockoutAddress(binder.address);
    const isService = username.toLowerCase() === deps.searchAccount.toLowerCase();
    // Whoever shares our address could else shut out everybody by wrong passwords for the service account.
    const known = isService && knows.isSame(key, password);
    if (!binder.vouched && !known && lockout.check(key, now()).lockedUntilMs !== undefined) {
      events.bindRefused({ username, address, door: tree.door, reason: 'locked' });
      return REFUSED;
    }
    const urgency = known ? 'vouched' : urgencyOf(binder, address, key);
    const appPasswords = tree.door === 'core';
    const verdict = await timely(checkPassword({ username, password, appPasswords, urgency }), deps.bindMs);
    if (verdict === 'busy') return { code: RESULT.busy, text: 'too many sign-ins at once' };
    if (verdict === 'refused') {
      events.bindRefused({ username, address, door: tree.door, reason: 'password' });
      if (!binder.vouched) {
        failedAddresses.note(address, now());
        if (lockout.failed(key, now()).lockedUntilMs !== undefined)
          events.locked({ username, address, door: tree.door });
      }
      return REFUSED;
    }
    successes.note(key, now());
    binder.identity = identity;
    if (isService) {
      binder.vouched = true;
      knows.remember(key, password);
    }
    return { code: RESULT.success };
  }

  return async function bind(binder, { version, name, method, password }) {
    if (version !== 3) return { code: RESULT.protocolError, text: 'only version 3 of LDAP is spoken' };
    if (method !== 'simple') return { code: RESULT.authMethodNotSupported, text: 'only simple binds are taken' };
    const parts = readName(name);
    if (parts === undefined) return { code: RESULT.invalidDNSyntax };
    const tree = treeOf(deps.trees, parts);
    if (tree === undefined) return DENIED;
    const place = placeOf(tree, parts);
    if (place?.at !== 'leaf' || place.container !== 'users') return REFUSED;
    if (password === undefined || password === '') return REFUSED;
    const key = `${lockoutAddress(binder.address)} ${normalName(parts)}`;
    const identity = { tree, username: place.label };
    const run = (): Promise<Result> => attempt(binder, identity, password, key);
    return binder.vouched ? run() : inTurn(key, run);
  };
}

/** A verdict that does not come is `busy`: the attempt is neither right nor wrong. */
async function timely(verdict: Promise<PasswordVerdict>, withinMs: number): Promise<PasswordVerdict> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<PasswordVerdict>((resolve) => {
    timer = setTimeout(resolve, withinMs, 'busy');
  });
  try {
    return await Promise.race([verdict, late]);
  } finally {
    clearTimeout(timer);
  }
}
