// The variables of a vacuum, each by what a management process beside a stack answers with it and
// without.

import { join } from 'node:path';
import { expect } from 'vitest';
import type { SettingName } from '../../../shared/settings/table.ts';
import { basic } from '../../http/fake-deps.ts';
import type { TestStack } from './embedded.ts';
import { managed } from './managed.ts';

const VACUUM = '/api/ops/database/vacuum';

/** `beside`: the running stack and the settings of a process beside it. */
export function vacuumBehaviours(beside: () => { stack: TestStack; env: Record<string, string> }) {
  async function answerTo(more: Record<string, string>, init: RequestInit = {}): Promise<unknown> {
    const { stack, env } = beside();
    const headers = {
      authorization: basic('webadmin', stack.file().webadmin.password),
      'content-type': 'application/json',
    };
    return (
      await fetch(`http://127.0.0.1:${await managed({ ...env, ...more })}${VACUUM}`, { headers, ...init })
    ).json();
  }

  /** Both at once, since each changes an answer of its own. */
  const set = (): Record<string, string> => {
    const { stack } = beside();
    return { CORE_DATABASE_OWNER_URL: stack.file().database, CORE_DATABASE_DIR: join(stack.data, 'pgdata') };
  };

  return {
    CORE_DATABASE_OWNER_URL: async () => {
      const unknown = JSON.stringify({ mode: 'standard', tables: ['no_such_table'] });
      const order = (env: Record<string, string>) => answerTo(env, { method: 'POST', body: unknown });
      const detail = expect.stringMatching(/CORE_DATABASE_OWNER_URL is not set/) as unknown;
      expect(await order({})).toMatchObject({ code: 'not_supported', detail });
      expect(await order(set())).toMatchObject({ code: 'invalid' });
    },
    CORE_DATABASE_DIR: async () => {
      const reason = expect.stringMatching(/CORE_DATABASE_DIR is not set/) as unknown;
      expect(await answerTo({})).toMatchObject({ enough_disk: null, reason });
      expect(await answerTo(set())).toMatchObject({ enough_disk: true });
    },
  } satisfies Partial<Record<SettingName, () => Promise<void>>>;
}
