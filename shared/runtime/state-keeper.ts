// Brings our own database up to date as soon as it answers, however late that is; the service runs meanwhile.

import { setTimeout as delay } from 'node:timers/promises';
import { migrate } from '../adapters/migrate.ts';
import { MIGRATIONS } from '../adapters/migrations/index.ts';
import { withDatabase } from '../adapters/postgres.ts';
import type { Secret } from '../domain/secret.ts';
import { AppError } from '../domain/app-error.ts';
import type { Log } from '../ports/log.ts';
import { messageOf } from '../domain/thrown.ts';

const WITHIN_MS = 60_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

export interface StartRecord {
  startedAt: Date;
  release: string;
  settingsHash: string;
}

/**
 * Migrates and records this start; retries whatever is in the way (no connection, a full disk, a wrong password), until
 * `stopped` aborts. `tried` is called after the first attempt, whatever it brought. Rejects only when the database must
 * not be used (newer release, foreign tables).
 */
export async function keepState(
  url: Secret,
  start: StartRecord,
  log: Log,
  stopped: AbortSignal,
  tried: () => void = () => undefined,
): Promise<void> {
  for (let pauseMs = FIRST_PAUSE_MS; !stopped.aborted; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    try {
      const applied = await withDatabase(url, 'holdfast', WITHIN_MS, async (sql) => {
        const numbers = await migrate(sql, MIGRATIONS);
        await sql`
          INSERT INTO stack_start (started_at, release, settings_hash)
          VALUES (${start.startedAt}, ${start.release}, ${start.settingsHash})`;
        return numbers;
      });
      log.info('state.ready', { migrations_applied: applied });
      tried();
      return;
    } catch (error) {
      if (stopped.aborted) return;
      if (error instanceof AppError) throw error;
      log.warn('state.not_ready', {
        error: messageOf(error),
        retry_in_ms: pauseMs,
      });
      tried();
      await delay(pauseMs, undefined, { signal: stopped }).catch(() => undefined);
    }
  }
}
