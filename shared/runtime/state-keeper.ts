// Brings our own database up to date as soon as it answers, however late that is; the service runs meanwhile.

import { migrate } from '../adapters/migrate.ts';
import { MIGRATIONS } from '../adapters/migrations/index.ts';
import { isUnreachable, type Sql } from '../adapters/postgres.ts';
import type { Log } from '../ports/log.ts';

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

export interface StartRecord {
  startedAt: Date;
  release: string;
  settingsHash: string;
}

/**
 * Migrates and records this start; retries while the database cannot be reached, until `stopped` aborts.
 * Rejects when the database answers and must not be used (newer release, foreign tables).
 */
export async function keepState(sql: Sql, start: StartRecord, log: Log, stopped: AbortSignal): Promise<void> {
  for (let pauseMs = FIRST_PAUSE_MS; !stopped.aborted; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    try {
      const applied = await migrate(sql, MIGRATIONS);
      await sql`
        INSERT INTO stack_start (started_at, release, settings_hash)
        VALUES (${start.startedAt}, ${start.release}, ${start.settingsHash})`;
      log.info('state.ready', { migrations_applied: applied });
      return;
    } catch (error) {
      if (stopped.aborted) return;
      if (!isUnreachable(error)) throw error;
      log.warn('state.unreachable', {
        error: error instanceof Error ? error.message : String(error),
        retry_in_ms: pauseMs,
      });
      await pause(pauseMs, stopped);
    }
  }
}

async function pause(ms: number, stopped: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    stopped.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
