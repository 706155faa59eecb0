// Runs the Node host: settings, the app, its listeners and its database, until SIGTERM or SIGINT.

import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { coversLoopback } from '@holdfast/kit/addresses';
import { AppError, messageOf } from '@holdfast/kit/app-error';
import { type JsonLog, jsonLog, type Log } from '@holdfast/kit/log';
import { migrate } from '@holdfast/kit/migrate';
import { OPERATOR_SOCKET, serveOperator } from '@holdfast/kit/operator-socket';
import { forgetPostgresVariables, withDatabase } from '@holdfast/kit/postgres';
import { RELEASE } from '@holdfast/kit/release';
import { retry } from '@holdfast/kit/retry';
import type { Secret } from '@holdfast/kit/secret';
import { LISTENING, runService, stopInOrder, tellSupervisor } from '@holdfast/kit/service';
import { recordRestore } from '../backups/restored-note.ts';
import { HEALTH_MODULES } from '../health/modules/index.ts';
import type { Measurement } from '../health/port.ts';
import type { Deps } from '../http/deps.ts';
import { type AppFetch, withRequestLog } from '../http/request-log.ts';
import { bootstrapIdentity } from '../identity/bootstrap.ts';
import type { Job } from '../jobs/port.ts';
import { JobRunner } from '../jobs/run.ts';
import { keepServiceCertificates } from '../people/service-accounts/keep-certificates.ts';
import { type Configuration, readConfiguration } from '../settings/configuration.ts';
import { type Handover, pick, readHandover } from '../settings/load.ts';
import { describeProblem } from '../settings/setting.ts';
import { SETTING_NAMES, SETTINGS } from '../settings/table.ts';
import { behindProxies } from './client-address.ts';
import { MIGRATIONS } from './migrations/index.ts';
import { type NodeDeps, nodeDeps, ofReplica } from './node-deps.ts';
import { type Listener, serveApp } from './node-server.ts';
import { answerOperator, OPERATOR } from './operator-answers.ts';

const WITHIN_MS = 60_000;

/**
 * Brings our own database up to date as soon as it answers, however late that is; the service runs
 * meanwhile.
 */
export interface StartRecord {
  startedAt: Date;
  release: string;
  settingsHash: string;
}

/**
 * Migrates and records this start; retries whatever is in the way (no connection, a full disk, a
 * wrong password), until `stopped` aborts. `tried` is called after the first attempt, with what it
 * brought. Rejects only when the database must not be used (newer release, foreign tables).
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

const GRACE_MS = 8_000;
/** A mail that is on its way gets this long in an orderly stop: cut off, it would be sent again. */
const JOBS_GRACE_MS = 15_000;
/**
 * What was alerted before this start stands in our own database, and a database that is being
 * migrated is no alert: the first measurements wait for it, but not for long.
 */
const STATE_TRIED_WITHIN_MS = 1_500;
/**
 * Accounts, groups and certificates of our own are made before they are looked for; who hangs is
 * waited for no longer.
 */
const OWN_CHECKS_WITHIN_MS = 8_000;

/** What management shows and does, which the entry brings together with this host. */
export interface ManagementParts {
  createFetch: (deps: NodeDeps) => AppFetch;
  jobs: readonly Job<Deps>[];
}

/** One health module as it was measured first. */
export type MeasuredModule = Pick<Measurement, 'module' | 'status' | 'message'>;

/** What the supervisor is told once every health module was measured. */
export interface MeasuredMessage {
  kind: 'measured';
  modules: MeasuredModule[];
}

/** Until it is stopped. `home` is the root of the repository or of the image. */
export function runManagement(home: string, environment: NodeJS.ProcessEnv, parts: ManagementParts): void {
  const log = jsonLog({ role: 'management' });
  runService(log, 'management', () => serve(home, environment, parts, log));
}

async function serve(
  home: string,
  environment: NodeJS.ProcessEnv,
  { createFetch, jobs }: ManagementParts,
  log: JsonLog,
): Promise<void> {
  forgetPostgresVariables(environment);
  const handover = readHandover(environment);
  const configuration = readConfiguration(home, handover.layers, handover.mode);
  if (configuration.problems.length > 0) {
    process.stderr.write(
      `Holdfast did not start. Correct these settings:\n${configuration.problems.map((p) => `  ${describeProblem(p)}\n`).join('')}`,
    );
    process.exit(1);
  }
  const startedAt = new Date();
  const deps = nodeDeps({ home, startedAt, configuration, handover, log, modules: HEALTH_MODULES, jobs });
  const listeners = listenersOf(configuration, handover);
  const answer = withRequestLog(createFetch(deps), log, () => performance.now(), deps.requests);
  const server = await serveApp(behindProxies(answer, configuration.settings.TRUSTED_PROXIES), listeners, log);
  await openToOperator(deps);
  tellSupervisor(LISTENING);
  log.info('management.listening', {
    listeners: listeners.map(({ address, port, face, tls }) => ({ address, port, face, tls: tls !== undefined })),
  });
  const runner = new JobRunner(jobs, deps, crypto.randomUUID());
  const stopping = new AbortController();
  stopInOrder(log, 'management', (signal) => {
    stopping.abort();
    // Without its supervisor it is to be gone within ten seconds.
    const jobsEnd = Promise.race([runner.idle(), delay(signal === 'disconnect' ? GRACE_MS : JOBS_GRACE_MS)]);
    return Promise.all([server.close(GRACE_MS), jobsEnd]);
  });
  await work(deps, { startedAt, release: RELEASE, settingsHash: hashOf(handover) }, runner, stopping.signal);
}

/**
 * Begins the jobs as soon as what they look at was tried, and brings up what is our own: database,
 * accounts, certificates.
 */
async function work(
  deps: NodeDeps,
  record: Parameters<typeof keepState>[1],
  runner: JobRunner<Deps>,
  stopped: AbortSignal,
): Promise<void> {
  const stateTried = Promise.withResolvers<boolean>();
  const ownChecks = Promise.withResolvers<boolean>();
  const begin = async (): Promise<void> => {
    const ready = await Promise.race([stateTried.promise, delay(STATE_TRIED_WITHIN_MS, false)]);
    if (ready) await Promise.race([ownChecks.promise, delay(OWN_CHECKS_WITHIN_MS)]);
    if (!stopped.aborted) runner.start(stopped);
  };
  void begin();
  void deps.health.complete.then(() => {
    const measured: MeasuredMessage = { kind: 'measured', modules: deps.health.measurements().map(shown) };
    tellSupervisor(measured);
    runner.runNow('heartbeat', new Date());
  });
  const url = deps.settings.DATABASE_URL;
  if (url === undefined) {
    stateTried.resolve(false);
    return;
  }
  await keepState(url, record, deps.log, stopped, stateTried.resolve);
  deps.health.forget('database');
  if (deps.settings.DATA_DIR !== undefined) await recordRestore(deps.settings.DATA_DIR, OPERATOR, deps);
  await keepIdentity(deps, stopped, (worked) => {
    if (!worked) ownChecks.resolve(false);
  });
  await keepCertificates(deps, stopped, ownChecks.resolve);
}

/** Whoever runs the scripts on this machine asks by this way; without it all else works. */
async function openToOperator(deps: NodeDeps): Promise<void> {
  const { DATA_DIR: directory, MANAGEMENT_REPLICA: replica } = deps.settings;
  if (directory === undefined) return;
  try {
    const name = ofReplica(OPERATOR_SOCKET, replica);
    await serveOperator(directory, (request) => answerOperator(deps, request), deps.log, name);
  } catch (error) {
    deps.log.warn('operator.socket_failed', { error: messageOf(error) });
  }
}

/** Groups and accounts of our own, as soon as the provider answers. */
async function keepIdentity(deps: NodeDeps, stopped: AbortSignal, tried: (worked: boolean) => void): Promise<void> {
  const { settings, log } = deps;
  if (settings.IDENTITY_URL === undefined || settings.IDENTITY_TOKEN === undefined) {
    tried(false);
    return;
  }
  const wanted = {
    adminGroup: settings.ADMIN_GROUP,
    viewerGroup: settings.VIEWER_GROUP,
    webadminPassword: settings.CORE_WEBADMIN_PASSWORD?.reveal(),
    ldapServicePassword: settings.LDAP_BIND_PASSWORD?.reveal(),
  };
  const outcome = await retry(() => bootstrapIdentity(deps, wanted), {
    stopped,
    tried,
    failed: (error, retryInMs) => log.warn('identity.not_ready', { error: messageOf(error), retry_in_ms: retryInMs }),
  });
  for (const problem of outcome?.refused ?? []) log.error('identity.password_refused', { error: problem });
  if (outcome !== undefined) log.info('identity.ready', { changes: outcome.changes });
  deps.health.forget('identity');
}

/** Those of our own service accounts, as soon as the core answers. */
async function keepCertificates(deps: NodeDeps, stopped: AbortSignal, tried: (worked: boolean) => void): Promise<void> {
  const { settings, log } = deps;
  if (settings.CORE_API_URL === undefined || settings.CORE_ENROLLMENT_URL === undefined) {
    tried(false);
    return;
  }
  const outcome = await retry(() => keepServiceCertificates(deps), {
    stopped,
    tried,
    failed: (error, retryInMs) =>
      log.warn('certificates.not_ready', { error: messageOf(error), retry_in_ms: retryInMs }),
  });
  if (outcome !== undefined) log.info('certificates.ready', { made: outcome.made });
  deps.health.forget('certificates');
  deps.health.forget('probe');
}

function listenersOf({ settings }: Configuration, { tls }: Handover): Listener[] {
  const faces = [
    { face: 'console', port: settings.API_PORT },
    { face: 'portal', port: settings.PORTAL_PORT },
  ] as const;
  const plain = faces.map((each) => ({ ...each, address: settings.LISTEN_ADDRESS }));
  if (tls === undefined) return plain;
  const secure = faces.map((each) => ({ ...each, address: tls.address, tls }));
  return coversLoopback(tls.address) ? secure : [...plain, ...secure];
}

function hashOf({ layers }: Handover): string {
  const open = SETTING_NAMES.filter((name) => !SETTINGS[name].kind.secret);
  const values = open.map((name) => [name, pick(layers, name)?.value ?? null]);
  return createHash('sha256').update(JSON.stringify(values)).digest('hex');
}

function shown({ module, status, message }: Measurement): MeasuredModule {
  return { module, status, message };
}
