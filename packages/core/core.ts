// Builds the embedded core: CA, certificates, revocations, stream and HTTP ports. Adapters, clock
// and log are injected.

import { basename, join } from 'node:path';
import type { ThinningRow } from '@holdfast/kit/core-wire';
import type { Schedules } from '@holdfast/kit/cron';
import { LDAP_SERVICE_ACCOUNT } from '@holdfast/kit/directory';
import { CHANNEL_PREFIX } from '@holdfast/kit/names';
import { certificateBundle } from '@holdfast/pki/pkcs12';
import { type AdminApi, createAdminApi } from './admin/app.ts';
import { OwnProcess } from './admin/options.ts';
import { retentionFiles } from './admin/retention-files.ts';
import type { SecurityOptions } from './admin/security.ts';
import { readNodeId } from './admin/server.ts';
import { ClusterNode, type ClusterOptions } from './cluster.ts';
import { CoreCertificates, type CoreCertificatesOptions } from './core-certificates.ts';
import { type CorePortNumbers, type CorePorts, createCorePorts } from './core-ports.ts';
import { createStoredStream, type StoredStream } from './core-stream.ts';
import { createEnrollmentApi } from './enrollment/app.ts';
import { EnrollmentAttempts } from './enrollment/events.ts';
import { Spool } from './files/spool.ts';
import { type GroupParts, membershipsOf, PeopleGroups } from './groups/own-groups.ts';
import { htmlPage } from './http/answers.ts';
import { callerOf } from './http/route.ts';
import { readMissionTokenKey } from './missions/credentials.ts';
import type { CoreDirectory, CoreFetch, RefusedConnection, Retention } from './model/parts.ts';
import type { StreamArrival } from './model/stream.ts';
import { DeviceProfiles } from './profiles/device-profiles.ts';
import { InsertLatencies } from './retention/pacer.ts';
import { retentionLog } from './retention/retention-log.ts';
import { RetentionService } from './retention/retention-service.ts';
import { emergenciesOf } from './services/stream-services.ts';
import type { RunSql } from './store/certificates.ts';
import { cotWriter } from './store/cot-events.ts';
import { activeGroups, groupStore, GroupVectors } from './store/groups.ts';
import { errorLogStore } from './store/error-logs.ts';
import { history } from './store/history.ts';
import { workingNodes } from './store/node-sessions.ts';
import { clientEndpoints, coreDatabaseFacts } from './store/presence.ts';
import { ProductFiles } from './store/products.ts';
import { profileStore } from './store/profiles.ts';
import { reportStore } from './store/reports.ts';
import { resourceStore, resourceWriter } from './store/resources.ts';
import { injectorStore, videoConnections } from './store/services.ts';
import { eventTable } from './store/tables.ts';
import { type ConnectionLimit, ownConnectionLimit } from './tls/connection-limit.ts';
import { readServerIdentity } from './tls/server-identity.ts';

export interface CoreOptions extends CoreCertificatesOptions {
  addresses: readonly string[];
  ports: CorePortNumbers;
  /** SERVER_ADDRESS. */
  hostname: string;
  /** STREAM_THINNING; default: off. */
  thinning?: readonly ThinningRow[] | 'auto';
  /** Groups that give a right in Holdfast: no channels, whatever they are called. */
  roleGroups: readonly string[];
  /** The same, on connections of its own that have minutes: for files. */
  runLong: RunSql;
  /** The same, on connections of requests for events, which give up waiting for a lock early. */
  runEvents: RunSql;
  /**
   * The same, on connections that nothing but the stream's events wait for. They give up waiting
   * for a lock early.
   */
  runArchive: RunSql;
  /** The same, on connections of the retention service. */
  runRetention: RunSql;
  schedules: Pick<Schedules, 'next'>;
  /** In which the schedule of retention is meant. */
  timeZone: string;
  /** Of one file. Default: 400 MiB. */
  maxUploadBytes?: number;
  directory: CoreDirectory;
  /** The LDAP server of the directory and its base, as shown to administrators. */
  directoryPlace: SecurityOptions['directoryPlace'];
  /** Who may report a client's address in a PROXY header; undefined: there is none. */
  isTrustedProxy?: ((address: string) => boolean) | undefined;
  /**
   * Puts the address of a client in place of a trusted proxy's; for 8446, which alone may stand
   * behind an HTTP proxy.
   */
  behindProxies: (fetch: CoreFetch) => CoreFetch;
  /** Milliseconds that never go back. */
  steadyMs: () => number;
  /** Undefined for a core of its own. */
  cluster?: ClusterOptions;
}

export interface Core {
  /** On every address of both ports, or on none. */
  listen(): Promise<void>;
  /**
   * To be called every half minute: what is due once a day, what was revoked by hand, a revoked
   * `svc_api`. Never rejects.
   */
  look(): Promise<void>;
  /**
   * To be called every second: rights of the admin API that management has asked for. Never
   * rejects.
   */
  lookAtGrants(): Promise<void>;
  close(graceMs: number): Promise<void>;
}

/** As a release has it. */
const MAX_UPLOAD_BYTES = 400 * 1024 * 1024;

/**
 * Brings certificates, list and `svc_api` up to date, then is ready to listen. Rejects with a
 * StackError that says what to do, or an AppError `unavailable` when the database is away.
 */
export async function createCore(options: CoreOptions): Promise<Core> {
  const { dataDirectory, run, directory, log, now, steadyMs } = options;
  const isFollower = (options.cluster?.index ?? 0) > 0;
  const certificates = await CoreCertificates.open({ ...options, isFollower, node: options.cluster?.node });
  const people: GroupParts = {
    people: new PeopleGroups({ directory, memberships: membershipsOf(CHANNEL_PREFIX, options.roleGroups), now }),
    groups: groupStore(run),
    activeGroups: activeGroups(run),
  };
  const [nodeId, missionKey] = [readNodeId(dataDirectory), readMissionTokenKey(dataDirectory)];
  const runEvents = eventTable(options.runEvents, steadyMs);
  const latencies = new InsertLatencies(steadyMs);
  const { revocations } = certificates;
  const limit = ownConnectionLimit();
  const known = { nodeId, people: people.people, revocations, working: workingNodes(run), maxClients: limit.streaming };
  const cluster = options.cluster && new ClusterNode({ ...options, ...options.cluster, ...known });
  const attempts = new EnrollmentAttempts(now);
  const stored = createStoredStream({
    ...people,
    ownDirectory: options.cluster?.directory ?? dataDirectory,
    cluster,
    nodeId,
    hostname: options.hostname,
    publicPort: options.ports.api,
    tokenKey: missionKey,
    run,
    runEvents,
    runArchive: options.runArchive,
    timed: (writer) => latencies.timed(writer),
    thinning: options.thinning ?? [],
    refused: (who) => attempts.addRefusedConnection(who),
    log,
    now,
  });
  stored.injectors.replace(await injectorStore(run).list());
  const retention = retentionFiles(dataDirectory);
  const retentionRuns = new RetentionService({
    retention,
    run: options.runRetention,
    missions: stored.missions,
    latencies,
    schedules: options.schedules,
    timeZone: options.timeZone,
    log,
    file: retentionLog(dataDirectory, now),
    now,
    steadyMs,
  });
  const parts = {
    limit,
    attempts,
    missionKey,
    certificates,
    people,
    cluster,
    nodeId,
    runEvents,
    stored,
    retention,
    retentionRuns,
  };
  const ports = portsOf(options, parts);
  certificates.serve(ports);
  return {
    async listen() {
      await ports.listen();
      const { stream, injectors, repeater } = stored;
      const readInjectors = (): ReturnType<ReturnType<typeof injectorStore>['list']> => injectorStore(run).list();
      cluster?.start({ stream, relay: stream.relay, injectors, repeater, retention, readInjectors });
      if (!isFollower) await retentionRuns.start();
    },
    lookAtGrants: () => certificates.lookAtGrants(),
    look: () => certificates.look(),
    async close(graceMs) {
      const closed = ports.close(graceMs);
      await Promise.all([stored.close(graceMs), retentionRuns.close(graceMs)]);
      await closed;
    },
  };
}

interface Parts {
  limit: ConnectionLimit;
  attempts: EnrollmentAttempts;
  certificates: CoreCertificates;
  people: GroupParts;
  cluster: ClusterNode | undefined;
  /** Of `readMissionTokenKey`: the same on every node. */
  missionKey: Uint8Array;
  nodeId: string;
  /** Of `eventTable`. */
  runEvents: RunSql;
  stored: StoredStream;
  retention: Retention;
  retentionRuns: RetentionService;
}

/** What is asked on each port, and who may ask. */
function portsOf(options: CoreOptions, parts: Parts): CorePorts {
  const { directory, log, now, steadyMs } = options;
  const { attempts, certificates, stored, cluster } = parts;
  const { authority, files, revocations, live, users } = certificates;
  const admin = adminApiOf(options, parts, attempts);
  const enrollment = createEnrollmentApi({
    directory,
    authority,
    certificates,
    bundle: certificateBundle,
    adminApi: admin,
    profiles: new DeviceProfiles({ ...parts.people, profiles: profileStore(options.run), now }),
    attempts,
    ...(cluster && { lockout: cluster.lockout, tokenKey: parts.missionKey }),
    log,
    now,
    steadyMs,
  });
  const accepted = (arrival: StreamArrival): void => stored.stream.accepted(arrival);
  const refused = (who: RefusedConnection): void => attempts.addRefusedConnection(who);
  const api: CoreFetch = (request, connection) => {
    const { certificate } = connection;
    if (certificate === undefined) return htmlPage(401, 'Unauthorized', 'A client certificate is needed here.');
    return admin(request, connection, callerOf(certificate, users));
  };
  return createCorePorts({
    files,
    addresses: options.addresses,
    ports: options.ports,
    api: cluster?.guarded(api) ?? api,
    enrollment: options.behindProxies(enrollment),
    isTrustedProxy: options.isTrustedProxy,
    stream: cluster?.admitting(accepted, refused) ?? accepted,
    refused,
    revocations,
    live,
    limit: parts.limit,
    log,
    now,
  });
}

function adminApiOf(options: CoreOptions, parts: Parts, enrollmentAttempts: EnrollmentAttempts): AdminApi {
  const { dataDirectory, run, directory, log, now, steadyMs } = options;
  const { certificates, people, cluster, nodeId, runEvents, retention, retentionRuns } = parts;
  const { stream, archive, missions, largeEvents, injectors, repeater } = parts.stored;
  const emergencies = emergenciesOf(repeater, now);
  return createAdminApi({
    ...people,
    enrollmentAttempts,
    nodeId,
    hostname: options.hostname,
    publicPort: options.ports.api,
    certificates: certificates.store,
    lists: certificates.lists,
    revocations: cluster?.revoking(certificates.revocations) ?? certificates.revocations,
    directory,
    groupPrefix: CHANNEL_PREFIX,
    knownAccount: LDAP_SERVICE_ACCOUNT,
    endpoints: clientEndpoints(run),
    subscriptions: stream,
    regroup: async (usernames, clientUid) => void (await (cluster ?? stream).regroup(usernames, clientUid)),
    toEverybody: (event) => stream.toEverybody(event),
    streamCounts: () => stream.counts(),
    maxClients: parts.limit.streaming,
    ...(cluster && { cluster }),
    archiveCounts: () => archive.counts(),
    retention: cluster?.changes.retaining(retention) ?? retention,
    retentionRuns: cluster?.running(retentionRuns) ?? retentionRuns,
    missions,
    history: history(runEvents),
    profiles: profileStore(run),
    errorLogs: errorLogStore(run),
    reports: reportStore(run),
    products: new ProductFiles(join(dataDirectory, 'update')),
    security: {
      certificateFile: basename(certificates.files.certificate),
      caFile: basename(certificates.files.ca),
      validityDays: options.validityDays,
      verify: () => void readServerIdentity(certificates.files),
    },
    directoryPlace: options.directoryPlace,
    trackWriter: cotWriter(options.runLong, new GroupVectors(options.runLong)),
    archive,
    toPlaces: (places, event) => stream.toPlaces(places, event),
    toDevices: (devices, event) => stream.toDevices(devices, event),
    largeEvents,
    video: videoConnections(run),
    injectorStore: injectorStore(run),
    injectors: cluster?.changes.injecting(injectors) ?? injectors,
    emergencies: cluster?.emergencies(emergencies) ?? emergencies,
    repeater: cluster?.changes.repeating(repeater) ?? repeater,
    database: coreDatabaseFacts(run, runEvents),
    ownProcess: new OwnProcess(dataDirectory),
    resources: resourceStore(run, options.runLong),
    resourceWriter: resourceWriter(options.runLong),
    spool: new Spool({
      directory: join(options.cluster?.directory ?? dataDirectory, 'uploads'),
      maxBytes: options.maxUploadBytes ?? MAX_UPLOAD_BYTES,
      steadyMs,
    }),
    now,
    log,
  });
}
