// Secrets of the databases and of the identity provider, on a stack that was started with them:
// each opens what it is for.

import { expect } from 'vitest';
import { Secret } from '@holdfast/kit/secret';
import { identityKeys } from '../../../packages/identity/model/keys.ts';
import type { SettingName } from '../../../shared/settings/table.ts';
import { query, type TestStack } from './embedded.ts';

type DatabaseSecret =
  | 'CORE_DB_PASSWORD'
  | 'CORE_READER_PASSWORD'
  | 'APP_DB_PASSWORD'
  | 'IDENTITY_DB_PASSWORD'
  | 'IDENTITY_SECRET_KEY'
  | 'FLOWS_DB_PASSWORD';

/** `env`: what the stack was started with. */
export function databaseSecretBehaviours(
  stack: () => TestStack,
  env: Record<DatabaseSecret, string>,
): Partial<Record<SettingName, () => Promise<void>>> {
  function identityDatabase(password = env.IDENTITY_DB_PASSWORD): string {
    return `postgres://identity:${encodeURIComponent(password)}@127.0.0.1:${5432 + stack().offset}/identity`;
  }

  async function opensCoreDatabase(username: string, own: string): Promise<void> {
    const url = new URL(stack().file().database);
    const asRole = (password: string): Promise<unknown> => {
      Object.assign(url, { username, password: encodeURIComponent(password) });
      return query(url.href, 'SELECT 1 AS one');
    };
    expect(await asRole(own)).toEqual([{ one: 1 }]);
    await expect(asRole('something else')).rejects.toThrow(/password authentication failed/);
  }

  return {
    CORE_DB_PASSWORD: async () => {
      expect(decodeURIComponent(new URL(stack().file().database).password)).toBe(env.CORE_DB_PASSWORD);
      expect(await query(stack().file().database, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    },
    APP_DB_PASSWORD: async () => {
      expect(decodeURIComponent(new URL(stack().file().state_database).password)).toBe(env.APP_DB_PASSWORD);
      expect(await query(stack().file().state_database, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    },
    CORE_READER_PASSWORD: () => opensCoreDatabase('holdfast_ro', env.CORE_READER_PASSWORD),
    FLOWS_DB_PASSWORD: () => opensCoreDatabase('holdfast_flows', env.FLOWS_DB_PASSWORD),
    IDENTITY_DB_PASSWORD: async () => {
      expect(await query(identityDatabase(), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
      await expect(query(identityDatabase('something else'), 'SELECT 1')).rejects.toThrow(
        /password authentication failed/,
      );
    },
    IDENTITY_SECRET_KEY: async () => {
      const kept = 'SELECT uuid, key_sealed FROM token ORDER BY identifier LIMIT 1';
      const [row] = await query<{ uuid: string; key_sealed: Uint8Array }>(identityDatabase(), kept);
      const opened = (secret: string) =>
        identityKeys(new Secret(secret)).open(row?.key_sealed ?? new Uint8Array(), row?.uuid ?? '');
      expect(opened(env.IDENTITY_SECRET_KEY)).toBeDefined();
      expect(opened(`${env.IDENTITY_SECRET_KEY}.`)).toBeUndefined();
    },
  };
}
