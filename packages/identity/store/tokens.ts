// Stores API tokens and app passwords. Returns a key only when it is requested.

import { randomUUID } from 'node:crypto';
import { HOUR_MS } from '@holdfast/kit/time';
import type { IdentityKeys } from '../model/keys.ts';
import { nameKey } from '../model/names.ts';
import { readAccount, readAccounts, type StoredAccount } from './account-rows.ts';
import {
  allOf,
  containing,
  countOf,
  FieldRefusal,
  type Found,
  isTaken,
  orderBy,
  pageOf,
  type Paging,
  type Piece,
  pointsNowhere,
  refusing,
  type RunSql,
  type Sql,
} from './database.ts';

export const INTENTS = ['api', 'app_password'] as const;
export type Intent = (typeof INTENTS)[number];

export interface TokenValues {
  identifier: string;
  intent: Intent;
  accountPk: number;
  description: string;
  /** Never null while `expiring`. */
  expires: Date | null;
  expiring: boolean;
  managed: string | null;
}

export interface StoredToken extends TokenValues {
  uuid: string;
  account: StoredAccount;
}

/** Every condition that is given must hold. */
export interface TokenFilter {
  /** Only tokens of this account. */
  owner?: number | undefined;
  search?: string | undefined;
  identifier?: string | undefined;
  intent?: string | undefined;
  username?: string | undefined;
  description?: string | undefined;
  expires?: Date | undefined;
  expiring?: boolean | undefined;
  managed?: string | undefined;
}

export interface Tokens {
  list(filter: TokenFilter, paging: Paging): Promise<Found<StoredToken>>;
  get(identifier: string): Promise<StoredToken | undefined>;
  /** Rejects with a FieldRefusal for an identifier that is taken and for an unknown account. */
  create(values: TokenValues, key: string): Promise<StoredToken>;
  /**
   * What `after` makes of the token as it is then, with nobody else changing it meanwhile; the
   * owner stays. Undefined when there is no such token.
   */
  change(
    uuid: string,
    after: (before: StoredToken) => Omit<TokenValues, 'accountPk'>,
  ): Promise<StoredToken | undefined>;
  delete(uuid: string): Promise<boolean>;
  /** `unreadable` when it was sealed with another secret. */
  key(uuid: string): Promise<{ key: string } | 'unreadable' | undefined>;
  /** `taken` when another token has this key. */
  setKey(uuid: string, key: string): Promise<'set' | 'taken' | 'gone'>;
  /** The active account that an unexpired API token belongs to. */
  ownerOf(key: string, now: Date): Promise<StoredAccount | undefined>;
  /** Deletes what expired more than an hour ago; how many. */
  sweep(now: Date): Promise<number>;
}

const KEPT_AFTER_EXPIRY_MS = HOUR_MS;
const TAKEN = { token_identifier_taken: new FieldRefusal({ identifier: 'This field must be unique.' }) };

type TokenRow = Omit<StoredToken, 'account'>;

export function tokenStore(run: RunSql, keys: IdentityKeys): Tokens {
  return {
    list: (filter, paging) => run((sql) => listTokens(sql, filter, paging)),
    get: (identifier) => run((sql) => readToken(sql, sql`token.identifier = ${identifier}`)),
    create: (values, key) =>
      run((sql) => sql.begin((transaction) => createToken(transaction, keys, values, key)))
        .catch(refusing(TAKEN))
        .catch((error: unknown) => {
          if (!pointsNowhere(error)) throw error;
          throw new FieldRefusal({ user: `Invalid pk "${values.accountPk}" - object does not exist.` });
        }),
    change: (uuid, after) =>
      run((sql) =>
        sql.begin(async (transaction) => {
          await transaction`SELECT FROM token WHERE uuid = ${uuid} FOR NO KEY UPDATE`;
          const before = await readToken(transaction, transaction`token.uuid = ${uuid}`);
          if (before === undefined) return undefined;
          const { identifier, intent, description, expires, expiring, managed } = after(before);
          await transaction`
            UPDATE token SET identifier = ${identifier}, intent = ${intent}, description = ${description},
              expires = ${expires}, expiring = ${expiring}, managed = ${managed}
            WHERE uuid = ${uuid}`;
          return { ...before, identifier, intent, description, expires, expiring, managed };
        }),
      ).catch(refusing(TAKEN)),
    delete: (uuid) => run(async (sql) => (await sql`DELETE FROM token WHERE uuid = ${uuid}`).count > 0),
    key: (uuid) =>
      run(async (sql) => {
        const [row] = await sql<{ key_sealed: Buffer }[]>`SELECT key_sealed FROM token WHERE uuid = ${uuid}`;
        if (row === undefined) return undefined;
        const key = keys.open(row.key_sealed, uuid);
        return key === undefined ? 'unreadable' : { key };
      }),
    setKey: (uuid, key) =>
      run(async (sql) => {
        const changed = await sql`
          UPDATE token SET key_sealed = ${keys.seal(key, uuid)}, key_digest = ${keys.digest(key)} WHERE uuid = ${uuid}
            AND NOT EXISTS (SELECT FROM token WHERE key_digest = ${keys.digest(key)} AND uuid <> ${uuid})`;
        if (changed.count > 0) return 'set' as const;
        const [row] = await sql`SELECT FROM token WHERE uuid = ${uuid}`;
        return row === undefined ? ('gone' as const) : ('taken' as const);
      }).catch((error: unknown) => {
        if (isTaken(error)) return 'taken' as const;
        throw error;
      }),
    ownerOf: (key, now) =>
      run(async (sql) => {
        const [owner] = await sql<{ pk: number }[]>`
          SELECT account.pk FROM token JOIN account ON account.pk = token.account_pk
          WHERE token.key_digest = ${keys.digest(key)} AND token.intent = 'api' AND account.is_active
            AND ${isValid(sql, now)}`;
        return owner === undefined ? undefined : readAccount(sql, owner.pk);
      }),
    sweep: (now) =>
      run(async (sql) => {
        const before = new Date(now.getTime() - KEPT_AFTER_EXPIRY_MS);
        return (await sql`DELETE FROM token WHERE expiring AND expires < ${before}`).count;
      }),
  };
}

/** True for tokens that have not expired. */
export function isValid(sql: Sql, now: Date): Piece {
  return sql`(NOT token.expiring OR token.expires > ${now})`;
}

/**
 * Within the caller's transaction; an identifier that is taken rejects with the database's own
 * error.
 */
export async function createToken(
  sql: Sql,
  keys: IdentityKeys,
  { identifier, intent, accountPk, description, expires, expiring, managed }: TokenValues,
  key: string,
): Promise<StoredToken> {
  const uuid = randomUUID();
  await sql`
    INSERT INTO token (uuid, identifier, account_pk, intent, description, expires, expiring, managed, key_sealed, key_digest)
    VALUES (${uuid}, ${identifier}, ${accountPk}, ${intent}, ${description}, ${expires}, ${expiring}, ${managed},
      ${keys.seal(key, uuid)}, ${keys.digest(key)})`;
  const token = await readToken(sql, sql`token.uuid = ${uuid}`);
  if (token === undefined) throw new Error(`token ${identifier} cannot be read after it was made`);
  return token;
}

const columns = (sql: Sql): Piece =>
  sql`token.uuid, token.identifier, token.intent, token.account_pk AS "accountPk", token.description, token.expires,
    token.expiring, token.managed`;

async function readToken(sql: Sql, where: Piece): Promise<StoredToken | undefined> {
  const [token] = await withAccounts(sql, await sql<TokenRow[]>`SELECT ${columns(sql)} FROM token WHERE ${where}`);
  return token;
}

async function withAccounts(sql: Sql, rows: readonly TokenRow[]): Promise<StoredToken[]> {
  if (rows.length === 0) return [];
  const accounts = await readAccounts(sql, [...new Set(rows.map(({ accountPk }) => accountPk))]);
  const byPk = new Map(accounts.map((account) => [account.pk, account]));
  return rows.flatMap((row) => {
    const account = byPk.get(row.accountPk);
    return account === undefined ? [] : [{ ...row, account }];
  });
}

async function listTokens(sql: Sql, filter: TokenFilter, paging: Paging): Promise<Found<StoredToken>> {
  const from = sql`FROM token JOIN account ON account.pk = token.account_pk
    WHERE ${allOf(sql, conditionsOf(sql, filter))}`;
  const count = await countOf(sql, from);
  if (count === 0) return { results: [], count };
  const known = {
    identifier: sql`token.identifier`,
    intent: sql`token.intent`,
    user: sql`token.account_pk`,
    user__username: sql`account.username`,
    description: sql`token.description`,
    expires: sql`token.expires`,
    expiring: sql`token.expiring`,
    managed: sql`token.managed`,
  };
  const order = orderBy(sql, paging.ordering, known, sql`token.identifier`, sql`token.uuid`);
  const rows = await sql<TokenRow[]>`SELECT ${columns(sql)} ${from} ${order} ${pageOf(sql, paging)}`;
  return { results: await withAccounts(sql, rows), count };
}

function conditionsOf(sql: Sql, filter: TokenFilter): Piece[] {
  const given = <T>(value: T | undefined, condition: (value: T) => Piece): Piece[] =>
    value === undefined ? [] : [condition(value)];
  return [
    ...given(filter.owner, (pk) => sql`token.account_pk = ${pk}`),
    ...given(filter.search, (text) => anywhere(sql, containing(nameKey(text)))),
    ...given(filter.identifier, (identifier) => sql`token.identifier = ${identifier}`),
    ...given(filter.intent, (intent) => sql`token.intent = ${intent}`),
    ...given(filter.username, (name) => sql`(account.username_key = ${nameKey(name)} AND account.username = ${name})`),
    ...given(filter.description, (text) => sql`token.description = ${text}`),
    ...given(filter.expires, (time) => sql`token.expires = ${time}`),
    ...given(filter.expiring, (is) => sql`token.expiring = ${is}`),
    ...given(filter.managed, (managed) => sql`token.managed = ${managed}`),
  ];
}

function anywhere(sql: Sql, pattern: string): Piece {
  return sql`(lower(token.identifier) LIKE ${pattern} OR token.intent LIKE ${pattern}
    OR account.username_key LIKE ${pattern} OR lower(token.description COLLATE "und-x-icu") LIKE ${pattern})`;
}
