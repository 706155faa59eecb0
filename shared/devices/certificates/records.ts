// Stores Holdfast's own certificate records as rows of our own database.

import type { RunSql } from '@holdfast/kit/kept-database';
import { nameKey } from '@holdfast/kit/names';
import type { Sql } from '@holdfast/kit/postgres';
import type {
  CanaryRun,
  CertificateStore,
  MadeCertificate,
  Revocation,
  RevocationOrder,
  RevocationState,
} from '../port.ts';

/** Columns that both tables of certificates have. */
interface CertificateRow {
  hash: string;
  username: string;
  serial: string;
  clientUid: string;
  issuedAt: Date;
  expiresAt: Date;
}

interface RevocationRow extends CertificateRow {
  wantedAt: Date;
  state: RevocationState;
  checkedAt: Date | null;
  provenAt: Date | null;
  problem: string | null;
  streams: Revocation['streams'];
}

interface OrderRow {
  username: string;
  wantedAt: Date;
}

interface CanaryRow {
  at: Date;
  ok: boolean;
  signed: boolean;
  problem: string | null;
  coreStartedAt: Date | null;
}

/** With the one that is added: a statement does not see its own row. */
const OLDER_CANARIES_KEPT = 99;

export function certificateStoreTable(run: RunSql): CertificateStore {
  return { ...madeCertificates(run), ...revocations(run), ...revocationOrders(run), ...canaryRuns(run) };
}

function madeCertificates(run: RunSql): Pick<CertificateStore, 'remember' | 'made'> {
  return {
    async remember({ hash, username, name, serial, clientUid, issuedAt, expiresAt }) {
      await run(
        (sql) => sql`
          INSERT INTO certificate_made (hash, username, username_key, name, serial, client_uid, issued_at, expires_at)
          VALUES (${hash}, ${username}, ${nameKey(username)}, ${name}, ${serial}, ${clientUid}, ${issuedAt}, ${expiresAt})
          ON CONFLICT (hash) DO UPDATE SET name = excluded.name`,
      );
    },

    async made(usernames) {
      const rows = await run(
        (sql) => sql<(CertificateRow & { name: string })[]>`
          SELECT ${certificateColumns(sql)}, name FROM certificate_made WHERE ${ofUsers(sql, usernames)} ORDER BY issued_at, hash`,
      );
      return rows.map((row): MadeCertificate => ({ ...row, ...times(row) }));
    },
  };
}

function revocations(
  run: RunSql,
): Pick<
  CertificateStore,
  'wantRevoked' | 'revocations' | 'openRevocations' | 'openRevocationCount' | 'noted' | 'provenSince' | 'settle'
> {
  return {
    async wantRevoked(certificates, wantedAt) {
      if (certificates.length === 0) return;
      const rows = certificates.map((each) => ({ ...each, key: nameKey(each.username) }));
      await run(
        (sql) => sql`
          INSERT INTO certificate_revocation (hash, username, username_key, serial, client_uid, issued_at, expires_at, wanted_at)
          SELECT hash, username, key, serial, "clientUid", "issuedAt", "expiresAt", ${wantedAt}
          FROM json_to_recordset(${JSON.stringify(rows)}::text::json) AS wanted (hash text, username text, key text,
            serial text, "clientUid" text, "issuedAt" timestamptz, "expiresAt" timestamptz)
          ON CONFLICT (hash) DO NOTHING`,
      );
    },

    async revocations(usernames) {
      const rows = await run(
        (sql) => sql<RevocationRow[]>`
          SELECT ${revocationColumns(sql)} FROM certificate_revocation WHERE ${ofUsers(sql, usernames)}`,
      );
      return rows.map(revocationOf);
    },

    async openRevocations(limit) {
      const rows = await run(
        (sql) => sql<RevocationRow[]>`
          SELECT ${revocationColumns(sql)} FROM certificate_revocation
          WHERE state <> 'revoked' ORDER BY wanted_at, hash LIMIT ${limit}`,
      );
      return rows.map(revocationOf);
    },

    async openRevocationCount() {
      const [row] = await run(
        (sql) => sql<{ count: number }[]>`
          SELECT count(*)::int AS count FROM certificate_revocation WHERE state <> 'revoked'`,
      );
      return row?.count ?? 0;
    },

    async noted(hashes) {
      if (hashes.length === 0) return [];
      const rows = await run(
        (sql) => sql<{ hash: string }[]>`
          SELECT hash FROM certificate_revocation
          WHERE hash IN (SELECT json_array_elements_text(${JSON.stringify(hashes)}::text::json))`,
      );
      return rows.map(({ hash }) => hash);
    },

    async provenSince(since) {
      const rows = await run(
        (sql) => sql<{ hash: string }[]>`SELECT hash FROM certificate_revocation WHERE proven_at >= ${since}`,
      );
      return rows.map(({ hash }) => hash);
    },

    async settle(hash, { state, checkedAt, problem, streams }) {
      const provenAt = state === 'revoked' ? checkedAt : null;
      await run(
        (sql) => sql`
          UPDATE certificate_revocation
          SET state = ${state}, checked_at = ${checkedAt}, proven_at = ${provenAt}, problem = ${problem}, streams = ${streams}
          WHERE hash = ${hash} AND state <> 'revoked'`,
      );
    },
  };
}

function revocationOrders(run: RunSql): Pick<CertificateStore, 'order' | 'orders' | 'closeOrder' | 'hasOpenWork'> {
  return {
    async order({ username, wantedAt }) {
      await run(
        (sql) => sql`
          INSERT INTO revocation_order (username_key, username, wanted_at) VALUES (${nameKey(username)}, ${username}, ${wantedAt})
          ON CONFLICT (username_key) DO UPDATE SET username = excluded.username, wanted_at = excluded.wanted_at`,
      );
    },

    async orders() {
      const rows = await run(
        (sql) => sql<OrderRow[]>`
          SELECT username, wanted_at AS "wantedAt" FROM revocation_order ORDER BY wanted_at, username_key`,
      );
      return rows.map(({ username, wantedAt }): RevocationOrder => ({ username, wantedAt: wantedAt.toISOString() }));
    },

    async closeOrder({ username, wantedAt }) {
      await run(
        (sql) => sql`
          DELETE FROM revocation_order WHERE username_key = ${nameKey(username)} AND wanted_at = ${wantedAt}`,
      );
    },

    async hasOpenWork() {
      const [row] = await run(
        (sql) => sql<{ open: boolean }[]>`
          SELECT EXISTS (SELECT FROM revocation_order)
            OR EXISTS (SELECT FROM certificate_revocation WHERE state <> 'revoked') AS open`,
      );
      return row?.open === true;
    },
  };
}

function canaryRuns(run: RunSql): Pick<CertificateStore, 'lastCanary' | 'recordCanary'> {
  const canary = async (sql: Sql): Promise<CanaryRow | undefined> => {
    const [row] = await sql<CanaryRow[]>`
      SELECT at, ok, signed, problem, core_started_at AS "coreStartedAt" FROM canary_run ORDER BY at DESC LIMIT 1`;
    return row;
  };

  return {
    async lastCanary() {
      const row = await run(canary);
      return row && { ...row, at: row.at.toISOString(), coreStartedAt: row.coreStartedAt?.toISOString() ?? null };
    },

    async recordCanary({ at, ok, signed, problem, coreStartedAt }: CanaryRun) {
      await run(
        (sql) => sql`
          WITH added AS (
            INSERT INTO canary_run (at, ok, signed, problem, core_started_at)
            VALUES (${at}, ${ok}, ${signed}, ${problem}, ${coreStartedAt})
            ON CONFLICT (at) DO NOTHING)
          DELETE FROM canary_run
          WHERE at < (SELECT at FROM canary_run ORDER BY at DESC LIMIT 1 OFFSET ${OLDER_CANARIES_KEPT - 1})`,
      );
    },
  };
}

type Columns = ReturnType<Sql>;

function certificateColumns(sql: Sql): Columns {
  return sql`hash, username, serial, client_uid AS "clientUid", issued_at AS "issuedAt", expires_at AS "expiresAt"`;
}

function revocationColumns(sql: Sql): Columns {
  return sql`${certificateColumns(sql)}, wanted_at AS "wantedAt", state, checked_at AS "checkedAt",
    proven_at AS "provenAt", problem, streams`;
}

/** The client sends no types of arrays: names as JSON. */
function ofUsers(sql: Sql, usernames: readonly string[] | undefined): Columns {
  if (usernames === undefined) return sql`true`;
  const keys = JSON.stringify(usernames.map(nameKey).filter(isText));
  return sql`username_key IN (SELECT json_array_elements_text(${keys}::text::json))`;
}

/** PostgreSQL has no other text, so that nothing can be under such a name. */
function isText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

function times({ issuedAt, expiresAt }: CertificateRow): { issuedAt: string; expiresAt: string } {
  return { issuedAt: issuedAt.toISOString(), expiresAt: expiresAt.toISOString() };
}

function revocationOf(row: RevocationRow): Revocation {
  return {
    ...row,
    ...times(row),
    wantedAt: row.wantedAt.toISOString(),
    checkedAt: row.checkedAt?.toISOString() ?? null,
    provenAt: row.provenAt?.toISOString() ?? null,
  };
}
