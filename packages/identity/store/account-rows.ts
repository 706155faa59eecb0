// Reads accounts: one statement for a whole page with all groups.

import type { Json } from '@holdfast/kit/json';
import type { Piece, Sql } from './database.ts';

export const ACCOUNT_TYPES = ['internal', 'external', 'service_account', 'internal_service_account'] as const;
export type AccountType = (typeof ACCOUNT_TYPES)[number];

export interface GroupOfAccount {
  uuid: string;
  num_pk: number;
  name: string;
  is_superuser: boolean;
  attributes: Record<string, Json>;
}

export interface StoredAccount {
  pk: number;
  uuid: string;
  username: string;
  name: string;
  email: string;
  is_active: boolean;
  path: string;
  type: AccountType;
  attributes: Record<string, Json>;
  password_changed_at: Date | null;
  date_joined: Date;
  last_updated: Date;
  last_login: Date | null;
  /** Follows from the groups. */
  is_superuser: boolean;
  /** Sorted by name. */
  groups: GroupOfAccount[];
}

/**
 * The accounts that `chosen` (a statement over the table `account`) yields; ordered by the caller
 * once more.
 */
export function accountsOf(sql: Sql, chosen: Piece): Piece {
  return sql`
    WITH chosen AS MATERIALIZED (${chosen})
    SELECT pk, uuid, username, name, email, is_active, path, type, attributes, password_changed_at, date_joined,
      last_updated, last_login, groups, jsonb_path_exists(groups, '$[*] ? (@.is_superuser == true)') AS is_superuser
    FROM chosen AS account
    CROSS JOIN LATERAL (
      SELECT coalesce(jsonb_agg(jsonb_build_object('uuid', g.uuid, 'num_pk', g.num_pk, 'name', g.name,
        'is_superuser', g.is_superuser, 'attributes', g.attributes) ORDER BY g.name), '[]') AS groups
      FROM membership AS m JOIN user_group AS g ON g.uuid = m.group_uuid
      WHERE m.account_pk = account.pk
    ) AS belonging`;
}

/** True for accounts in a group of superusers. */
export function isSuperuser(sql: Sql): Piece {
  return sql`EXISTS (
    SELECT FROM membership AS m JOIN user_group AS g ON g.uuid = m.group_uuid
    WHERE m.account_pk = account.pk AND g.is_superuser)`;
}

export async function readAccounts(sql: Sql, pks: readonly number[]): Promise<StoredAccount[]> {
  const chosen = sql`
    SELECT * FROM account
    WHERE pk IN (SELECT value::int FROM jsonb_array_elements_text(${JSON.stringify(pks)}::text::jsonb))`;
  return sql<StoredAccount[]>`${accountsOf(sql, chosen)} ORDER BY pk`;
}

export async function readAccount(sql: Sql, pk: number): Promise<StoredAccount | undefined> {
  const [account] = await readAccounts(sql, [pk]);
  return account;
}
