// Starts the stack of a plan, keeps it running, and stops it in order on a signal.

import { appendFileSync, chmodSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AppError, messageOf, StackError } from '@holdfast/kit/app-error';
import { jsonLog, type Log } from '@holdfast/kit/log';
import { migrate } from '@holdfast/kit/migrate';
import { withDatabase } from '@holdfast/kit/postgres';
import { RELEASE } from '@holdfast/kit/release';
import { isKeepingAll, NEVER } from '@holdfast/kit/retention';
import { wantedRetention } from '../../shared/health/wanted.ts';
import { retentionFiles } from '../../shared/retention/files.ts';
import type { RetentionFileContents } from '../../shared/retention/port.ts';
import { formatLimited } from '../../shared/retention/rules.ts';
import { MIGRATIONS } from '../../shared/runtime/migrations/index.ts';
import type { EmbeddedPlan } from './embedded-plan.ts';
import { makeDirectories } from './process/layout.ts';
import type { Progress, Report } from './process/report.ts';
import { type RunningStack, type Services, startStack } from './stack.ts';

const WITHIN_MS = 60_000;

export interface Supervision {
  /**
   * Resolves once every process answers. Rejects if the start failed, after everything was stopped.
   */
  ready: Promise<void>;
  /** Resolves with the exit code when everything has stopped. */
  ended: Promise<number>;
  /** Stops everything in order. */
  stop(): void;
}

/** Starts a plan; SIGINT, SIGTERM and SIGHUP stop it in order. */
export function superviseStack(plan: EmbeddedPlan, progress: Progress): Supervision {
  makeDirectories(plan.layout);
  const log = fileLog(join(plan.layout.logs, 'supervisor.log'));
  const report: Report = {
    step(name) {
      const done = progress.step(name);
      return (detail) => {
        log.info('step.done', { step: name, detail });
        done(detail);
      };
    },
    warn(text) {
      log.warn('stack.warning', { text });
      progress.warn(text);
    },
    event: (name, fields) => log.info(name, fields),
  };
  const aborting = new AbortController();
  const { promise: ended, resolve: end } = Promise.withResolvers<number>();
  let stack: RunningStack | undefined;
  let stopping = false;

  function stop(code = 0): void {
    if (stopping) return;
    stopping = true;
    log.info('stack.stopping');
    if (stack === undefined) aborting.abort();
    else void stack.stop().then(() => finish(code));
  }

  function finish(code: number): void {
    log.info('stack.stopped');
    log.flush();
    end(code);
  }

  const lost = (): void => {
    report.warn(`Another process took the lock of ${plan.layout.root}. Stopping.`);
    stop(1);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop());
  log.info('stack.starting', { release: RELEASE, ports: plan.ports, settings_from: plan.settingsFrom });

  async function start(): Promise<void> {
    try {
      for (const warning of plan.warnings) report.warn(warning);
      stack = await startStack(plan, servicesFor(plan, log), report, aborting.signal, lost);
      log.info('stack.ready');
    } catch (error) {
      log.error('stack.failed', { error: messageOf(error) });
      finish(1);
      throw error;
    }
  }

  return { ready: start(), ended, stop: () => stop() };
}

function servicesFor(plan: EmbeddedPlan, log: Pick<Log, 'info'>): Services {
  return {
    prepareRetention: async () => {
      const { settings } = plan.configuration;
      // The core of this stack reads its own directory, even if management uses another core.
      const files = retentionFiles(plan.layout.core);
      const { messages } = await files.sync(wantedRetention(settings));
      if (messages.length > 0) log.info('retention.files', { messages });
      return retentionSummary(await files.read());
    },
    prepareState: async () => {
      try {
        return (await withDatabase(plan.stateUrl, 'holdfast-start', WITHIN_MS, (sql) => migrate(sql, MIGRATIONS)))
          .length;
      } catch (error) {
        throw explainDatabaseError(error, plan);
      }
    },
  };
}

/** Summarizes the retention policy. The embedded core counts days. */
function retentionSummary({ policy, schedule }: RetentionFileContents): string {
  if (isKeepingAll(policy)) return 'keep everything';
  if (schedule === NEVER) return `${formatLimited(policy)}, but no schedule: nothing is deleted`;
  return `${formatLimited(policy)}, at ${schedule} (${Intl.DateTimeFormat().resolvedOptions().timeZone})`;
}

/** Explains a failure of the Holdfast database by its location, without the password. */
function explainDatabaseError(error: unknown, plan: EmbeddedPlan): unknown {
  if (error instanceof AppError || !(error instanceof Error)) return error;
  const { host, pathname } = new URL(plan.stateUrl.reveal());
  const elsewhere = plan.configuration.sources.DATABASE_URL !== 'stack';
  return new StackError(
    `Couldn't update the Holdfast database (${host}${pathname}): ${error.message}`,
    elsewhere
      ? 'correct DATABASE_URL, or remove it to use the database of this stack'
      : `read ${plan.layout.logs}/database.log`,
    error,
  );
}

function fileLog(path: string) {
  if (!existsSync(path)) writeFileSync(path, '', { mode: 0o600 });
  chmodSync(path, 0o600);
  return jsonLog({
    role: 'supervisor',
    write: (text) => {
      try {
        appendFileSync(path, text);
      } catch {
        // A full disk must not stop the supervisor. The line is lost.
      }
    },
  });
}
