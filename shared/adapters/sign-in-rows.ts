// Rows of sessions and API tokens: when they count, how they are found, and what the port makes of them.

import { nameKey } from '../domain/names.ts';
import type { Scope } from '../domain/principal.ts';
import type { Page, Paging } from '../ports/identity.ts';
import type { ApiToken, Session } from '../ports/sign-ins.ts';
import type { Sql, TransactionSql } from './postgres.ts';

export interface SessionRow {
  id: string;
  username: string;
  created_at: Date;
  expires_at: Date;
  address: string;
  user_agent: string;
}

export interface TokenRow {
  id: string;
  username: string;
  name: string;
  scope: Scope;
  created_at: Date;
  expires_at: Date;
}

/** A name as the tables have it. PostgreSQL has no text with a NUL, and no account has such a name. */
export function ownerKey(username: string): string {
  return nameKey(username).replaceAll('\0', '\uFFFD');
}

/** The epoch of the owner of a row that is called `s`. */
export function epochOfOwner(sql: Sql | TransactionSql) {
  return sql`coalesce((SELECT e.epoch FROM account_epoch e WHERE e.username_key = s.username_key), 0)`;
}

/** Whether a row that is called `s` counts. */
export function isValid(sql: Sql | TransactionSql) {
  return sql`(s.expires_at > now() AND s.epoch = ${epochOfOwner(sql)})`;
}

export function sessionOf(row: SessionRow): Session {
  return {
    id: row.id,
    username: row.username,
    createdAt: row.created_at.toISOString(),
    expiresAt: row.expires_at.toISOString(),
    address: row.address,
    userAgent: row.user_agent,
  };
}

export function tokenOf(row: TokenRow): ApiToken {
  return {
    id: row.id,
    name: row.name,
    scope: row.scope,
    owner: row.username,
    createdAt: row.created_at.toISOString(),
    expiresAt: row.expires_at.toISOString(),
  };
}

/** A page of the sessions that count, of one person. */
export async function sessionsOf(sql: Sql, owner: string, { page, pageSize }: Paging): Promise<Page<Session>> {
  const [{ count } = { count: 0 }] = await sql<{ count: number }[]>`
    SELECT count(*)::int AS count FROM session s WHERE username_key = ${owner} AND ${isValid(sql)}`;
  const rows = await sql<SessionRow[]>`
    SELECT * FROM session s WHERE username_key = ${owner} AND ${isValid(sql)}
    ORDER BY created_at DESC, id DESC LIMIT ${pageSize} OFFSET ${(page - 1) * pageSize}`;
  return { results: rows.map(sessionOf), count };
}

/** A page of the tokens that count, of everybody. */
export async function everyToken(sql: Sql, { page, pageSize }: Paging): Promise<Page<ApiToken>> {
  const [{ count } = { count: 0 }] = await sql<{ count: number }[]>`
    SELECT count(*)::int AS count FROM api_token s WHERE ${isValid(sql)}`;
  const rows = await sql<TokenRow[]>`
    SELECT * FROM api_token s WHERE ${isValid(sql)}
    ORDER BY created_at DESC, id DESC LIMIT ${pageSize} OFFSET ${(page - 1) * pageSize}`;
  return { results: rows.map(tokenOf), count };
}
