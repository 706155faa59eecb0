// The embedded core put together: CA, certificates, revocations, the stream, the HTTP ports. Everything but what a process is made
// of: adapters, the clock and the log are handed in.

import { join } from 'node:path';
import { messageOf } from '@holdfast/kit/app-error';
import type { Schedules } from '@holdfast/kit/cron';
import { LDAP_SERVICE_ACCOUNT } from '@holdfast/kit/distinguished-name';
import type { Log } from '@holdfast/kit/log';
import { CHANNEL_PREFIX } from '@holdfast/kit/names';
import { onceADay } from '@holdfast/kit/retry';
import { openAuthority } from '@holdfast/pki/authority';
import { certificateBundle } from '@holdfast/pki/pkcs12';
import { ensureServerCertificate } from '@holdfast/pki/server-certificate';
import { AdminGrants } from './admin/admin-grants.ts';
import { API_IDENTITY, type ApiCertificate, ensureApiCertificate } from './admin/api-certificate.ts';
import { createAdminApi } from './admin/app.ts';
import { OwnProcess } from './admin/own-process.ts';
import { retentionFiles } from './admin/retention-files.ts';
import { readNodeId } from './admin/server.ts';
import { usersFile } from './admin/users-file.ts';
import { type CorePortNumbers, type CorePorts, createCorePorts } from './core-ports.ts';
import { createStoredStream } from './core-stream.ts';
import { createEnrollmentApi } from './enrollment/app.ts';
import { EnrollmentAttempts } from './enrollment/events.ts';
import { Spool } from './files/spool.ts';
import { membershipsOf, PeopleGroups } from './groups/people-groups.ts';
import { htmlPage } from './http/answers.ts';
import { callerOf } from './http/route.ts';
import { readMissionTokenKey } from './missions/credentials.ts';
import type { CertificateStore, CoreConnection, CoreDirectory, CoreFetch, Revocations } from './model/parts.ts';
import { InsertLatencies } from './retention/pacer.ts';
import { retentionLog } from './retention/retention-log.ts';
import { RetentionService } from './retention/retention-service.ts';
import { KeptRevocations, ListUnwritten } from './revocations.ts';
import { certificateLists, certificateStore, type RunSql } from './store/certificates.ts';
import { activeGroups, groupStore } from './store/groups.ts';
import { clientEndpoints, coreDatabaseFacts } from './store/presence.ts';
import { resourceStore, resourceWriter } from './store/resources.ts';
import { eventTable, revokedMark } from './store/tables.ts';
import { createLiveConnections } from './tls/connections.ts';

export interface CoreOptions {
  /** {data_dir}: certificates, users file, retention files. */
  dataDirectory: string;
  addresses: readonly string[];
  ports: CorePortNumbers;
  /** Names and addresses in the server certificate. */
  serverNames: readonly string[];
  /** SERVER_ADDRESS. */
  hostname: string;
  /** Groups that give a right in Holdfast: no channels, whatever they are called. */
  roleGroups: readonly string[];
  validityDays: number;
  /** The database `cot`, migrated. */
  run: RunSql;
  /** The same, on connections of its own that have minutes: for files. */
  runLong: RunSql;
  /** The same, on connections of requests for events, which give up waiting for a lock early. */
  runEvents: RunSql;
  /** The same, on connections that nothing but the stream's events wait for. They give up waiting for a lock early. */
  runArchive: RunSql;
  /** The same, on connections of the retention service. */
  runRetention: RunSql;
  schedules: Pick<Schedules, 'next'>;
  /** In which the schedule of retention is meant. */
  timeZone: string;
  /** Of one file. Default: 400 MiB. */
  mostUploadBytes?: number;
  directory: CoreDirectory;
  /** Puts the address of a client in place of a trusted proxy's; for 8446, which alone may stand behind one. */
  behindProxies: (fetch: CoreFetch) => CoreFetch;
  log: Log;
  now: () => Date;
  /** Milliseconds that never go back. */
  steadyMs: () => number;
}

export interface Core {
  /** On every address of both ports, or on none. */
  listen(): Promise<void>;
  /** To be called every half minute: what is due once a day, what was revoked by hand, a revoked `svc_api`. Never rejects. */
  look(): Promise<void>;
  /** To be called every second: rights of the admin API that management has asked for. Never rejects. */
  lookAtGrants(): Promise<void>;
  close(graceMs: number): Promise<void>;
}

/** As a release has it. */
const MOST_UPLOAD_BYTES = 400 * 1024 * 1024;
const RENEWAL_FAILED = 'certificate.renewal_failed';

/**
 * Brings certificates, list and `svc_api` up to date, then is ready to listen. Rejects with a StackError that says what to
 * do, or an AppError `unavailable` when the database is away.
 */
export async function createCore(options: CoreOptions): Promise<Core> {
  const { dataDirectory, serverNames, run, directory, log, now, steadyMs, behindProxies } = options;
  const files = await ensureServerCertificate(dataDirectory, serverNames, now());
  const warn = (text: string): void => log.warn('certificates.warning', { text });
  const authority = await openAuthority(dataDirectory, { validityDays: options.validityDays, warn });
  const users = usersFile(join(dataDirectory, 'UserAuthenticationFile.xml'), log);
  const certificates = certificateStore(run);
  const lists = certificateLists(certificates, now);
  const live = createLiveConnections();
  let ports: CorePorts | undefined;
  const revocations = new KeptRevocations({
    authority,
    certificates,
    tableMark: () => revokedMark(run),
    live,
    contextsAnew: () => ports?.contextsAnew(),
    log,
    now,
  });
  await refreshed(revocations, log);
  const apiCertificate = (): Promise<ApiCertificate> =>
    ensureApiCertificate({
      coreDirectory: dataDirectory,
      authority,
      certificates,
      users,
      isRevoked: (serial) => revocations.isRevoked(serial),
      now: now(),
    });
  let api = await apiCertificate();
  const grants = new AdminGrants({
    directory: join(dataDirectory, 'admin-grants'),
    authority,
    certificates,
    users,
    isRevoked: (serial) => revocations.isRevoked(serial),
    log,
    now,
  });
  await grants.look();

  const nodeId = readNodeId(dataDirectory);
  const memberships = membershipsOf(CHANNEL_PREFIX, options.roleGroups);
  const known = {
    people: new PeopleGroups({ directory, memberships, now }),
    groups: groupStore(run),
    activeGroups: activeGroups(run),
  };
  const runEvents = eventTable(options.runEvents, steadyMs);
  const latencies = new InsertLatencies(steadyMs);
  const { stream, archive, missions, ...stored } = createStoredStream({
    ...known,
    dataDirectory,
    nodeId,
    hostname: options.hostname,
    tokenKey: readMissionTokenKey(dataDirectory),
    run,
    runEvents,
    runArchive: options.runArchive,
    timed: (writer) => latencies.timed(writer),
    log,
    now,
  });
  const retention = retentionFiles(dataDirectory);
  const retentionService = new RetentionService({
    retention,
    run: options.runRetention,
    missions,
    latencies,
    schedules: options.schedules,
    timeZone: options.timeZone,
    log,
    file: retentionLog(dataDirectory, now),
    now,
    steadyMs,
  });
  const attempts = new EnrollmentAttempts(now);
  const admin = createAdminApi({
    ...known,
    enrollmentAttempts: attempts,
    nodeId,
    hostname: options.hostname,
    publicPort: options.ports.api,
    certificates,
    lists,
    revocations,
    directory,
    groupPrefix: CHANNEL_PREFIX,
    knownAccount: LDAP_SERVICE_ACCOUNT,
    endpoints: clientEndpoints(run),
    subscriptions: stream,
    regroup: (usernames, clientUid) => stream.regroup(usernames, clientUid),
    toEverybody: (event) => stream.toEverybody(event),
    streamCounts: () => stream.counts(),
    archiveCounts: () => archive.counts(),
    retention,
    retentionRuns: retentionService,
    missions,
    database: coreDatabaseFacts(run, runEvents),
    ownProcess: new OwnProcess(dataDirectory),
    resources: resourceStore(run, options.runLong),
    resourceWriter: resourceWriter(options.runLong),
    spool: new Spool({
      directory: join(dataDirectory, 'uploads'),
      mostBytes: options.mostUploadBytes ?? MOST_UPLOAD_BYTES,
      steadyMs,
    }),
    now,
    log,
  });
  const enrollment = createEnrollmentApi({
    directory,
    authority,
    certificates: { add: (...given) => added(certificates.add(...given)) },
    bundle: certificateBundle,
    adminApi: admin,
    attempts,
    log,
    now,
    steadyMs,
  });

  async function added(row: ReturnType<CertificateStore['add']>): ReturnType<CertificateStore['add']> {
    const record = await row;
    lists.clear();
    return record;
  }

  function byCertificate(request: Request, connection: CoreConnection): Response | Promise<Response> {
    const { certificate } = connection;
    if (certificate === undefined) return htmlPage(401, 'Unauthorized', 'A client certificate is needed here.');
    return admin(request, connection, callerOf(certificate, users));
  }

  const opened = createCorePorts({
    files,
    addresses: options.addresses,
    ports: options.ports,
    api: byCertificate,
    enrollment: behindProxies(enrollment),
    stream: (arrival) => stream.accepted(arrival),
    revocations,
    live,
    log,
    now,
  });
  ports = opened;

  async function renewCertificates(): Promise<void> {
    const { changed, certificate } = await ensureServerCertificate(dataDirectory, serverNames, now());
    if (changed) {
      opened.renew();
      log.info('certificate.renewed', { file: certificate });
    }
    api = await apiCertificate();
  }

  /** Management has no other way in: it must not wait for the day to be over. */
  async function keepApiOpen(): Promise<void> {
    const isRevoked = revocations.isRevoked(api.serial);
    if (!isRevoked && users.roleOf({ hash: api.hash, commonName: '' }) === 'ROLE_ADMIN') return;
    try {
      api = await apiCertificate();
      if (isRevoked) log.warn('certificate.replaced', { file: api.file, reason: 'it was revoked' });
      else
        log.warn('certificate.right_given_back', {
          name: API_IDENTITY,
          reason: 'its entry was gone from the users file',
        });
    } catch (error) {
      log.error(RENEWAL_FAILED, { error: messageOf(error) });
    }
  }

  async function lookOnce(): Promise<void> {
    await revocations.look();
    await keepApiOpen();
    await renewDaily();
  }

  const renewDaily = onceADay(renewCertificates, RENEWAL_FAILED, now, log);
  /** One at a time: two would make `svc_api` anew, each its own. */
  let looking: Promise<void> | undefined;
  return {
    async listen() {
      await opened.listen();
      await retentionService.start();
    },
    lookAtGrants: () => grants.look(),
    look: () => (looking ??= lookOnce().finally(() => (looking = undefined))),
    async close(graceMs) {
      const closed = opened.close(graceMs);
      await Promise.all([stored.close(graceMs), retentionService.close(graceMs)]);
      await closed;
    },
  };
}

/** Rule `startWithoutList`: a full disk keeps nobody from the core; who is refused is known, and the list is tried again. */
async function refreshed(revocations: Pick<Revocations, 'refresh'>, log: Log): Promise<void> {
  try {
    await revocations.refresh();
  } catch (error) {
    if (!(error instanceof ListUnwritten)) throw error;
    log.error('crl.not_written', { error: error.message });
  }
}
