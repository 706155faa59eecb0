// Builds the provider's store: everything that reads and writes its database.

import { availableParallelism } from 'node:os';
import { FairLine } from '@holdfast/kit/fair-queue';
import type { Log } from '@holdfast/kit/log';
import type { Secret } from '@holdfast/kit/secret';
import { type IdentityKeys, identityKeys } from '../model/keys.ts';
import { nameKey } from '../model/names.ts';
import type { CheckPassword, GroupsWhere, PeopleWhere, Person, Roster, TreeGroup } from '../model/roster.ts';
import { accountsOf, type StoredAccount } from './account-rows.ts';
import { type Accounts, accountStore, createAccount } from './accounts.ts';
import { passwordCheck } from './check-password.ts';
import { allOf, FieldRefusal, type Piece, refusing, type RunSql, type Sql } from './database.ts';
import { createGroup, type Groups, groupStore } from './groups.ts';
import { createToken, type Tokens, tokenStore } from './tokens.ts';

/** What the LDAP tree shows, read at every call. */
export function rosterReader(run: RunSql, keys: IdentityKeys): Roster {
  function shown(account: StoredAccount): Person {
    return {
      pk: account.pk,
      uid: keys.uid(account.pk),
      username: account.username,
      name: account.name,
      email: account.email,
      isActive: account.is_active,
      isSuperuser: account.is_superuser,
      attributes: account.attributes,
      groups: account.groups.map(({ name }) => ({ name })),
      createdAt: account.date_joined,
      changedAt: account.last_updated,
      passwordChangedAt: account.password_changed_at ?? undefined,
    };
  }

  async function people(where: PeopleWhere, after: number, limit: number): Promise<Person[]> {
    const accounts = await run((sql) => {
      const chosen = sql`
        SELECT * FROM account WHERE ${allOf(sql, peopleWhere(sql, where))} AND pk > ${after} ORDER BY pk LIMIT ${limit}`;
      return sql<StoredAccount[]>`${accountsOf(sql, chosen)} ORDER BY pk`;
    });
    return accounts.map(shown);
  }

  return {
    person: async (username) => (await people({ username }, 0, 1))[0],
    people,
    groups: (where, after, limit) =>
      run((sql) => {
        const chosen = sql`
          SELECT * FROM user_group WHERE ${allOf(sql, groupsWhere(sql, where))} AND num_pk > ${after}
          ORDER BY num_pk LIMIT ${limit}`;
        return sql<TreeGroup[]>`
          WITH chosen AS MATERIALIZED (${chosen})
          SELECT uuid, num_pk AS "numPk", name, is_superuser AS "isSuperuser", attributes, created_at AS "createdAt",
            changed_at AS "changedAt", (
              SELECT coalesce(jsonb_agg(jsonb_build_object('username', a.username) ORDER BY a.username), '[]')
              FROM membership AS m JOIN account AS a ON a.pk = m.account_pk WHERE m.group_uuid = chosen.uuid
            ) AS members
          FROM chosen ORDER BY num_pk`;
      }),
  };
}

/** Names are parameters that PostgreSQL must be able to read; one with NUL is nobody's. */
const request = (name: string): string => nameKey(name).replaceAll('\0', '\u{1}');

function peopleWhere(sql: Sql, { username, email, group }: PeopleWhere): Piece[] {
  return [
    ...(username === undefined ? [] : [sql`username_key = ${request(username)}`]),
    ...(email === undefined ? [] : [sql`email_key = ${request(email)}`]),
    ...(group === undefined
      ? []
      : [
          sql`pk IN (SELECT m.account_pk FROM membership AS m JOIN user_group AS g ON g.uuid = m.group_uuid
            WHERE g.name_key = ${request(group)})`,
        ]),
  ];
}

function groupsWhere(sql: Sql, { name, member }: GroupsWhere): Piece[] {
  return [
    ...(name === undefined ? [] : [sql`name_key = ${request(name)}`]),
    ...(member === undefined
      ? []
      : [
          sql`uuid IN (SELECT m.group_uuid FROM membership AS m JOIN account AS a ON a.pk = m.account_pk
            WHERE a.username_key = ${request(member)})`,
        ]),
  ];
}

// An account of a program with its app password, and a group of its own where that is asked for:
// all or nothing.
export interface NewServiceAccount {
  name: string;
  createGroup: boolean;
  expires: Date;
  expiring: boolean;
}

export interface MadeServiceAccount {
  pk: number;
  username: string;
  /** Undefined when none was asked for. */
  groupUuid: string | undefined;
}

export interface ServiceAccounts {
  /** Rejects with a FieldRefusal for a name that is taken. `key` becomes its app password. */
  create(account: NewServiceAccount, key: string, now: Date): Promise<MadeServiceAccount>;
}

const PATH = 'goauthentik.io/service-accounts';

const TAKEN = {
  account_username_taken: new FieldRefusal({ name: 'User with this name already exists.' }),
  user_group_name_taken: new FieldRefusal({ name: 'Group with this name already exists.' }),
  token_identifier_taken: new FieldRefusal({ non_field_errors: 'A token of this name already exists.' }),
};

export function serviceAccountStore(run: RunSql, keys: IdentityKeys): ServiceAccounts {
  return {
    create: ({ name, createGroup: withGroup, expires, expiring }, key, now) =>
      run((sql) =>
        sql.begin(async (transaction) => {
          const values = {
            username: name,
            name,
            email: '',
            isActive: true,
            path: PATH,
            type: 'service_account',
          } as const;
          const attributes = { 'goauthentik.io/user/token-expires': expiring };
          const { pk } = await createAccount(transaction, { ...values, attributes }, now);
          const identifier = `service-account-${slugOf(name)}-password`;
          const token = { intent: 'app_password', accountPk: pk, description: '', managed: null } as const;
          await createToken(transaction, keys, { ...token, identifier, expires, expiring }, key);
          const group = { name, isSuperuser: false, attributes: {}, users: [pk] };
          const made = withGroup ? await createGroup(transaction, group, now) : undefined;
          return { pk, username: name, groupUuid: made?.uuid };
        }),
      ).catch(refusing(TAKEN)),
  };
}

/** A name in the letters of an identifier: `Näh Maschine_2` -> `nah-maschine_2`. */
export function slugOf(name: string): string {
  return name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9_\s-]/g, '')
    .trim()
    .replaceAll(/[\s-]+/g, '-')
    .replaceAll(/^[-_]+|[-_]+$/g, '');
}

export interface IdentityStoreOptions {
  /** The migrated database `identity`. */
  run: RunSql;
  /**
   * At least 32 random characters, kept outside the database. With another one every token and
   * every uid changes.
   */
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
  /**
   * Resolves when what accepted sign-ins left to be written is written. Call it before the database
   * ends.
   */
  settled: () => Promise<void>;
}

/**
 * @example
 * const run = keptDatabase(url, options);
 * const store = identityStore({ run, secretKey, now: () => new Date(), log });
 * const place = { status: 'usual' };
 * await store.checkPassword({ username: 'anna', password, appPasswords: true, place });
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
 * One piece of work at once for each core. Each takes a thread of libuv's pool, which files and
 * host names share: the process starts with UV_THREADPOOL_SIZE well above it.
 */
function hashLine(): FairLine {
  return new FairLine({ places: availableParallelism() });
}
