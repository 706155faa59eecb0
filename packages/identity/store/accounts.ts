// Creates, changes and deletes accounts. Related changes are one transaction.

import { randomUUID } from 'node:crypto';
import type { Json } from '@holdfast/kit/json';
import { nameKey } from '../model/names.ts';
import { type AccountFilter, listAccounts } from './account-list.ts';
import { type AccountType, readAccount, type StoredAccount } from './account-rows.ts';
import {
  FieldRefusal,
  type Found,
  inTransaction,
  type Paging,
  pointsNowhere,
  refusing,
  type RunSql,
  type Sql,
} from './database.ts';

export interface AccountValues {
  username: string;
  name: string;
  email: string;
  isActive: boolean;
  path: string;
  type: AccountType;
  attributes: Record<string, Json>;
}

export type AccountChange = { [Field in keyof AccountValues]?: AccountValues[Field] | undefined } & {
  /** Uuids: the whole set from now on. */
  groups?: readonly string[] | undefined;
};

export interface Accounts {
  list(filter: AccountFilter, paging: Paging): Promise<Found<StoredAccount>>;
  get(pk: number): Promise<StoredAccount | undefined>;
  /** Rejects with a FieldRefusal for a name that is taken and for unknown groups. */
  create(values: AccountValues & Pick<AccountChange, 'groups'>, now: Date): Promise<StoredAccount>;
  /** Undefined when there is no such account; refusals as of `create`. */
  change(pk: number, change: AccountChange, now: Date): Promise<StoredAccount | undefined>;
  /** With its tokens and memberships; false when there was none. */
  delete(pk: number): Promise<boolean>;
  /** False when there is no such account. */
  setPasswordHash(pk: number, hash: string, now: Date): Promise<boolean>;
  /** Every path that an account has, in order. */
  paths(search: string): Promise<string[]>;
}

const taken = (field: string): Record<string, FieldRefusal> => ({
  account_username_taken: new FieldRefusal({ [field]: 'This field must be unique.' }),
});

export function accountStore(run: RunSql): Accounts {
  async function change(pk: number, given: AccountChange, now: Date): Promise<StoredAccount | undefined> {
    return inTransaction(run, async (transaction) => {
      const [before] = await transaction<(AccountValues & { uuid: string })[]>`
          SELECT uuid, username, name, email, is_active AS "isActive", path, type, attributes
          FROM account WHERE pk = ${pk} FOR NO KEY UPDATE`;
      if (before === undefined) return undefined;
      const messages = Object.entries(given).filter(([, value]) => value !== undefined);
      const after = { ...before, ...Object.fromEntries(messages) } as AccountValues & { uuid: string };
      await transaction`
          UPDATE account SET username = ${after.username}, username_key = ${nameKey(after.username)},
            name = ${after.name}, email = ${after.email}, email_key = ${nameKey(after.email)},
            searched = ${searchedText(after)}, is_active = ${after.isActive}, path = ${after.path}, type = ${after.type},
            attributes = ${JSON.stringify(after.attributes)}::text::jsonb, last_updated = ${now}
          WHERE pk = ${pk}`;
      if (given.groups !== undefined) await replaceGroups(transaction, pk, given.groups);
      return readAccount(transaction, pk);
    }).catch(refusing(taken('username')));
  }

  return {
    list: (filter, paging) => run((sql) => listAccounts(sql, filter, paging)),
    get: (pk) => run((sql) => readAccount(sql, pk)),
    create: (values, now) =>
      run((sql) => sql.begin((transaction) => createAccount(transaction, values, now))).catch(
        refusing(taken('username')),
      ),
    change,
    delete: (pk) => run(async (sql) => (await sql`DELETE FROM account WHERE pk = ${pk}`).count > 0),
    setPasswordHash: (pk, hash, now) =>
      run(async (sql) => {
        const changed = await sql`
          UPDATE account SET password_hash = ${hash}, password_changed_at = ${now}, last_updated = ${now}
          WHERE pk = ${pk}`;
        return changed.count > 0;
      }),
    paths: (search) =>
      run(async (sql) => {
        const rows = await sql<{ path: string }[]>`
          SELECT DISTINCT path FROM account WHERE position(${search} IN path) > 0 ORDER BY path`;
        return rows.map(({ path }) => path);
      }),
  };
}

/** Within the caller's transaction; a name that is taken rejects with the database's own error. */
export async function createAccount(
  sql: Sql,
  { groups = [], ...values }: AccountValues & Pick<AccountChange, 'groups'>,
  now: Date,
): Promise<StoredAccount> {
  const uuid = randomUUID();
  const [made] = await sql<{ pk: number }[]>`
    INSERT INTO account (uuid, username, username_key, name, email, email_key, searched, is_active, path, type,
      attributes, date_joined, last_updated)
    VALUES (${uuid}, ${values.username}, ${nameKey(values.username)}, ${values.name}, ${values.email},
      ${nameKey(values.email)}, ${searchedText({ ...values, uuid })}, ${values.isActive}, ${values.path},
      ${values.type}, ${JSON.stringify(values.attributes)}::text::jsonb, ${now}, ${now})
    RETURNING pk`;
  const pk = made?.pk ?? 0;
  if (groups.length > 0) await replaceGroups(sql, pk, groups);
  const account = await readAccount(sql, pk);
  if (account === undefined) throw new Error(`account ${pk} cannot be read after it was made`);
  return account;
}

async function replaceGroups(sql: Sql, pk: number, groups: readonly string[]): Promise<void> {
  const wanted = sql`(SELECT value::uuid AS uuid FROM jsonb_array_elements_text(${JSON.stringify(groups)}::text::jsonb))`;
  const unknown = (uuid: string): FieldRefusal =>
    new FieldRefusal({ groups: `Invalid pk "${uuid}" - object does not exist.` });
  const [missing] = await sql<{ uuid: string }[]>`
    SELECT uuid FROM ${wanted} AS wanted WHERE uuid NOT IN (SELECT uuid FROM user_group)`;
  if (missing !== undefined) throw unknown(missing.uuid);
  await sql`DELETE FROM membership WHERE account_pk = ${pk} AND group_uuid NOT IN (SELECT uuid FROM ${wanted} AS wanted)`;
  try {
    await sql`
      INSERT INTO membership (account_pk, group_uuid) SELECT DISTINCT ${pk}::int, uuid FROM ${wanted} AS wanted ORDER BY uuid
      ON CONFLICT DO NOTHING`;
  } catch (error) {
    if (pointsNowhere(error)) throw unknown(groups.join(', '));
    throw error;
  }
}

/** What `search` reads; the parts are kept apart by a character that nobody searches for. */
function searchedText({
  username,
  name,
  email,
  uuid,
}: Omit<AccountValues, 'isActive' | 'path' | 'type' | 'attributes'> & { uuid: string }): string {
  return [username, name, email, uuid].map(nameKey).join('\u{1}');
}
