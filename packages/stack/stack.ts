// Brings the embedded stack up step by step and keeps it up: lock, leftovers, preflight, certificates, database,
// our own tables, identity provider, core, management. Everything that a step starts is ended in reverse order.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isWildcardAddress, urlHost } from '@holdfast/kit/addresses';
import { messageOf, StackError } from '@holdfast/kit/app-error';
import { writeFileAtomically } from '@holdfast/kit/files';
import { counted } from '@holdfast/kit/format';
import { MINUTE_MS } from '@holdfast/kit/time';
import { ensureServerCertificate, type ServerCertificateFiles } from '@holdfast/pki/server-certificate';
import { databaseAccount } from './database/account.ts';
import { checkMajor, clearStaleServer, type Cluster, makeCluster, renewWantedState } from './database/cluster.ts';
import { hbaFile, isReady, startPostmaster, writeAccessRules } from './database/postmaster.ts';
import { ADDED_LATER, wantedState } from './database/roles.ts';
import { supplyFlows } from './flows/certificate.ts';
import { type FlowsPlan, flowsProcess } from './flows/process.ts';
import type { StackPlan } from './plan.ts';
import { checkDiskSpace, checkPorts } from './preflight.ts';
import type { Guard } from './process/guard.ts';
import { type Layout, makeDirectories, makeFlowsDirectories } from './process/layout.ts';
import { type ManagementProcess, managementProcess, nodeProcess } from './process/node-process.ts';
import { lockDirectory, Roster } from './process/ownership.ts';
import { databaseComplaint, processLog, rotateLogs } from './process/process-log.ts';
import type { Report } from './process/report.ts';
import {
  EarlyEnd,
  explainEarlyEnd,
  type ProcessEvents,
  supervise,
  type SupervisedProcess,
} from './process/supervised-process.ts';

/** What the stack needs of the rest of the product. */
export interface Services {
  /** Writes what the settings say into the retention files of the core, which reads them when it starts; resolves with words. */
  prepareRetention(): Promise<string>;
  /** Brings our own database up to date; resolves with the number of migrations applied now. */
  prepareState(): Promise<number>;
}

export interface RunningStack {
  /** Ends every process in order and gives the lock back. */
  stop(): Promise<void>;
}

const ROTATE_EVERY_MS = 60_000;
/** Longer than any health module may take. */
const MEASURED_WITHIN_MS = 60_000;
/** Replaying the log of a large database after a crash may take this long. */
const RECOVERY_MS = 30 * MINUTE_MS;

/** What the steps of one start share. */
interface Start {
  plan: StackPlan;
  guard: Guard;
  aborted: AbortSignal;
  events: ProcessEvents;
  services: Services;
  report: Report;
  /** Takes a process into the start: it is stopped with the rest, and at once when the start is interrupted. */
  owned: (process: SupervisedProcess) => SupervisedProcess;
}

/** Starts the stack of a plan; resolves when every process answers. `lost` is called if the directory is taken away. */
export async function startStack(
  plan: StackPlan,
  services: Services,
  report: Report,
  aborted: AbortSignal,
  lost: () => void,
): Promise<RunningStack> {
  const { layout } = plan;
  makeDirectories(layout);
  const undo: (() => Promise<void>)[] = [];
  const stop = async (): Promise<void> => {
    for (let step = undo.pop(); step !== undefined; step = undo.pop()) {
      await step().catch((error: unknown) => report.warn(`While stopping: ${messageOf(error)}`));
    }
  };
  let starting: SupervisedProcess | undefined;
  aborted.addEventListener('abort', () => void starting?.stop());
  try {
    const guard = await lockDirectory(plan.guardScript, layout, report, lost, aborted);
    undo.push(() => guard.release());
    throwIfAborted(aborted);
    const certificates = await prepare(plan, report);
    throwIfAborted(aborted);
    const roster = new Roster(layout, (pids) => writeStackFile(plan, certificates, pids));
    roster.add('supervisor', process.pid);
    undo.push(async () => roster.clear());
    const events = eventsFor(guard, roster, report);
    const start: Start = {
      plan,
      guard,
      aborted,
      events,
      services,
      report,
      owned(process) {
        throwIfAborted(aborted);
        starting = process;
        undo.push(() => process.stop());
        return process;
      },
    };
    const retention = report.step('retention');
    retention(await services.prepareRetention());
    throwIfAborted(aborted);
    await startDatabase(start);
    throwIfAborted(aborted);
    const migrated = report.step('tables');
    const applied = await services.prepareState();
    migrated(applied === 0 ? 'up to date' : `${counted(applied, 'migration')} applied`);
    throwIfAborted(aborted);
    await startIdentity(start, certificates);
    throwIfAborted(aborted);
    await startCore(start, certificates);
    throwIfAborted(aborted);
    const management = await startManagement(start, certificates);
    throwIfAborted(aborted);
    await measureHealth(management, start);
    throwIfAborted(aborted);
    if (plan.flows !== undefined) undo.push(giveToFlows(start, plan.flows));
    await startFlows(start, certificates);
    throwIfAborted(aborted);
    undo.push(rotateRegularly(layout));
    return { stop };
  } catch (error) {
    await stop();
    throwIfAborted(aborted);
    throw error;
  }
}

function throwIfAborted(aborted: AbortSignal): void {
  if (aborted.aborted)
    throw new StackError('The start was interrupted; everything was stopped again.', 'start again when you like');
}

async function prepare(plan: StackPlan, report: Report): Promise<ServerCertificateFiles> {
  const { layout, ports } = plan;
  const done = report.step('preflight');
  checkMajor(layout.pgdata);
  const leftBehind = await clearStaleServer(layout.pgdata);
  if (leftBehind === 'server ended') report.warn('A database server left behind by a crash was ended.');
  if (leftBehind === 'stale file') report.warn('A stale postmaster.pid of a crash was removed.');
  checkDiskSpace(layout.root, !existsSync(layout.pgdata));
  const addresses = plan.addresses.flatMap((address) => [
    { address, port: ports.api, purpose: 'API and console' },
    { address, port: ports.portal, purpose: 'portal' },
    { address, port: ports.core, purpose: 'API of the core' },
    { address, port: ports.enrollment, purpose: 'enrollment' },
    { address, port: ports.streaming, purpose: 'streaming' },
  ]);
  const onLoopback = (port: number, purpose: string) => ({ address: '127.0.0.1', port, purpose });
  await checkPorts([
    ...addresses,
    onLoopback(ports.database, 'PostgreSQL'),
    onLoopback(ports.identity, 'identity provider'),
    onLoopback(ports.ldap, 'LDAP'),
    ...(plan.flows === undefined ? [] : [onLoopback(ports.flows, 'flow engine')]),
  ]);
  done('ports free, disk has room');

  const certified = report.step('certificates');
  keepSecrets(plan);
  writeAccessRules(hbaFile(layout), { from: '127.0.0.1/32', flowsFrom: '127.0.0.1/32' });
  const certificates = await ensureServerCertificate(layout.core, plan.serverNames, new Date());
  certified(`CA in ${certificates.ca}`);
  return certificates;
}

/** Never over secrets that another start has written since this one was planned. */
function keepSecrets({ layout, secretsToKeep, secretsRead }: StackPlan): void {
  if (secretsToKeep === undefined) return;
  const now = existsSync(layout.secrets) ? readFileSync(layout.secrets, 'utf8') : undefined;
  if (now !== secretsRead) throw new StackError(`Another start has just written ${layout.secrets}.`, 'start again');
  writeFileAtomically(layout.secrets, `${JSON.stringify(secretsToKeep, null, 2)}\n`);
}

async function startDatabase({ plan, guard, aborted, owned, events, report }: Start): Promise<void> {
  const { layout, ports } = plan;
  const logFile = join(layout.logs, 'database.log');
  const log = processLog(logFile);
  const done = report.step('database');
  const account = databaseAccount(layout.pgdata, join(plan.postgresBinaries, 'initdb'), layout.root);
  const cluster: Cluster = { pgdata: layout.pgdata, account, binaries: plan.postgresBinaries, guard, aborted };
  const isNew = await makeCluster(cluster, wantedState(plan.databasePasswords));
  if (!isNew) await renewWantedState(cluster, wantedState(plan.databasePasswords, ADDED_LATER));
  const serverOptions = { listen: '127.0.0.1', port: ports.database, hbaFile: hbaFile(layout), tuning: plan.tuning };
  const server = owned(
    supervise(
      {
        role: 'database',
        start: async () => {
          await clearStaleServer(layout.pgdata);
          return startPostmaster(cluster, serverOptions, log);
        },
        answers: async (child) => isReady(cluster, child),
        answersWithinMs: RECOVERY_MS,
        stopSignal: 'SIGINT',
        stopWithinMs: 60_000,
        lastWords: () => databaseComplaint(log.sinceOpened()),
      },
      events,
    ),
  );
  await started(server, logFile);
  const { scaleFactor, costLimit, maintenanceWorkMem } = plan.tuning;
  const tuning = `autovacuum ${scaleFactor} / ${costLimit} / ${maintenanceWorkMem}`;
  done(`PostgreSQL on 127.0.0.1:${ports.database}, ${isNew ? 'new' : 'existing'} data, ${tuning}`);
}

/**
 * Every hash takes 19 MiB. By itself glibc keeps that much for each thread that has ever made one, ten times more than is
 * in use; one arena keeps what is used at once. Large pages make up for what clearing it costs. Other C libraries ignore it.
 */
const MEMORY_OF_HASHES = { MALLOC_ARENA_MAX: '1', GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1' };

async function startIdentity(
  { plan, owned, events, report }: Start,
  certificates: ServerCertificateFiles,
): Promise<void> {
  const { identity, layout, ports } = plan;
  const done = report.step('identity');
  const spec = nodeProcess('identity', {
    layout,
    program: identity.program,
    environment: { ...MEMORY_OF_HASHES, ...identity.environment },
    asked: { pingUrl: `${identity.url}/api/v3/root/config/`, caFile: certificates.ca },
    stopWithinMs: 10_000,
  });
  await started(owned(supervise(spec, events)), join(layout.logs, 'identity.log'));
  done(`identity provider on 127.0.0.1:${ports.identity}, LDAP on 127.0.0.1:${ports.ldap}`);
}

/** V8 gives back what a flood of strangers took two minutes later: less of it this way, at no cost (bench/README.md). */
const MEMORY_OF_CORE = { flags: ['--max-semi-space-size=4'], environment: { MALLOC_ARENA_MAX: '1' } };

async function startCore({ plan, owned, events, report }: Start, certificates: ServerCertificateFiles): Promise<void> {
  const { core, layout, ports } = plan;
  const done = report.step('core');
  const spec = nodeProcess('core', {
    layout,
    program: core.program,
    flags: MEMORY_OF_CORE.flags,
    environment: { ...MEMORY_OF_CORE.environment, ...core.environment },
    asked: { tlsPort: ports.enrollment, caFile: certificates.ca },
    stopWithinMs: 10_000,
  });
  await started(owned(supervise(spec, events)), join(layout.logs, 'core.log'));
  const where = plan.addresses.map(urlHost).join(' and ');
  done(`API on port ${ports.core}, enrollment on ${ports.enrollment}, streaming on ${ports.streaming}, at ${where}`);
}

async function startManagement(
  { plan, owned, events, report }: Start,
  certificates: ServerCertificateFiles,
): Promise<ManagementProcess> {
  const done = report.step('management');
  const spec = managementProcess({
    layout: plan.layout,
    program: plan.managementProgram,
    environment: plan.managementEnvironment(certificates),
    asked: { pingUrl: `${plan.apiUrl}/api/ping`, caFile: certificates.ca },
  });
  await started(owned(supervise(spec, events)), join(plan.layout.logs, 'management.log'));
  const listen = plan.listen === undefined ? '' : `, and https://${urlHost(plan.listen)}:${plan.ports.api}`;
  done(
    isWildcardAddress(plan.listen ?? '')
      ? `${plan.apiUrl}, and every address of this machine`
      : `${plan.apiUrl}${listen}`,
  );
  return spec;
}

/** Its certificate comes when management has one; the engine takes it up by itself. */
function giveToFlows({ plan, report }: Start, { certificate }: FlowsPlan): () => Promise<void> {
  makeFlowsDirectories(plan.layout, certificate);
  const stop = supplyFlows({ core: plan.layout.core, directory: certificate, mode: 0o600 }, (message) =>
    report.warn(`The flow engine has no certificate: ${message}`),
  );
  return async () => stop();
}

async function startFlows({ plan, owned, events, report }: Start, { ca }: ServerCertificateFiles): Promise<void> {
  const { flows, layout } = plan;
  if (flows === undefined) return;
  const done = report.step('flows');
  await started(owned(supervise(flowsProcess(flows, layout, ca), events)), join(layout.logs, 'flows.log'));
  done(`Node-RED at ${flows.url}`);
}

/** Waits for the first measurement of every health module, and says which of them needs attention. */
async function measureHealth({ measured }: ManagementProcess, { report, aborted }: Start): Promise<void> {
  const done = report.step('health');
  const giveUp = new AbortController();
  const late = delay(MEASURED_WITHIN_MS, undefined, { signal: AbortSignal.any([aborted, giveUp.signal]) });
  const modules = await Promise.race([measured, late.catch(() => undefined)]);
  giveUp.abort();
  if (modules === undefined) {
    throwIfAborted(aborted);
    throw new StackError(
      `The health modules were not measured within ${MEASURED_WITHIN_MS / 1000} s.`,
      'see management.log in the logs of the data directory',
    );
  }
  const bad = modules.filter(({ status }) => status === 'warning' || status === 'critical');
  const attention =
    bad.length === 0 ? 'none needs attention' : `${bad.length} ${bad.length === 1 ? 'needs' : 'need'} attention`;
  const told = modules.find(({ module, status }) => module === 'alerts' && status === 'ok');
  done(`${modules.length} modules measured, ${attention}${told === undefined ? '' : `. ${told.message.slice(0, -1)}`}`);
  for (const { module, status, message } of bad) report.warn(`${module} is ${status}: ${message}`);
}

async function started(process: SupervisedProcess, logFile: string): Promise<void> {
  try {
    await process.start();
  } catch (error) {
    if (!(error instanceof EarlyEnd)) throw error;
    throw explainEarlyEnd(error, logFile);
  }
}

function eventsFor(guard: Guard, roster: Roster, report: Report): ProcessEvents {
  /** A full disk must not end the supervisor: the list is then behind until the next change. */
  function keepList(change: () => void): void {
    try {
      change();
    } catch (error) {
      report.warn(`The list of processes could not be written: ${messageOf(error)}`);
    }
  }

  return {
    started(role, pid, signal) {
      guard.own(pid, signal);
      keepList(() => roster.add(role, pid));
      report.event('process.started', { process: role, pid });
    },
    ended(role, pid) {
      guard.free(pid);
      keepList(() => roster.remove(role));
      report.event('process.ended', { process: role, pid });
    },
    died(role, how, words, pauseMs) {
      report.event('process.died', { process: role, how, words, restart_in_ms: pauseMs });
      report.warn(`${role} ended ${how}${words === undefined ? '' : ` (${words})`}; restart in ${pauseMs / 1000} s`);
    },
    restarted(role) {
      report.event('process.restarted', { process: role });
      report.warn(`${role} runs again`);
    },
  };
}

function rotateRegularly(layout: Layout): () => Promise<void> {
  const timer = setInterval(() => {
    try {
      rotateLogs(layout.logs);
    } catch {
      // A full disk: the logs stay as they are, the next minute tries again.
    }
  }, ROTATE_EVERY_MS);
  timer.unref();
  return async () => clearInterval(timer);
}

function writeStackFile(
  plan: StackPlan,
  certificates: ServerCertificateFiles,
  pids: { role: string; pid: number }[],
): void {
  const { apiCertificate } = plan.core;
  const made = existsSync(apiCertificate.file) ? { api_certificate: apiCertificate } : {};
  const content = {
    ...plan.stackFile,
    ...givenSince(plan.layout, pids),
    ca_certificate: certificates.ca,
    ...made,
    pids,
  };
  writeFileAtomically(plan.layout.stack, `${JSON.stringify(content, null, 2)}\n`);
}

/** Of the file of this very run: reset-password.sh writes the new password of webadmin into it. */
function givenSince(layout: Layout, pids: { role: string; pid: number }[]): { webadmin?: unknown } {
  try {
    const written = JSON.parse(readFileSync(layout.stack, 'utf8')) as { webadmin?: unknown; pids: typeof pids };
    const run = (list: typeof pids): number | undefined => list.find(({ role }) => role === 'supervisor')?.pid;
    return run(written.pids) === run(pids) ? { webadmin: written.webadmin } : {};
  } catch {
    return {};
  }
}
