// Brings accounts of an archive back into a running identity provider: with password, groups and
// app passwords. Accounts that exist are left alone, or replaced on request; whoever is deactivated
// stays deactivated.

import type { AnySql, TransactionSql } from '@holdfast/kit/postgres';
import { LDAP_SERVICE_ACCOUNT } from '@holdfast/kit/directory';
import { isOwnServiceAccount, nameKey, WEBADMIN } from '@holdfast/kit/names';
import { type Databases, freeId, insertRow, type PartChange, readRows } from './rows.ts';

export interface ArchivedAccount {
  uuid: string;
  pk: string;
  username: string;
  username_key: string;
  is_active: boolean;
  type: string;
  groups: { uuid: string; num_pk: number; name: string; name_key: string }[];
  /** All of it, as JSON. */
  row: string;
}

export interface AccountOptions {
  /** Replaces those that exist. */
  overwrite: boolean;
  /** False if the archive's tokens are sealed with another secret: they would open nothing. */
  tokens: boolean;
  now: Date;
}

/** Their passwords and rights follow from the settings at every start. */
function isOfStack(username: string): boolean {
  return ['akadmin', WEBADMIN, LDAP_SERVICE_ACCOUNT].includes(nameKey(username)) || isOwnServiceAccount(username);
}

/** Those that can be restored, by name. */
export async function listAccounts(from: AnySql): Promise<ArchivedAccount[]> {
  const accounts = await from<ArchivedAccount[]>`
    SELECT a.uuid::text, a.pk::text, a.username, a.username_key, a.is_active, a.type, to_jsonb(a)::text AS row,
      (SELECT coalesce(json_agg(json_build_object('uuid', g.uuid, 'num_pk', g.num_pk, 'name', g.name, 'name_key', g.name_key)
          ORDER BY g.name), '[]')
        FROM membership m JOIN user_group g ON g.uuid = m.group_uuid WHERE m.account_pk = a.pk) AS groups
    FROM account a ORDER BY a.username_key`;
  return accounts.filter(({ username }) => !isOfStack(username));
}

/** In the caller's transaction. */
export async function restoreAccounts(
  databases: Databases,
  accounts: readonly ArchivedAccount[],
  options: AccountOptions,
): Promise<PartChange[]> {
  // As the provider: one program at a time decides which names are free.
  await databases.to`LOCK TABLE account, user_group IN SHARE ROW EXCLUSIVE MODE`;
  const changes: PartChange[] = [];
  for (const account of accounts) changes.push(await restoreAccount(databases, account, options));
  return changes;
}

interface Present {
  pk: string;
  username: string;
  username_key: string;
  is_active: boolean;
  is_same: boolean;
}

async function restoreAccount(
  databases: Databases,
  account: ArchivedAccount,
  options: AccountOptions,
): Promise<PartChange> {
  const { to } = databases;
  const { username, username_key: key, uuid } = account;
  const present = await to<Present[]>`
    SELECT a.pk::text, a.username, a.username_key, a.is_active, (r.is_active OR NOT a.is_active)
      AND (a.name, a.email, a.path, a.attributes, a.password_hash)
        IS NOT DISTINCT FROM (r.name, r.email, r.path, r.attributes, r.password_hash) AS is_same
    FROM account a, jsonb_populate_record(NULL::account, ${account.row}::text::jsonb) r
    WHERE a.username_key = ${key} OR a.uuid = ${uuid}::text::uuid`;
  const named = present.find((each) => each.username_key === key);
  const renamed = present.find((each) => each.username_key !== key);
  if (named === undefined && renamed !== undefined)
    return { target: username, effect: 'kept', detail: `the account exists and is called ${renamed.username} now` };
  if (named !== undefined) return replaceAccount(databases, account, named, options);
  const pk = await freeId(to, { table: 'account', column: 'pk', sequence: 'account_pk_seq' }, account.pk);
  await insertRow(to, 'account', account.row, { pk: Number(pk), last_updated: options.now });
  const made = await joinGroups(databases, account, pk);
  const tokens = options.tokens ? await restoreTokens(databases, account, pk, options.now) : 0;
  const kind = account.type.includes('service') ? 'service account, ' : '';
  const words = [`${kind}${account.is_active ? 'active' : 'deactivated'}`, groupWords(account)];
  if (made.length > 0) words.push(`new groups ${made.join(', ')}`);
  if (tokens > 0) words.push(`app passwords ${tokens}`);
  return { target: username, effect: 'new', detail: words.join('; ') };
}

async function replaceAccount(
  databases: Databases,
  account: ArchivedAccount,
  present: Present,
  { overwrite, now }: AccountOptions,
): Promise<PartChange> {
  const { to } = databases;
  const { username: target } = account;
  const before = await groupNames(to, present.pk);
  const after = account.groups.map(({ name }) => name);
  const lost = before.filter((name) => !after.includes(name));
  const gained = after.filter((name) => !before.includes(name));
  if (present.is_same && lost.length + gained.length === 0)
    return { target, effect: 'kept', detail: 'is as in the archive' };
  if (!overwrite) return { target, effect: 'kept', detail: 'exists and differs; --overwrite replaces it' };
  await to`
    UPDATE account a SET name = r.name, email = r.email, email_key = r.email_key, searched = r.searched, path = r.path,
      attributes = r.attributes, password_hash = r.password_hash, password_changed_at = r.password_changed_at,
      is_active = a.is_active AND r.is_active, last_updated = ${now}
    FROM jsonb_populate_record(NULL::account, ${account.row}::text::jsonb) r WHERE a.pk = ${present.pk}::text::int`;
  await to`DELETE FROM membership WHERE account_pk = ${present.pk}::text::int`;
  await joinGroups(databases, account, present.pk);
  const words = ['name, password and groups of the archive'];
  if (gained.length > 0) words.push(`joins ${gained.join(', ')}`);
  if (lost.length > 0) words.push(`leaves ${lost.join(', ')}`);
  if (!present.is_active && account.is_active) words.push('stays deactivated');
  if (present.is_active && !account.is_active) words.push('is deactivated, as in the archive');
  return { target, effect: 'replaced', detail: words.join('; ') };
}

function groupWords({ groups }: ArchivedAccount): string {
  return groups.length === 0 ? 'no groups' : `groups ${groups.map(({ name }) => name).join(', ')}`;
}

async function groupNames(to: TransactionSql, pk: string): Promise<string[]> {
  const rows = await to<{ name: string }[]>`
    SELECT g.name FROM membership m JOIN user_group g ON g.uuid = m.group_uuid
    WHERE m.account_pk = ${pk}::text::int ORDER BY g.name`;
  return rows.map(({ name }) => name);
}

/** By the names of the groups. Resolves with those that had to be made. */
async function joinGroups({ from, to }: Databases, { groups }: ArchivedAccount, pk: string): Promise<string[]> {
  const made: string[] = [];
  for (const { uuid, num_pk: number, name, name_key: key } of groups) {
    const [there] = await to`SELECT FROM user_group WHERE name_key = ${key}`;
    if (there === undefined) {
      const [row = '{}'] = await readRows(from, 'user_group', 't.uuid = $1::text::uuid', uuid);
      const numbers = { table: 'user_group', column: 'num_pk', sequence: 'user_group_num_pk_seq' };
      const [taken] = await to`SELECT FROM user_group WHERE uuid = ${uuid}::text::uuid`;
      const others = { num_pk: Number(await freeId(to, numbers, String(number))) };
      await insertRow(to, 'user_group', row, taken === undefined ? others : { ...others, uuid: crypto.randomUUID() });
      made.push(name);
    }
    await to`
      INSERT INTO membership (account_pk, group_uuid)
      SELECT ${pk}::text::int, uuid FROM user_group WHERE name_key = ${key} ON CONFLICT DO NOTHING`;
  }
  return made;
}

/** App passwords that have not expired. Resolves with how many. */
async function restoreTokens(
  { from, to }: Databases,
  account: ArchivedAccount,
  pk: string,
  now: Date,
): Promise<number> {
  const valid = `t.account_pk = $1::text::int AND t.intent = 'app_password' AND (NOT t.expiring OR t.expires > '${now.toISOString()}')`;
  const rows = await readRows(from, 'token', valid, account.pk);
  for (const row of rows) await insertRow(to, 'token', row, { account_pk: Number(pk) });
  return rows.length;
}
