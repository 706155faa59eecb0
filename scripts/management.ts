// The Node host: settings, the app, its listeners, its database. Runs until SIGTERM or SIGINT.

import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { coversLoopback } from '@holdfast/kit/addresses';
import { messageOf } from '@holdfast/kit/app-error';
import { type JsonLog, jsonLog } from '@holdfast/kit/log';
import { serveOperator } from '@holdfast/kit/operator-socket';
import { RELEASE } from '@holdfast/kit/release';
import { keepTrying } from '@holdfast/kit/retry';
import type { MeasuredMessage, MeasuredModule } from '@holdfast/stack/management-process';
import { heedLostSupervisor, LISTENING, tellSupervisor } from '@holdfast/stack/process/node-process';
import { createApp } from '../functions/app.ts';
import { JOBS } from '../jobs/index.ts';
import { HEALTH_MODULES } from '../shared/health/modules/index.ts';
import type { Measurement } from '../shared/health/port.ts';
import { withQuickAnswers } from '../shared/http/quick-answers.ts';
import { withRequestLog } from '../shared/http/request-log.ts';
import { bootstrapIdentity } from '../shared/identity/bootstrap.ts';
import { ticker } from '../shared/jobs/run.ts';
import { keepServiceCertificates } from '../shared/people/service-accounts/keep-certificates.ts';
import { behindProxies } from '../shared/runtime/client-address.ts';
import { everySecond } from '../shared/runtime/every-second.ts';
import { type NodeDeps, nodeDeps } from '../shared/runtime/node-deps.ts';
import { type Listener, serveApp } from '../shared/runtime/node-server.ts';
import { answerOperator } from '../shared/runtime/operator-answers.ts';
import { keepState } from '../shared/runtime/state-keeper.ts';
import { type Configuration, readConfiguration } from '../shared/settings/configuration.ts';
import { forgetPostgresVariables, type Handover, readHandover } from '../shared/settings/handover.ts';
import { pick } from '../shared/settings/load.ts';
import { describeProblem } from '../shared/settings/setting.ts';
import { SETTING_NAMES, SETTINGS } from '../shared/settings/table.ts';

const GRACE_MS = 8_000;
/** A mail that is on its way gets this long in an orderly stop: cut off, it would be sent again. */
const JOBS_GRACE_MS = 15_000;
/**
 * What was alerted before this start stands in our own database, and a database that is being migrated is no alert: the
 * first measurements wait for it, but not for long.
 */
const STATE_TRIED_WITHIN_MS = 1_500;
/** Accounts, groups and certificates of our own are made before they are looked for; who hangs is waited for no longer. */
const OWN_THINGS_TRIED_WITHIN_MS = 8_000;
const home = resolve(import.meta.dirname, '..');
const log = jsonLog({ role: 'management' });

async function main(): Promise<void> {
  forgetPostgresVariables(process.env);
  const handover = readHandover(process.env);
  const configuration = readConfiguration(home, handover.layers, handover.mode);
  if (configuration.problems.length > 0) {
    process.stderr.write(
      `Holdfast does not start:\n${configuration.problems.map((p) => `  ${describeProblem(p)}\n`).join('')}`,
    );
    process.exit(1);
  }
  const startedAt = new Date();
  const modules = HEALTH_MODULES.map(({ name }) => name);
  const deps = nodeDeps({ home, startedAt, configuration, handover, log, modules, jobs: JOBS });
  const app = createApp(deps);
  const listeners = listenersOf(configuration, handover);
  const server = await serveApp(
    behindProxies(
      withRequestLog(withQuickAnswers(app.fetch, deps), log, () => performance.now(), deps.requests),
      configuration.settings.TRUSTED_PROXIES,
    ),
    listeners,
    log,
  );
  await openToOperator(deps);
  tellSupervisor(LISTENING);
  log.info('management.listening', {
    listeners: listeners.map(({ address, port, face, tls }) => ({ address, port, face, tls: tls !== undefined })),
  });

  const jobTicker = ticker(JOBS, deps, crypto.randomUUID());
  const stopping = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT', 'disconnect'] as const) {
    process.once(signal, () => {
      if (stopping.signal.aborted) return;
      log.info('management.stopping', { signal });
      stopping.abort();
      // Without its supervisor it is to be gone within ten seconds.
      const jobsEnd = Promise.race([jobTicker.idle(), delay(signal === 'disconnect' ? GRACE_MS : JOBS_GRACE_MS)]);
      void Promise.all([server.close(GRACE_MS), jobsEnd]).then(() => leave(log, 0));
    });
  }
  heedLostSupervisor();
  const stateTried = Promise.withResolvers<boolean>();
  const ownThingsTried = Promise.withResolvers<boolean>();
  const begin = async (): Promise<void> => {
    const ready = await Promise.race([stateTried.promise, delay(STATE_TRIED_WITHIN_MS, false)]);
    if (ready) await Promise.race([ownThingsTried.promise, delay(OWN_THINGS_TRIED_WITHIN_MS)]);
  };
  void begin().then(() => {
    if (!stopping.signal.aborted) everySecond(jobTicker.tick, stopping.signal);
  });
  void deps.health.complete.then(() => {
    const measured: MeasuredMessage = { kind: 'measured', modules: deps.health.measurements().map(shown) };
    tellSupervisor(measured);
    jobTicker.runNow('heartbeat', new Date());
  });
  const url = configuration.settings.DATABASE_URL;
  if (url === undefined) {
    stateTried.resolve(false);
    return;
  }
  const record = { startedAt, release: RELEASE, settingsHash: hashOf(handover) };
  await keepState(url, record, log, stopping.signal, stateTried.resolve);
  deps.health.forget('database');
  const identityTried = Promise.withResolvers<boolean>();
  void identityTried.promise.then((worked) => {
    if (!worked) ownThingsTried.resolve(false);
  });
  await keepIdentity(deps, stopping.signal, identityTried.resolve);
  await keepCertificates(deps, stopping.signal, ownThingsTried.resolve);
}

/** Whoever runs the scripts on this machine asks by this way; without it all else works. */
async function openToOperator(deps: NodeDeps): Promise<void> {
  const { DATA_DIR: directory } = deps.settings;
  if (directory === undefined) return;
  try {
    await serveOperator(directory, (asked) => answerOperator(deps, asked), log);
  } catch (error) {
    log.warn('operator.socket_failed', { error: messageOf(error) });
  }
}

/** Groups and accounts of our own, as soon as the provider answers. */
async function keepIdentity(deps: NodeDeps, stopped: AbortSignal, tried: (worked: boolean) => void): Promise<void> {
  const { settings } = deps;
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
  const outcome = await keepTrying(() => bootstrapIdentity(deps, wanted), {
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
  const { settings } = deps;
  if (settings.CORE_API_URL === undefined || settings.CORE_ENROLLMENT_URL === undefined) {
    tried(false);
    return;
  }
  const outcome = await keepTrying(() => keepServiceCertificates(deps), {
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

function leave(lines: JsonLog, code: number): never {
  lines.flush();
  process.exit(code);
}

main().catch((error: unknown) => {
  log.error('management.failed', { error: messageOf(error) });
  leave(log, 1);
});
