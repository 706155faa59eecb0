// Reads and writes the table `certificate`. Caches its lists for a moment.

import type postgres from 'postgres';
import { KeptAnswers } from '../http/kept-answers.ts';
import type { CertificateRecord, CertificateSelection, CertificateStore } from '../model/parts.ts';

/**
 * Runs one piece of work on a connection; rejects with an AppError `unavailable` when the server
 * does not answer.
 */
export type RunSql = <T>(use: (sql: postgres.Sql) => Promise<T>) => Promise<T>;

export function certificateStore(run: RunSql): CertificateStore {
  return {
    add: (signed, { creator, clientUid }, now) =>
      run(async (sql) => {
        const [row] = await sql<CertificateRecord[]>`
          INSERT INTO certificate (creator_dn, subject_dn, user_dn, issuance_date, effective_date, expiration_date, certificate, hash, client_uid)
          VALUES (${creator}, ${signed.subject}, ${signed.commonName}, ${now}, ${signed.notBefore}, ${signed.notAfter},
            ${signed.pem}, ${signed.hash}, ${clientUid})
          RETURNING ${columns(sql)}`;
        return existing(row);
      }),

    list: (selection, now, username) =>
      run((sql) => {
        const wanted = username === undefined ? sql`true` : sql`user_dn = ${username}`;
        return sql<CertificateRecord[]>`
          SELECT ${columns(sql)} FROM certificate c
          WHERE ${wanted} AND ${condition(sql, selection, now)}
          ORDER BY client_uid COLLATE "C", id`;
      }),

    byHash: (hash) =>
      run(async (sql) => {
        const [row] = await sql<CertificateRecord[]>`
          SELECT ${columns(sql)} FROM certificate WHERE hash = ${hash} ORDER BY id LIMIT 1`;
        return row;
      }),

    byIds: (ids) =>
      run(
        (sql) => sql<CertificateRecord[]>`
        SELECT ${columns(sql)} FROM certificate WHERE id = ANY (${numbers(ids)}::int[]) ORDER BY id`,
      ),

    setRevoked: (id, at) =>
      run(async (sql) => {
        const [row] = await sql<CertificateRecord[]>`
          UPDATE certificate SET revocation_date = coalesce(revocation_date, ${at}) WHERE id = ${id}
          RETURNING ${columns(sql)}`;
        return existing(row);
      }),

    remove: (ids) =>
      run(async (sql) => void (await sql`DELETE FROM certificate WHERE id = ANY (${numbers(ids)}::int[])`)),
  };
}

function columns(sql: postgres.Sql): postgres.Fragment {
  return sql`id, coalesce(creator_dn, '') AS "creatorDn", subject_dn AS "subjectDn", user_dn AS "userDn",
    coalesce(certificate, '') AS certificate, coalesce(hash, '') AS hash, coalesce(client_uid, '') AS "clientUid",
    coalesce(issuance_date, effective_date, expiration_date) AS "issuanceDate",
    coalesce(effective_date, issuance_date, expiration_date) AS "effectiveDate",
    ${finite(sql, 'expiration_date')} AS "expirationDate", ${finite(sql, 'revocation_date')} AS "revocationDate", token`;
}

/**
 * Somebody may write `infinity` by hand, which no date of JavaScript and no revocation list can
 * say.
 */
function finite(sql: postgres.Sql, column: 'expiration_date' | 'revocation_date'): postgres.Fragment {
  return sql`CASE WHEN ${sql(column)} IS NOT NULL
    THEN least(greatest(${sql(column)}, '1970-01-01Z'), '9999-12-31Z') END`;
}

function condition(sql: postgres.Sql, selection: CertificateSelection, now: Date): postgres.Fragment {
  const replaced = sql`EXISTS (SELECT FROM certificate newer
    WHERE newer.client_uid IS NOT DISTINCT FROM c.client_uid AND newer.user_dn = c.user_dn
      AND (newer.issuance_date, newer.id) > (c.issuance_date, c.id))`;
  const conditions: Record<CertificateSelection, postgres.Fragment> = {
    all: sql`true`,
    active: sql`NOT ${replaced}`,
    replaced,
    expired: sql`expiration_date < ${now}`,
    revoked: sql`revocation_date IS NOT NULL`,
  };
  return conditions[selection];
}

/** An array as text: the client sends no types of arrays. */
function numbers(ids: readonly number[]): string {
  return `{${ids.join()}}`;
}

function existing(row: CertificateRecord | undefined): CertificateRecord {
  if (row === undefined) throw new Error('the database answered without the row');
  return row;
}

/**
 * Lists of certificates, kept until something is issued or revoked. Deleting rows does not clear
 * them, as with a release.
 */
export interface CertificateLists {
  list(selection: CertificateSelection, username?: string): Promise<CertificateRecord[]>;
  /** After a certificate was issued or revoked. */
  clear(): void;
}

/** What others change in the table is seen then. */
const KEPT_MS = 30_000;
const MAX_KEPT = 50;

export function certificateLists(store: Pick<CertificateStore, 'list'>, now: () => Date): CertificateLists {
  const kept = new KeptAnswers<CertificateRecord[]>({ keptMs: KEPT_MS, most: MAX_KEPT, now });

  return {
    list(selection, username) {
      const key = username === undefined ? selection : `${selection} ${username}`;
      return kept.ask(key, () => store.list(selection, now(), username));
    },
    clear: () => kept.clear(),
  };
}
