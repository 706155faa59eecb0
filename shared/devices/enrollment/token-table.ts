// Stores which app passwords were made for enrollment, as rows of our own database.

import type { RunSql } from '@holdfast/kit/kept-database';
import type { EnrollmentToken, EnrollmentTokens } from '../port.ts';

interface Row extends Omit<EnrollmentToken, 'accountId' | 'createdAt' | 'expiresAt'> {
  accountId: string;
  createdAt: Date;
  expiresAt: Date;
}

export function enrollmentTokenTable(run: RunSql): EnrollmentTokens {
  async function add(token: EnrollmentToken): Promise<void> {
    const { identifier, accountId, username, caFingerprint, createdAt, expiresAt } = token;
    await run(
      (sql) => sql`
        INSERT INTO enrollment_token (identifier, account_id, username, ca_fingerprint, created_at, expires_at)
        VALUES (${identifier}, ${accountId}, ${username}, ${caFingerprint}, ${createdAt}, ${expiresAt})`,
    );
  }

  async function of(accountId: number): Promise<EnrollmentToken[]> {
    const rows = await run(
      (sql) => sql<Row[]>`
        SELECT identifier, account_id::text AS "accountId", username, ca_fingerprint AS "caFingerprint",
          created_at AS "createdAt", expires_at AS "expiresAt"
        FROM enrollment_token WHERE account_id = ${accountId} ORDER BY created_at DESC, identifier`,
    );
    return rows.map((row) => ({
      ...row,
      accountId: Number(row.accountId),
      createdAt: row.createdAt.toISOString(),
      expiresAt: row.expiresAt.toISOString(),
    }));
  }

  async function remove(identifier: string): Promise<void> {
    await run((sql) => sql`DELETE FROM enrollment_token WHERE identifier = ${identifier}`);
  }

  return { add, of, remove };
}
