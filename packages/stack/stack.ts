// Starts the embedded stack step by step and keeps it running. Stops the steps in reverse order.

import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { BackupPlan } from '@holdfast/backup/handover';
import { isWildcardAddress, urlHost } from '@holdfast/kit/addresses';
import { messageOf, StackError } from '@holdfast/kit/app-error';
import { counted } from '@holdfast/kit/format';
import { MINUTE_MS } from '@holdfast/kit/time';
import { ensureServerCertificate, type ServerCertificateFiles } from '@holdfast/pki/server-certificate';
import { type ClusterNodePlan, type ClusterPlan, coreProcess, natsProcess } from './cluster.ts';
import { databaseAccount } from './database/account.ts';
import { clearStaleServer, type Cluster, makeCluster, renewWantedState } from './database/cluster.ts';
import { hbaFile, isReady, startPostmaster, writeAccessRules } from './database/postmaster.ts';
import { ADDED_LATER, wantedState } from './database/roles.ts';
import { supplyFlows } from './flows/certificate.ts';
import { type FlowsPlan, flowsProcess } from './flows/process.ts';
import { keepSecrets, type StackPlan, writeStackFile } from './plan.ts';
import { preflight } from './preflight.ts';
import type { Guard } from './process/guard.ts';
import { makeDirectories, makeFlowsDirectories } from './process/layout.ts';
import { lockDirectory, Roster } from './process/ownership.ts';
import { databaseComplaint, processLog, rotateRegularly } from './process/process-log.ts';
import type { Report } from './process/report.ts';
import {
  EarlyEnd,
  explainEarlyEnd,
  type ManagementProcess,
  managementProcess,
  nodeProcess,
  type ProcessEvents,
  type ProcessSpec,
  supervise,
  type SupervisedProcess,
} from './process/supervised-process.ts';

/** What the stack needs from other packages. */
export interface Services {
  /**
   * Writes the core's retention files from the settings, before the core starts. Resolves with a
   * summary.
   */
  prepareRetention(): Promise<string>;
  /** Migrates the Holdfast database. Resolves with the number of migrations applied now. */
  prepareState(): Promise<number>;
}

export interface RunningStack {
  /** Stops every process in order and releases the lock. */
  stop(): Promise<void>;
}

/** Longer than any health module's time limit. */
const MEASURED_WITHIN_MS = 60_000;
/** Replaying the log of a large database after a crash may take this long. */
const RECOVERY_MS = 30 * MINUTE_MS;

/**
 * Every password hash takes 19 MiB. By default glibc keeps that much per thread, ten times what is
 * in use. One arena keeps only what is used at once. Huge pages make up for the cost of clearing
 * it. Other C libraries ignore this.
 */
const MEMORY_OF_HASHES = { MALLOC_ARENA_MAX: '1', GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1' };
/**
 * Starts the stack of a plan. Resolves when every process answers. Calls `lost` if another process
 * takes the lock.
 */
export async function startStack(
  plan: StackPlan,
  services: Services,
  report: Report,
  aborted: AbortSignal,
  lost: () => void,
): Promise<RunningStack> {
  const start = new StackStart(plan, report, aborted);
  try {
    await start.run(services, lost);
    return start;
  } catch (error) {
    await start.stop();
    throwIfAborted(aborted);
    throw error;
  }
}

class StackStart implements RunningStack {
  readonly #plan: StackPlan;
  readonly #report: Report;
  readonly #aborted: AbortSignal;
  /** Stops the started parts; run from last to first. */
  readonly #undo: (() => Promise<void>)[] = [];
  #starting: SupervisedProcess | undefined;

  constructor(plan: StackPlan, report: Report, aborted: AbortSignal) {
    this.#plan = plan;
    this.#report = report;
    this.#aborted = aborted;
    aborted.addEventListener('abort', () => void this.#starting?.stop());
  }

  async stop(): Promise<void> {
    for (let step = this.#undo.pop(); step !== undefined; step = this.#undo.pop())
      await step().catch((error: unknown) => this.#report.warn(`While stopping: ${messageOf(error)}`));
  }

  async run(services: Services, lost: () => void): Promise<void> {
    const { layout, cluster, flows, backup, guardScript } = this.#plan;
    makeDirectories(layout);
    const guard = await lockDirectory(guardScript, layout, this.#report, lost, this.#aborted);
    this.#undo.push(() => guard.release());
    await this.#step(() => preflight(this.#plan, this.#report));
    const certificates = await this.#step(() => this.#prepareFiles());
    const roster = new Roster(layout, (pids) => writeStackFile(this.#plan, certificates, pids));
    roster.add('supervisor', process.pid);
    this.#undo.push(async () => roster.clear());
    const events = this.#eventsFor(guard, roster);
    await this.#step(() => this.#prepareRetention(services));
    await this.#step(() => this.#startDatabase(guard, events));
    await this.#step(() => this.#prepareState(services));
    await this.#step(() => this.#startIdentity(events, certificates));
    if (cluster !== undefined) await this.#step(() => this.#startNats(cluster, events, certificates));
    await this.#step(() => this.#startCore(events, certificates));
    for (const node of cluster?.nodes.slice(1) ?? [])
      await this.#step(() => this.#startNode(node, events, certificates));
    if (this.#plan.isScratch === true) return throwIfAborted(this.#aborted);
    if (backup !== undefined) await this.#step(() => this.#startBackup(backup, events, certificates.ca));
    const management = await this.#step(() => this.#startManagement(events, certificates));
    await this.#step(() => this.#measureHealth(management));
    if (flows !== undefined) await this.#step(() => this.#startFlows(flows, events, certificates));
    this.#undo.push(rotateRegularly(layout.logs));
    throwIfAborted(this.#aborted);
  }

  /** Throws instead of starting a step once the start was interrupted. */
  async #step<T>(work: () => Promise<T>): Promise<T> {
    throwIfAborted(this.#aborted);
    return work();
  }

  async #prepareFiles(): Promise<ServerCertificateFiles> {
    const { layout, serverNames } = this.#plan;
    const done = this.#report.step('certificates');
    keepSecrets(this.#plan);
    writeAccessRules(hbaFile(layout), { from: '127.0.0.1/32', flowsFrom: '127.0.0.1/32' });
    const certificates = await ensureServerCertificate(layout.core, serverNames, new Date());
    done(`CA in ${certificates.ca}`);
    return certificates;
  }

  async #prepareRetention(services: Services): Promise<void> {
    const done = this.#report.step('retention');
    done(await services.prepareRetention());
  }

  async #prepareState(services: Services): Promise<void> {
    const done = this.#report.step('tables');
    const applied = await services.prepareState();
    done(applied === 0 ? 'up to date' : `${counted(applied, 'migration')} applied`);
  }

  async #startDatabase(guard: Guard, events: ProcessEvents): Promise<void> {
    const { layout, ports, postgresBinaries: binaries, databasePasswords, tuning } = this.#plan;
    const log = processLog(join(layout.logs, 'database.log'));
    const done = this.#report.step('database');
    const account = databaseAccount(layout.pgdata, join(binaries, 'initdb'), layout.root);
    const cluster: Cluster = { pgdata: layout.pgdata, account, binaries, guard, aborted: this.#aborted };
    const isNew = await makeCluster(cluster, wantedState(databasePasswords));
    if (!isNew) await renewWantedState(cluster, wantedState(databasePasswords, ADDED_LATER));
    const serverOptions = { listen: '127.0.0.1', port: ports.database, hbaFile: hbaFile(layout), tuning };
    await this.#started(events, {
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
    });
    const { scaleFactor, costLimit, maintenanceWorkMem } = tuning;
    const tuned = `autovacuum ${scaleFactor} / ${costLimit} / ${maintenanceWorkMem}`;
    done(`PostgreSQL on 127.0.0.1:${ports.database}, ${isNew ? 'new' : 'existing'} data, ${tuned}`);
  }

  async #startIdentity(events: ProcessEvents, { ca: caFile }: ServerCertificateFiles): Promise<void> {
    const { identity, layout, ports } = this.#plan;
    const done = this.#report.step('identity');
    const spec = nodeProcess('identity', {
      layout,
      program: identity.program,
      environment: { ...MEMORY_OF_HASHES, ...identity.environment },
      requested: { pingUrl: `${identity.url}/api/v3/root/config/`, caFile },
      stopWithinMs: 10_000,
    });
    await this.#started(events, spec);
    done(`identity provider on 127.0.0.1:${ports.identity}, LDAP on 127.0.0.1:${ports.ldap}`);
  }

  async #startNats(cluster: ClusterPlan, events: ProcessEvents, certificates: ServerCertificateFiles): Promise<void> {
    const done = this.#report.step('nats');
    await this.#started(events, natsProcess(cluster, this.#plan.layout, certificates));
    done(`messages between ${cluster.nodes.length} core nodes on 127.0.0.1:${cluster.nats.port}`);
  }

  /** Of a cluster, after the first core has brought the database up to date. */
  async #startNode(
    { role, ports, environment }: ClusterNodePlan,
    events: ProcessEvents,
    { ca: caFile }: ServerCertificateFiles,
  ): Promise<void> {
    const done = this.#report.step(role);
    await this.#started(events, coreProcess(this.#plan, { role, ports, environment }, caFile));
    done(`API on port ${ports.core}, enrollment on ${ports.enrollment}, streaming on ${ports.streaming}`);
  }

  async #startCore(events: ProcessEvents, { ca: caFile }: ServerCertificateFiles): Promise<void> {
    const { core, ports, addresses } = this.#plan;
    const done = this.#report.step('core');
    await this.#started(
      events,
      coreProcess(this.#plan, { role: 'core', ports, environment: core.environment }, caFile),
    );
    const where = addresses.map(urlHost).join(' and ');
    done(`API on port ${ports.core}, enrollment on ${ports.enrollment}, streaming on ${ports.streaming}, at ${where}`);
  }

  /** Before management, whose health checks ask it. */
  async #startBackup(backup: BackupPlan, events: ProcessEvents, caFile: string): Promise<void> {
    const { layout } = this.#plan;
    const done = this.#report.step('backup');
    const requested = { pingUrl: `${backup.url}/ping`, caFile };
    await this.#started(events, nodeProcess('backup', { ...backup, layout, requested, stopWithinMs: 20_000 }));
    done(`backup service at ${backup.url}`);
  }

  async #startManagement(events: ProcessEvents, certificates: ServerCertificateFiles): Promise<ManagementProcess> {
    const { layout, managementProgram: program, apiUrl, listen, ports } = this.#plan;
    const done = this.#report.step('management');
    const spec = managementProcess({
      layout,
      program,
      environment: this.#plan.managementEnvironment(certificates),
      requested: { pingUrl: `${apiUrl}/api/ping`, caFile: certificates.ca },
    });
    await this.#started(events, spec);
    const besides = listen === undefined ? '' : `, and https://${urlHost(listen)}:${ports.api}`;
    done(isWildcardAddress(listen ?? '') ? `${apiUrl}, and every address of this machine` : `${apiUrl}${besides}`);
    return spec;
  }

  /** The engine loads its certificate by itself, once management has issued one. */
  async #startFlows(flows: FlowsPlan, events: ProcessEvents, { ca }: ServerCertificateFiles): Promise<void> {
    const { layout } = this.#plan;
    makeFlowsDirectories(layout, flows.certificate);
    const stop = supplyFlows({ core: layout.core, directory: flows.certificate, mode: 0o600 }, (message) =>
      this.#report.warn(`Couldn't give the flow engine its certificate: ${message}`),
    );
    this.#undo.push(async () => stop());
    const done = this.#report.step('flows');
    await this.#started(events, flowsProcess(flows, layout, ca));
    done(`Node-RED at ${flows.url}`);
  }

  /** Waits until every health module was measured, and reports warnings. */
  async #measureHealth({ measured }: ManagementProcess): Promise<void> {
    const done = this.#report.step('health');
    const giveUp = new AbortController();
    const late = delay(MEASURED_WITHIN_MS, undefined, { signal: AbortSignal.any([this.#aborted, giveUp.signal]) });
    const modules = await Promise.race([measured, late.catch(() => undefined)]);
    giveUp.abort();
    if (modules === undefined) {
      throwIfAborted(this.#aborted);
      throw new StackError(
        `The health checks did not finish within ${MEASURED_WITHIN_MS / 1000} s.`,
        `read ${join(this.#plan.layout.logs, 'management.log')}`,
      );
    }
    const bad = modules.filter(({ status }) => status === 'warning' || status === 'critical');
    const attention = bad.length === 0 ? 'no warnings' : counted(bad.length, 'warning');
    const reported = modules.find(({ module, status }) => module === 'alerts' && status === 'ok');
    done(
      `${modules.length} checks finished, ${attention}${reported === undefined ? '' : `. ${reported.message.slice(0, -1)}`}`,
    );
    for (const { module, status, message } of bad) this.#report.warn(`${module} is ${status}: ${message}`);
  }

  /** Starts a process. Stops it with the others, or at once if the start is interrupted. */
  async #started(events: ProcessEvents, spec: ProcessSpec): Promise<void> {
    throwIfAborted(this.#aborted);
    const supervised = supervise(spec, events);
    this.#starting = supervised;
    this.#undo.push(() => supervised.stop());
    try {
      await supervised.start();
    } catch (error) {
      if (!(error instanceof EarlyEnd)) throw error;
      throw explainEarlyEnd(error, join(this.#plan.layout.logs, `${spec.role}.log`));
    }
  }

  #eventsFor(guard: Guard, roster: Roster): ProcessEvents {
    const report = this.#report;
    /**
     * A full disk must not stop the supervisor: the list is then outdated until the next change.
     */
    const keepList = (change: () => void): void => {
      try {
        change();
      } catch (error) {
        report.warn(`Couldn't write the list of processes: ${messageOf(error)}`);
      }
    };

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
        report.warn(
          `${role} exited ${how}${words === undefined ? '' : ` (${words})`}. Restarting in ${pauseMs / 1000} s`,
        );
      },
      restarted(role) {
        report.event('process.restarted', { process: role });
        report.warn(`${role} is running again`);
      },
    };
  }
}

function throwIfAborted(aborted: AbortSignal): void {
  if (aborted.aborted)
    throw new StackError('The start was interrupted. Everything was stopped.', 'start the stack again');
}
