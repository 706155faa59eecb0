// Runs the embedded core as a process, until SIGTERM or SIGINT or until its supervisor is gone.

import 'reflect-metadata';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type ClusterOptions,
  CORE_DATABASE_MIGRATED,
  CORE_MIGRATIONS,
  type CoreDirectory,
  createCore,
  sessionName,
  workingNodes,
} from '@holdfast/core';
import { type CoreHandover, takeCoreHandover } from '@holdfast/core/handover';
import { AppError, messageOf, StackError } from '@holdfast/kit/app-error';
import { cronSchedules } from '@holdfast/kit/cron';
import { LDAP_SERVICE_ACCOUNT } from '@holdfast/kit/directory';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { type JsonLog, jsonLog } from '@holdfast/kit/log';
import { migrate } from '@holdfast/kit/migrate';
import { forgetPostgresVariables, withAwaitedDatabase, withDatabase } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import { LISTENING, runService, stopInOrder, tellSupervisor } from '@holdfast/kit/service';
import { behindProxies, trustedProxies } from '../../shared/runtime/client-address.ts';
import { LdapDirectory } from '../../shared/sign-in/ldap/directory.ts';
import { clusterOf, firstNode, natsCertificate, onlyProcess } from './core-cluster.ts';
import { FLOWS_GRANTS } from './database/roles.ts';

const MIGRATED_WITHIN_MS = 60_000;
const FILE_WITHIN_MS = 300_000;
const ARCHIVE_WITHIN_MS = 15_000;
const RETENTION_WITHIN_MS = 30_000;
/** VACUUM FULL may lock an events table for minutes: a short limit tells a lock from an outage. */
const EVENTS_LOCK_MS = 500;
const ARCHIVE_LOCK_MS = 2_000;
const RETENTION_LOCK_MS = 10_000;
const DATABASE = { called: "the core's database", variable: 'its URL' };
const LOOK_EVERY_MS = 30_000;
const GRANTS_EVERY_MS = 1_000;
const GRACE_MS = 4_000;
const VALIDITY_DAYS = 365;

/** Returns at once; the core runs until it is stopped. */
export function runCore(environment: NodeJS.ProcessEnv): void {
  const handover = takeCoreHandover(environment);
  const log = jsonLog({ role: handover.cluster?.node ?? 'core' });
  runService(log, 'core', () => serve(environment, handover, log));
}

async function serve(environment: NodeJS.ProcessEnv, handover: CoreHandover, log: JsonLog): Promise<void> {
  forgetPostgresVariables(environment);
  const url = new Secret(handover.databaseUrl);
  if ((handover.cluster?.index ?? 0) === 0) await migrated(url, log);
  else await firstNode(handover, (use) => withDatabase(url, 'core-start', MIGRATED_WITHIN_MS, use), log);
  const cluster = await clusterOf(handover, log);
  const options = coreOptions(handover, cluster, url, log);
  const core = await createCore(options);
  if (cluster !== undefined) await onlyProcess(cluster, workingNodes(options.run), log);
  const certifyNats = await natsCertificate(handover, log);
  await core.listen();
  tellSupervisor(LISTENING);
  const { addresses, apiPort, enrollmentPort, streamingPort } = handover;
  log.info('core.listening', {
    addresses,
    api_port: apiPort,
    enrollment_port: enrollmentPort,
    streaming_port: streamingPort,
  });
  const looking = [
    setInterval(() => void core.look(), LOOK_EVERY_MS),
    setInterval(() => void core.lookAtGrants(), GRANTS_EVERY_MS),
    setInterval(() => void certifyNats(), LOOK_EVERY_MS),
  ];
  stopInOrder(log, 'core', () => {
    for (const timer of looking) clearInterval(timer);
    return Promise.race([core.close(GRACE_MS), delay(2 * GRACE_MS)]);
  });
}

function coreOptions(
  handover: CoreHandover,
  cluster: ClusterOptions | undefined,
  url: Secret,
  log: JsonLog,
): Parameters<typeof createCore>[0] {
  const database = (name: string, limits: { withinMs?: number; lockTimeoutMs?: number } = {}) =>
    keptDatabase(url, { ...DATABASE, name, ...limits });
  return {
    dataDirectory: handover.directory,
    addresses: handover.addresses,
    ports: { api: handover.apiPort, enrollment: handover.enrollmentPort, streaming: handover.streamingPort },
    serverNames: handover.serverNames,
    hostname: handover.serverAddress,
    roleGroups: handover.roleGroups,
    thinning: handover.thinning,
    validityDays: VALIDITY_DAYS,
    run: database(cluster === undefined ? 'core' : sessionName(cluster)),
    runEvents: database('core-events', { lockTimeoutMs: EVENTS_LOCK_MS }),
    runArchive: database('core-archive', { withinMs: ARCHIVE_WITHIN_MS, lockTimeoutMs: ARCHIVE_LOCK_MS }),
    runLong: database('core-files', { withinMs: FILE_WITHIN_MS }),
    runRetention: database('core-retention', { withinMs: RETENTION_WITHIN_MS, lockTimeoutMs: RETENTION_LOCK_MS }),
    schedules: cronSchedules,
    timeZone: new Intl.DateTimeFormat().resolvedOptions().timeZone,
    directory: directoryOf(handover, log),
    directoryPlace: { url: handover.ldap.url, base: handover.ldap.bases.core },
    isTrustedProxy: trustedProxies(handover.trustedProxies),
    behindProxies: (fetch) => behindProxies(fetch, handover.trustedProxies),
    log,
    now: () => new Date(),
    steadyMs: () => performance.now(),
    ...(cluster && { cluster }),
  };
}

/** Rejects with what waiting does not help with. */
async function migrated(url: Secret, log: JsonLog): Promise<void> {
  try {
    await withAwaitedDatabase(log, url, 'core-start', MIGRATED_WITHIN_MS, async (sql) => {
      await migrate(sql, CORE_MIGRATIONS, CORE_DATABASE_MIGRATED);
      await sql.unsafe(FLOWS_GRANTS);
    });
  } catch (error) {
    if (error instanceof AppError) throw error;
    const { host, pathname } = new URL(url.reveal());
    throw new StackError(
      `Couldn't update the core's database (${host}${pathname}): ${messageOf(error)}.`,
      'read database.log next to core.log. The core retries by itself while the stack is running',
      error,
    );
  }
}

function directoryOf({ ldap, directory }: CoreHandover, log: JsonLog): CoreDirectory {
  if (ldap.bindPassword === undefined) return unreadableDirectory();
  return new LdapDirectory({
    url: ldap.url,
    coreBase: ldap.bases.core,
    webBase: ldap.bases.web,
    serviceAccount: { username: LDAP_SERVICE_ACCOUNT, password: new Secret(ldap.bindPassword) },
    tlsCaFile: join(directory, 'certs/files/ca.pem'),
    log,
  });
}

function unreadableDirectory(): CoreDirectory {
  const text = "Couldn't read the directory: LDAP_BIND_PASSWORD is not set. Remedy: set LDAP_BIND_PASSWORD.";
  const refuse = (): Promise<never> => Promise.reject(new AppError('unavailable', text));
  return { signIn: refuse, find: refuse, groups: refuse };
}
