// Stores sessions and API tokens in our own database. A row carries the epoch of its owner, read in
// the statement that inserted it, and counts only while that epoch is current: a session that
// begins while everything of a person ends, ends too. Node only.

import { randomUUID } from 'node:crypto';
import type { Page, Paging } from '@holdfast/kit/json';
import type { RunSql } from '@holdfast/kit/kept-database';
import { nameKey } from '@holdfast/kit/names';
import type { Sql, TransactionSql } from '@holdfast/kit/postgres';
import type { Secret } from '@holdfast/kit/secret';
import { type ApiToken, type Given, MAX_SESSIONS, type Session, type SignedText, type SignIns } from './port.ts';
import type { Scope } from './rules.ts';
import { signedTexts } from './signed-text.ts';

/**
 * Rows of sessions and API tokens: when they are valid, how they are found, and how they become
 * port objects.
 */
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

/** A username key as stored. PostgreSQL text has no NUL, and no account has such a name. */
export function ownerKey(username: string): string {
  return nameKey(username).replaceAll('\0', '\uFFFD');
}

/** The epoch of the owner of a row aliased `s`. */
export function epochOfOwner(sql: Sql | TransactionSql) {
  return sql`coalesce((SELECT e.epoch FROM account_epoch e WHERE e.username_key = s.username_key), 0)`;
}

/** The validity condition of a row aliased `s`. */
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

/** A page of one person's valid sessions. */
export async function sessionsOf(sql: Sql, owner: string, { page, pageSize }: Paging): Promise<Page<Session>> {
  const [{ count } = { count: 0 }] = await sql<{ count: number }[]>`
    SELECT count(*)::int AS count FROM session s WHERE username_key = ${owner} AND ${isValid(sql)}`;
  const rows = await sql<SessionRow[]>`
    SELECT * FROM session s WHERE username_key = ${owner} AND ${isValid(sql)}
    ORDER BY created_at DESC, id DESC LIMIT ${pageSize} OFFSET ${(page - 1) * pageSize}`;
  return { results: rows.map(sessionOf), count };
}

/** A page of everyone's valid tokens. */
export async function everyToken(sql: Sql, { page, pageSize }: Paging): Promise<Page<ApiToken>> {
  const [{ count } = { count: 0 }] = await sql<{ count: number }[]>`
    SELECT count(*)::int AS count FROM api_token s WHERE ${isValid(sql)}`;
  const rows = await sql<TokenRow[]>`
    SELECT * FROM api_token s WHERE ${isValid(sql)}
    ORDER BY created_at DESC, id DESC LIMIT ${pageSize} OFFSET ${(page - 1) * pageSize}`;
  return { results: rows.map(tokenOf), count };
}

export interface SignedSignInsOptions {
  run: RunSql;
  /** SESSION_KEY. */
  key: Secret | undefined;
}

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;
/** Any number: the first half of a lock that no other code uses. */
const LOCK = 480_573;

export class SignedSignIns implements SignIns {
  readonly #run: SignedSignInsOptions['run'];
  readonly #texts: ReturnType<typeof signedTexts>;

  constructor({ run, key }: SignedSignInsOptions) {
    this.#run = run;
    this.#texts = signedTexts(key);
  }

  async recognize(kind: SignedText['kind'], text: string): Promise<SignedText | undefined> {
    const claims = await this.#texts.read(kind, text);
    if (claims === undefined) return undefined;
    const { digest, username } = claims;
    const rows = await this.#run<(SessionRow | TokenRow)[]>(async (sql) =>
      kind === 'session'
        ? sql<SessionRow[]>`SELECT * FROM session s WHERE digest = ${digest} AND ${isValid(sql)}`
        : sql<TokenRow[]>`SELECT * FROM api_token s WHERE digest = ${digest} AND ${isValid(sql)}`,
    );
    const [row] = rows;
    if (row === undefined || row.username !== username) return undefined;
    const scope = 'scope' in row ? { scope: row.scope } : {};
    return { kind, id: row.id, username, ...scope, expiresAt: row.expires_at.toISOString() };
  }

  async openSession({
    id = randomUUID(),
    epoch,
    username,
    expiresAt,
    address,
    userAgent,
  }: Omit<Session, 'id' | 'createdAt'> & Given): Promise<Session & { text: string }> {
    const { text, digest } = await this.#texts.sign('session', username, expiresAt);
    const owner = ownerKey(username);
    const rows = await this.#run((sql) =>
      sql.begin(async (transaction) => {
        await oneAtATime(transaction, owner);
        await transaction`
            DELETE FROM session WHERE id IN (
              SELECT id FROM session WHERE username_key = ${owner}
              ORDER BY created_at DESC, id DESC OFFSET ${MAX_SESSIONS - 1})`;
        return transaction<SessionRow[]>`
            INSERT INTO session (id, digest, username, username_key, epoch, expires_at, address, user_agent)
            VALUES (${id}, ${digest}, ${username}, ${owner},
              coalesce(${epoch ?? null}::int, (SELECT epoch FROM account_epoch WHERE username_key = ${owner}), 0),
              ${expiresAt}::text::timestamptz, ${address}, ${userAgent})
            RETURNING *`;
      }),
    );
    return { ...sessionOf(only(rows)), text };
  }

  async createToken({
    id = randomUUID(),
    epoch,
    owner: username,
    name,
    scope,
    expiresAt,
  }: Omit<ApiToken, 'id' | 'createdAt'> & Given): Promise<ApiToken & { text: string }> {
    const { text, digest } = await this.#texts.sign('token', username, expiresAt);
    const owner = ownerKey(username);
    const rows = await this.#run(
      (sql) => sql<TokenRow[]>`
          INSERT INTO api_token (id, digest, username, username_key, epoch, name, scope, expires_at)
          VALUES (${id}, ${digest}, ${username}, ${owner},
            coalesce(${epoch ?? null}::int, (SELECT epoch FROM account_epoch WHERE username_key = ${owner}), 0),
            ${name}, ${scope}, ${expiresAt}::text::timestamptz)
          RETURNING *`,
    );
    return { ...tokenOf(only(rows)), text };
  }

  async epoch(username: string): Promise<number> {
    const [row] = await this.#run(
      (sql) => sql<{ epoch: number }[]>`
          SELECT epoch::int AS epoch FROM account_epoch WHERE username_key = ${ownerKey(username)}`,
    );
    return row?.epoch ?? 0;
  }

  async sessions(username: string, paging: Paging): Promise<Page<Session>> {
    return this.#run((sql) => sessionsOf(sql, ownerKey(username), paging));
  }

  async tokens(paging: Paging): Promise<Page<ApiToken>> {
    return this.#run((sql) => everyToken(sql, paging));
  }

  async endSession(username: string, id: string): Promise<boolean> {
    if (!UUID.test(id)) return false;
    const { count } = await this.#run(
      (sql) => sql`
          DELETE FROM session s WHERE id = ${id} AND username_key = ${ownerKey(username)} AND ${isValid(sql)}`,
    );
    return count > 0;
  }

  async endSessions(username: string): Promise<number> {
    const owner = ownerKey(username);
    return this.#run((sql) =>
      sql.begin(async (transaction) => {
        await oneAtATime(transaction, owner);
        const ended = await transaction<{ valid: boolean }[]>`
            DELETE FROM session s WHERE username_key = ${owner} RETURNING ${isValid(transaction)} AS valid`;
        return ended.filter(({ valid }) => valid).length;
      }),
    );
  }

  async token(id: string): Promise<ApiToken | undefined> {
    if (!UUID.test(id)) return undefined;
    const [row] = await this.#run(
      (sql) => sql<TokenRow[]>`SELECT * FROM api_token s WHERE id = ${id} AND ${isValid(sql)}`,
    );
    return row && tokenOf(row);
  }

  async endToken(id: string): Promise<boolean> {
    if (!UUID.test(id)) return false;
    const { count } = await this.#run((sql) => sql`DELETE FROM api_token s WHERE id = ${id} AND ${isValid(sql)}`);
    return count > 0;
  }

  async prune(before: string): Promise<number> {
    const ended = (sql: Sql) => sql`(s.expires_at < ${before}::text::timestamptz OR s.epoch <> ${epochOfOwner(sql)})`;
    const sessions = await this.#run(
      (sql) => sql`
          DELETE FROM session
          WHERE id IN (SELECT id FROM session s WHERE ${ended(sql)} FOR UPDATE SKIP LOCKED)`,
    );
    const tokens = await this.#run(
      (sql) => sql`
          DELETE FROM api_token
          WHERE id IN (SELECT id FROM api_token s WHERE ${ended(sql)} FOR UPDATE SKIP LOCKED)`,
    );
    return sessions.count + tokens.count;
  }
}

/** Ends every session and token of a person, within the caller's transaction. */
export async function endSignInsOf(sql: TransactionSql, username: string): Promise<void> {
  const owner = ownerKey(username);
  await oneAtATime(sql, owner);
  await sql`
    INSERT INTO account_epoch (username_key, epoch) VALUES (${owner}, 1)
    ON CONFLICT (username_key) DO UPDATE SET epoch = account_epoch.epoch + 1`;
  await sql`DELETE FROM session WHERE username_key = ${owner}`;
  await sql`DELETE FROM api_token WHERE username_key = ${owner}`;
}

/**
 * Until the end of the transaction, so that limits hold and two deletions of the same rows do not
 * wait for each other.
 */
async function oneAtATime(sql: TransactionSql, owner: string): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock(${LOCK}::int, hashtext(${owner}))`;
}

function only<T>([row]: readonly T[]): T {
  if (row === undefined) throw new Error('the database returned no row for what it has just written');
  return row;
}
