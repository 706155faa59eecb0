// Ensures at every start the superuser group, the first account in it, and the API key of
// management.

import { PROVIDER_ADMINS } from '@holdfast/kit/names';
import type { Secret } from '@holdfast/kit/secret';
import { identityKeys } from './model/keys.ts';
import { nameKey } from './model/names.ts';
import { createAccount } from './store/accounts.ts';
import type { RunSql, Sql } from './store/database.ts';
import { createGroup } from './store/groups.ts';
import { createToken } from './store/tokens.ts';

export interface BootstrapOptions {
  run: RunSql;
  secretKey: Secret;
  /** The key of the API token; a changed one replaces the old one, which is then dead. */
  apiToken: Secret;
  now?: () => Date;
}

const FIRST_ADMIN = 'akadmin';
export const BOOTSTRAP_TOKEN = 'holdfast-bootstrap';
/** The same for every process on the database, and no other lock. */
const LOCK = 4_805_727_012;

/**
 * Makes or repairs what is missing, in one transaction; writes nothing when nothing is. True when
 * something was written.
 */
export async function ensureProvider({
  run,
  secretKey,
  apiToken,
  now = () => new Date(),
}: BootstrapOptions): Promise<boolean> {
  return run((sql) =>
    sql.begin(async (transaction) => {
      await transaction`SELECT pg_advisory_xact_lock(${LOCK})`;
      const group = await ensureGroup(transaction, now());
      const account = await ensureAccount(transaction, now());
      const joined = await ensureMember(transaction, account.pk, group.uuid);
      const token = await ensureToken(transaction, account.pk, identityKeys(secretKey), apiToken.reveal());
      return group.written || account.written || joined || token;
    }),
  );
}

async function ensureGroup(sql: Sql, now: Date): Promise<{ uuid: string; written: boolean }> {
  const [found] = await sql<{ uuid: string; is_superuser: boolean }[]>`
    SELECT uuid, is_superuser FROM user_group WHERE name_key = ${nameKey(PROVIDER_ADMINS)}`;
  if (found === undefined) {
    const { uuid } = await createGroup(sql, { name: PROVIDER_ADMINS, isSuperuser: true, attributes: {} }, now);
    return { uuid, written: true };
  }
  if (!found.is_superuser)
    await sql`UPDATE user_group SET is_superuser = true, changed_at = ${now} WHERE uuid = ${found.uuid}`;
  return { uuid: found.uuid, written: !found.is_superuser };
}

/** Without a password: nobody signs in as it but by the token. */
async function ensureAccount(sql: Sql, now: Date): Promise<{ pk: number; written: boolean }> {
  const [found] = await sql<{ pk: number; is_active: boolean }[]>`
    SELECT pk, is_active FROM account WHERE username_key = ${nameKey(FIRST_ADMIN)}`;
  if (found === undefined) {
    const values = { username: FIRST_ADMIN, name: 'authentik Default Admin', email: '', isActive: true } as const;
    const { pk } = await createAccount(sql, { ...values, path: 'users', type: 'internal', attributes: {} }, now);
    return { pk, written: true };
  }
  if (!found.is_active) await sql`UPDATE account SET is_active = true, last_updated = ${now} WHERE pk = ${found.pk}`;
  return { pk: found.pk, written: !found.is_active };
}

async function ensureMember(sql: Sql, pk: number, uuid: string): Promise<boolean> {
  const [member] = await sql`SELECT FROM membership WHERE account_pk = ${pk} AND group_uuid = ${uuid}`;
  if (member !== undefined) return false;
  await sql`INSERT INTO membership (account_pk, group_uuid) VALUES (${pk}, ${uuid})`;
  return true;
}

/** Another token with the same key, and a bootstrap token with any other property, give way. */
async function ensureToken(sql: Sql, pk: number, keys: ReturnType<typeof identityKeys>, key: string): Promise<boolean> {
  const [right] = await sql<{ uuid: string; key_sealed: Buffer }[]>`
    SELECT uuid, key_sealed FROM token WHERE identifier = ${BOOTSTRAP_TOKEN} AND key_digest = ${keys.digest(key)}
      AND account_pk = ${pk} AND intent = 'api' AND NOT expiring`;
  if (right !== undefined && keys.open(right.key_sealed, right.uuid) === key) return false;
  await sql`DELETE FROM token WHERE identifier = ${BOOTSTRAP_TOKEN} OR key_digest = ${keys.digest(key)}`;
  const values = { identifier: BOOTSTRAP_TOKEN, intent: 'api', accountPk: pk, description: '' } as const;
  await createToken(sql, keys, { ...values, expires: null, expiring: false, managed: null }, key);
  return true;
}
