// Records which passwords of the settings accounts received, as salted scrypt digests in our own
// database. Node only.

import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import type { RunSql } from '@holdfast/kit/kept-database';
import type { AppliedPasswords } from './port.ts';

const digestOf = promisify<string, Buffer, number, Buffer>(scrypt);
const SALT_BYTES = 16;
const DIGEST_BYTES = 32;

interface Row {
  salt: Buffer;
  digest: Buffer;
}

export function appliedPasswordTable(run: RunSql): AppliedPasswords {
  async function isApplied(username: string, password: string): Promise<boolean> {
    const [row] = await run(
      (sql) => sql<Row[]>`SELECT salt, digest FROM applied_password WHERE username = ${username}`,
    );
    if (row === undefined || row.digest.length !== DIGEST_BYTES) return false;
    return timingSafeEqual(await digestOf(password, row.salt, DIGEST_BYTES), row.digest);
  }

  async function remember(username: string, password: string): Promise<void> {
    const salt = randomBytes(SALT_BYTES);
    const digest = await digestOf(password, salt, DIGEST_BYTES);
    await run(
      (sql) => sql`
        INSERT INTO applied_password (username, salt, digest) VALUES (${username}, ${salt}, ${digest})
        ON CONFLICT (username) DO UPDATE SET salt = excluded.salt, digest = excluded.digest, applied_at = now()`,
    );
  }

  async function forget(username: string): Promise<void> {
    await run((sql) => sql`DELETE FROM applied_password WHERE username = ${username}`);
  }

  return { isApplied, remember, forget };
}
