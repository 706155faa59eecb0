// The variables of a vacuum, each by what a management process beside a stack answers with it and
// without.

import { join } from 'node:path';
import { expect } from 'vitest';
import type { SettingName } from '../../../shared/settings/table.ts';
import { basic } from '../../http/fake-deps.ts';
import { answersPing, eventually, secretsOf, type TestStack } from './embedded.ts';
import { manageAlone } from './managed.ts';

const VACUUM = '/api/ops/database/vacuum';

export function vacuumBehaviours(beside: () => TestStack) {
  async function answerTo(env: Record<string, string>, init: RequestInit = {}): Promise<unknown> {
    const { database, state_database: DATABASE_URL, ldap, webadmin } = beside().file();
    const { AUDIT_KEY = '', LDAP_BIND_PASSWORD = '' } = secretsOf(beside());
    const directory = { LDAP_URL: ldap.url, LDAP_BASE_DN: ldap.base_dn, LDAP_BIND_PASSWORD };
    const headers = { authorization: basic('webadmin', webadmin.password), 'content-type': 'application/json' };
    let body: unknown;
    await manageAlone({ DATABASE_URL, CORE_DATABASE_URL: database, AUDIT_KEY, ...directory, ...env }, async (port) => {
      await eventually('it answers', () => answersPing(`http://127.0.0.1:${port}`), 10_000);
      body = await (await fetch(`http://127.0.0.1:${port}${VACUUM}`, { headers, ...init })).json();
    });
    return body;
  }

  return {
    CORE_DATABASE_OWNER_URL: async () => {
      const unknown = JSON.stringify({ mode: 'standard', tables: ['no_such_table'] });
      const order = (env: Record<string, string>) => answerTo(env, { method: 'POST', body: unknown });
      const detail = expect.stringMatching(/CORE_DATABASE_OWNER_URL is not set/) as unknown;
      expect(await order({})).toMatchObject({ code: 'not_supported', detail });
      expect(await order({ CORE_DATABASE_OWNER_URL: beside().file().database })).toMatchObject({ code: 'invalid' });
    },
    CORE_DATABASE_DIR: async () => {
      const reason = expect.stringMatching(/CORE_DATABASE_DIR is not set/) as unknown;
      expect(await answerTo({})).toMatchObject({ enough_disk: null, reason });
      const CORE_DATABASE_DIR = join(beside().data, 'pgdata');
      expect(await answerTo({ CORE_DATABASE_DIR })).toMatchObject({ enough_disk: true });
    },
  } satisfies Partial<Record<SettingName, () => Promise<void>>>;
}
