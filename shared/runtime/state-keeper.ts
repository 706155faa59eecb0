// Brings our own database up to date as soon as it answers, however late that is; the service runs meanwhile.

import { AppError, messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { migrate } from '@holdfast/kit/migrate';
import { withDatabase } from '@holdfast/kit/postgres';
import { retry } from '@holdfast/kit/retry';
import type { Secret } from '@holdfast/kit/secret';
import { MIGRATIONS } from './migrations/index.ts';

const WITHIN_MS = 60_000;

export interface StartRecord {
  startedAt: Date;
  release: string;
  settingsHash: string;
}

/**
 * Migrates and records this start; retries whatever is in the way (no connection, a full disk, a wrong password), until
 * `stopped` aborts. `tried` is called after the first attempt, with what it brought. Rejects only when the database must
 * not be used (newer release, foreign tables).
 */
export async function keepState(
  url: Secret,
  start: StartRecord,
  log: Log,
  stopped: AbortSignal,
  tried?: (worked: boolean) => void,
): Promise<void> {
  const prepare = (): Promise<number[]> =>
    withDatabase(url, 'holdfast', WITHIN_MS, async (sql) => {
      const numbers = await migrate(sql, MIGRATIONS);
      await sql`
        INSERT INTO stack_start (started_at, release, settings_hash)
        VALUES (${start.startedAt}, ${start.release}, ${start.settingsHash})`;
      return numbers;
    });
  const applied = await retry(prepare, {
    stopped,
    tried,
    isFinal: (error) => error instanceof AppError,
    failed: (error, retryInMs) => log.warn('state.not_ready', { error: messageOf(error), retry_in_ms: retryInMs }),
  });
  if (applied !== undefined) log.info('state.ready', { migrations_applied: applied });
}
