// Honest in-memory ports for what the health modules look at: change a member to change the world.

import { AppError } from '@holdfast/kit/app-error';
import { cronSchedules } from '@holdfast/kit/cron';
import type { CoreCluster } from '@holdfast/kit/core-wire';
import type { DirectoryBase } from '@holdfast/kit/directory';
import type { AlertSummary, Channel, HeartbeatState } from '../../shared/alerts/port.ts';
import type { TableStatistics } from '../../shared/core/database/port.ts';
import type { CoreCertificates } from '../../shared/core/port.ts';
import type { CertificateStore } from '../../shared/devices/port.ts';
import type { Monitored, Wanted } from '../../shared/health/monitored.ts';
import type { Container, DiskUse, TlsEndpoint, TlsState, UpgradeRecord } from '../../shared/host/port.ts';
import type { Claim, JobRuns } from '../../shared/jobs/port.ts';
import type { RetentionHistory } from '../../shared/retention/port.ts';
import { type History, NO_HISTORY } from '../../shared/settings/status.ts';
import { type FakeBackups, provenBackups } from '../backups/fake-backups.ts';
import { type DatabaseWorld, fakeCoreDatabase, serverFacts } from '../core/fake-core-database.ts';
import { type FakeCore, fakeCore, threeNodes } from '../core/fake-core.ts';
import { type FakeGrowth, fakeGrowth } from '../database/fake-growth.ts';
import { fakeCertificateStore } from '../devices/fake-certificate-store.ts';
import { addProbe, signInByProvider } from '../devices/fake-probe.ts';
import { type FakeIdentity, fakeIdentity } from '../identity/fake-identity.ts';
import { fakeRetentionHistory } from '../retention/fake-retention-history.ts';
import { type FakeRetention, fakeRetention } from '../retention/fake-retention.ts';
import { fakeParts, fakeReleases, type ReleaseWorld, releaseWorld } from './fake-releases.ts';
import { type FakeDirectory, fakeDirectory } from '../sign-in/fake-directory.ts';

export const NOW = new Date('2026-03-04T05:06:07.000Z');

/** What a server with the default tuning shows; held to the real one in test/core/core-database.real.test.ts. */
export const AS_WANTED = {
  autovacuum: 'on',
  track_counts: 'on',
  autovacuum_vacuum_scale_factor: '0.05',
  autovacuum_vacuum_cost_limit: '1000',
  maintenance_work_mem: '256MB',
  autovacuum_work_mem: '-1',
  autovacuum_naptime: '15s',
};

const at = (name: string, port: number): TlsEndpoint => ({ name, host: '192.0.2.1', port, trust: 'own' });
const CORE_ENDPOINTS = {
  api: at('https://192.0.2.1:8443', 8443),
  enrollment: at('https://192.0.2.1:8446', 8446),
  streaming: at('tls://192.0.2.1:8089', 8089),
};
const SHOWN: TlsState = {
  reachable: true,
  trusted: true,
  error: undefined,
  expires_at: atDay(300),
  subject: 'CN=takserver',
  issuer: 'CN=ca',
};

/** The world as the modules see it; every part is fine. */
export interface World extends DatabaseWorld, ReleaseWorld {
  wanted: Wanted;
  /** How long this process runs; from the beginning a day. */
  runsForMs: number;
  /** Set to make the core's database throw. */
  databaseError: string | undefined;
  writeError: string | undefined;
  mounts: DiskUse[];
  /** Undefined: CORE_DATA_DIR is not set. An error: they cannot be listed. */
  coreCertificates: CoreCertificates | Error | undefined;
  tls: Record<string, TlsState>;
  addresses: Record<string, string[]>;
  ownAddresses: string[];
  containers: Container[] | undefined;
  changed: string[];
  upgrade: UpgradeRecord | undefined;
  alerts: AlertSummary;
  /** The core that health asks, who may enroll there, and what is known of certificates. */
  core: FakeCore;
  provider: FakeIdentity;
  /** Whom it lets in; what the module identity finds in it is `admins`. */
  directory: FakeDirectory;
  certificateStore: CertificateStore;
  retention: FakeRetention;
  backups: FakeBackups;
  growth: FakeGrowth;
  retentionHistory: RetentionHistory;
  /** Who our API token belongs to; an error where it is refused. */
  /** Of the job that ends connections without a name. */
  unlistedRuns: { finishedAt: Date; summary: unknown }[];
  caller: { username: string; isSuperuser: boolean } | Error;
  /** Members of core_ROLE_ADMIN in each base; undefined: no such group. */
  admins: Record<DirectoryBase, number | undefined | Error>;
  journalError: string | null;
  recipients: Partial<Record<Channel, number>>;
  heartbeat: HeartbeatState | undefined;
}

/** Its core becomes three nodes; change a member of what it returns to change one. */
export function withNodes(of: World): CoreCluster {
  const cluster = threeNodes();
  of.core.stream = { clients: 10, maxClients: 1_000, thinningSeconds: 0, cluster };
  for (const { api, enrollment, streaming } of cluster.nodes)
    for (const url of [api, enrollment, streaming]) of.tls[url] = { ...SHOWN };
  return cluster;
}

export function world(): World {
  const provider = fakeIdentity({ now: () => NOW });
  const core = fakeCore({ now: () => NOW, accepts: provider.accepts });
  core.status.memory = { usedBytes: 300e6, capBytes: 1e9 };
  const directory = fakeDirectory(() => NOW);
  const certificateStore = fakeCertificateStore();
  void addProbe({ core, provider, directory, certificateStore });
  const made: World = {
    retention: fakeRetention(() => made.now),
    backups: provenBackups(() => made.now),
    growth: fakeGrowth(),
    retentionHistory: fakeRetentionHistory(() => made.now),
    core,
    provider,
    directory,
    certificateStore,
    now: NOW,
    wanted: {
      tuning: { scaleFactor: 0.05, costLimit: 1000, maintenanceWorkMem: '256MB' },
      databaseDirectory: '/data/pgdata',
      databaseHost: 'core-database',
      retention: { cot: undefined, geochat: undefined, cron: undefined, unit: 'days' },
      backups: { cron: '0 30 2 * * ?' },
      publicNames: [],
      publicAddresses: [],
      tlsEndpoints: [],
      container: undefined,
      coreEndpoints: CORE_ENDPOINTS,
    },
    runsForMs: 86_400_000,
    databaseError: undefined,
    tables: [table('cot_router', 10, 5000)],
    settings: { ...AS_WANTED },
    transactionAge: 1000,
    holders: [],
    origins: {},
    server: serverFacts(),
    size: {
      total_bytes: 30e6,
      live_bytes: 18e6,
      locked_tables: [],
      wal_bytes: 16e6,
      max_wal_bytes: 1e9,
      archive_mode: 'off',
      archive_failing: false,
      read_only: false,
      version: '16.14',
    },
    eventLosses: 'none',
    stores: true,
    clockOffsetMs: 0,
    connectError: undefined,
    writeError: undefined,
    mounts: [mount('/', 41.5)],
    coreCertificates: coreCertificates(),
    tls: Object.fromEntries(Object.values(CORE_ENDPOINTS).map(({ name }) => [name, SHOWN])),
    addresses: {},
    ownAddresses: ['127.0.0.1', '192.0.2.1'],
    containers: undefined,
    changed: [],
    ...releaseWorld(),
    upgrade: undefined,
    alerts: {
      pending: 0,
      oldest_pending_seconds: 0,
      partly_sent: 0,
      pending_reason: null,
      failed: 0,
      failed_unreached: 0,
      failed_reason: null,
      last_sent_at: null,
    },
    journalError: null,
    unlistedRuns: [],
    caller: { username: 'akadmin', isSuperuser: true },
    admins: { core: 1, web: 1 },
    recipients: { email: 2 },
    heartbeat: undefined,
  };
  return made;
}

export function table(name: string, dead: number, live: number): TableStatistics {
  return {
    schema: 'public',
    table: name,
    dead_tuples: dead,
    live_tuples: live,
    last_autovacuum: null,
    last_vacuum: '2026-01-02T03:04:05.000Z',
    options: {},
  };
}

export function mount(path: string, usedPct: number, inodes: number | null = 3): DiskUse {
  const bytes = { total_bytes: 1e12, free_bytes: (1e12 * (100 - usedPct)) / 100 };
  return { mount: path, paths: [path], ...bytes, used_pct: usedPct, inodes_used_pct: inodes };
}

/** The files of a core that was set up yesterday. */
export function coreCertificates(): CoreCertificates {
  const from = atDay(-1);
  const certificate = (name: string, kind: 'ca' | 'server' | 'service', days: number) => ({
    name,
    kind,
    subject: `CN=${name}`,
    from,
    until: atDay(days),
    ours: true,
  });
  return {
    directory: '/core/certs/files',
    certificates: [
      certificate('ca.pem', 'ca', 3650),
      certificate('takserver.pem', 'server', 729),
      certificate('svc_api.pem', 'service', 364),
    ],
    revocationList: { ours: true, this_update: from, next_update: atDay(6) },
  };
}

/** So many days after NOW, as ISO 8601. */
export function atDay(days: number): string {
  return new Date(NOW.getTime() + days * 86_400_000).toISOString();
}

/** The ports over a world. */
export function fakeMonitored(of: World): Monitored {
  const core = async <T>(value: () => T): Promise<T> => {
    if (of.databaseError !== undefined) throw new AppError('unavailable', of.databaseError);
    return value();
  };
  return {
    wanted: of.wanted,
    now: () => of.now,
    startedAt: new Date(of.now.getTime() - of.runsForMs),
    coreDatabase: fakeCoreDatabase(of, core),
    state: {
      writeOnce: async () => {
        if (of.writeError !== undefined) throw new Error(of.writeError);
      },
    },
    identity: {
      me: async () => valueOf(of.caller),
      version: async () => '2026.8.3',
      get accounts() {
        return of.provider.accounts;
      },
      get appPasswords() {
        return of.provider.appPasswords;
      },
    },
    jobRuns: { summaries: async (name) => (name === 'disconnect-unlisted' ? of.unlistedRuns : []) },
    get core() {
      return of.core.core;
    },
    get coreDevices() {
      return of.core.coreDevices;
    },
    get coreEnrollment() {
      return of.core.coreEnrollment;
    },
    get clientKeys() {
      return of.core.clientKeys;
    },
    get backups() {
      return of.backups;
    },
    get certificateStore() {
      return of.certificateStore;
    },
    get coreRetention() {
      return of.retention.coreRetention;
    },
    get retentionFiles() {
      return of.retention.retentionFiles;
    },
    get retentionFacts() {
      return of.retention.retentionFacts;
    },
    get retentionHistory() {
      return of.retentionHistory;
    },
    get growthFacts() {
      return of.growth.growthFacts;
    },
    get growthHistory() {
      return of.growth.growthHistory;
    },
    schedules: cronSchedules,
    timeZone: 'UTC',
    directory: {
      signIn: signInByProvider(of),
      find: (username) => of.directory.find(username),
      probe: async (base) => valueOf(of.admins[base]),
    },
    disks: { use: async () => of.mounts },
    get coreFiles() {
      const { coreCertificates: files } = of;
      return files === undefined ? undefined : { certificates: async () => valueOf(files) };
    },
    tls: {
      inspect: async ({ name, address, port }) => {
        const state = of.tls[address === undefined ? name : `${name} at ${address}${port === 443 ? '' : `:${port}`}`];
        if (state === undefined) throw new Error(`no such endpoint in this world: ${name}`);
        return state;
      },
    },
    hostNames: {
      resolve: async (name) => {
        const addresses = of.addresses[name] ?? [];
        return { addresses, error: addresses.length === 0 ? 'no such name' : undefined };
      },
      ownAddresses: async () => of.ownAddresses,
    },
    get containers() {
      const { containers } = of;
      return containers === undefined ? undefined : { list: async () => containers };
    },
    configurationFiles: { changedSinceStart: async () => of.changed },
    clocks: [{ name: 'database', readMs: () => core(() => of.now.getTime() + of.clockOffsetMs), resolutionMs: 0 }],
    get parts() {
      return fakeParts(of, () => core(() => of.size.version));
    },
    alerts: { summary: async () => of.alerts, trouble: async () => of.journalError },
    recipients: of.recipients,
    get heartbeat() {
      const { heartbeat } = of;
      return heartbeat === undefined ? undefined : { state: async () => heartbeat };
    },
    upgrades: { last: async () => of.upgrade },
    releases: fakeReleases(of),
  };
}

function valueOf<T>(value: T | Error): T {
  if (value instanceof Error) throw value;
  return value;
}

export const history = (members: Partial<History> = {}): History => ({ ...NO_HISTORY, ...members });

interface FakeRun extends Claim {
  leaseUntilMs: number;
  finishedMs: number | undefined;
  summary?: unknown;
}

/** Runs of jobs in memory, with a clock of its own choice. */
export function fakeJobRuns(nowMs: () => number = () => Date.now()): JobRuns {
  const runs: FakeRun[] = [];
  const find = (claim: Claim): FakeRun | undefined =>
    runs.find(
      (run) =>
        run.name === claim.name &&
        run.dueAt.getTime() === claim.dueAt.getTime() &&
        run.runner === claim.runner &&
        run.attempt === claim.attempt &&
        run.finishedMs === undefined,
    );
  return {
    async claim(name, dueAt, runner, leaseSeconds) {
      const leaseUntilMs = nowMs() + leaseSeconds * 1000;
      const unfinished = runs.find((run) => run.name === name && run.finishedMs === undefined);
      if (unfinished !== undefined) {
        if (unfinished.leaseUntilMs >= nowMs()) return undefined;
        Object.assign(unfinished, { runner, attempt: unfinished.attempt + 1, leaseUntilMs });
        return { name, dueAt: unfinished.dueAt, runner, attempt: unfinished.attempt };
      }
      if (runs.some((run) => run.name === name && run.dueAt.getTime() === dueAt.getTime())) return undefined;
      runs.push({ name, dueAt, runner, attempt: 1, leaseUntilMs, finishedMs: undefined });
      return { name, dueAt, runner, attempt: 1 };
    },
    async renew(claim, leaseSeconds) {
      const run = find(claim);
      if (run !== undefined) run.leaseUntilMs = nowMs() + leaseSeconds * 1000;
      return run !== undefined;
    },
    async finish(claim, outcome) {
      const run = find(claim);
      if (run !== undefined) Object.assign(run, { finishedMs: nowMs(), ...('summary' in outcome ? outcome : {}) });
      return run !== undefined;
    },
    async summaries(name, since) {
      const ended = runs.filter((run) => run.name === name && (run.finishedMs ?? 0) > since.getTime());
      return ended
        .filter(({ summary }) => summary !== undefined)
        .map(({ finishedMs, summary }) => ({ finishedAt: new Date(finishedMs ?? 0), summary }))
        .toReversed();
    },
    async prune(before) {
      const old = runs.filter(({ finishedMs }) => finishedMs !== undefined && finishedMs < before.getTime());
      for (const run of old) runs.splice(runs.indexOf(run), 1);
      return old.length;
    },
  };
}
