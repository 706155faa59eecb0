// Deps for tests of the functions: honest in-memory ports, settings of your choice.

import { cronSchedules } from '@holdfast/kit/cron';
import type { Fields, Log } from '@holdfast/kit/log';
import { ADMIN_ROLE_GROUP, WEBADMIN } from '@holdfast/kit/names';
import { MemoryHealthCache } from '../../shared/health/cache.ts';
import { HEALTH_MODULES } from '../../shared/health/modules/index.ts';
import type { Assets, ProcessStatus } from '../../shared/host/port.ts';
import { type MemoryRequestStatistics, memoryRequestStatistics } from '../../shared/host/request-statistics.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { memoryJobStatistics } from '../../shared/jobs/statistics.ts';
import { loadSettings, showSettings } from '../../shared/settings/load.ts';
import { DEFAULT_THRESHOLDS } from '../../shared/settings/status.ts';
import { GuardedAuthenticator } from '../../shared/sign-in/authenticator.ts';
import type { FastAuthenticator } from '../../shared/sign-in/port.ts';
import { alertsHolding } from '../alerts/fake-alerts.ts';
import { type FakeAudit, fakeAudit } from '../audit/fake-audit.ts';
import { type FakeSimulator, fakeSimulator } from '../simulation/fake-simulator.ts';
import type { FakeBackups } from '../backups/fake-backups.ts';
import { type FakeContents, fakeContents } from '../core/fake-contents.ts';
import { type FakeFeeds, fakeFeeds } from '../feeds/fake-feeds.ts';
import { type FakeCore, fakeCore } from '../core/fake-core.ts';
import { type FakeMissions, fakeMissions } from '../core/fake-missions.ts';
import { type FakeTracks, fakeTracks } from '../core/fake-tracks.ts';
import { type FakeVacuum, fakeVacuum } from '../database/fake-vacuum.ts';
import { fakeCertificateStore, fakeEnrollmentTokens } from '../devices/fake-certificate-store.ts';
import { type FakeHealthTrend, fakeHealthTrend } from '../health/fake-health-trend.ts';
import { fakeJobRuns, fakeMonitored, type World, world } from '../health/fake-monitored.ts';
import { type FakeIdentity, fakeIdentity } from '../identity/fake-identity.ts';
import { fakeOpsJobs } from '../jobs/fake-ops-jobs.ts';
import type { FakeRetention } from '../retention/fake-retention.ts';
import { type FakeDirectory, fakeDirectory } from '../sign-in/fake-directory.ts';
import { type FakeSignIns, fakeSignIns } from '../sign-in/fake-sign-ins.ts';

export interface LoggedEvent {
  level: 'info' | 'warn' | 'error';
  event: string;
  fields: Fields;
}

/** A log that keeps what it is told. */
export function memoryLog(): Log & { events: LoggedEvent[] } {
  const events: LoggedEvent[] = [];
  const keep =
    (level: LoggedEvent['level']) =>
    (event: string, fields: Fields = {}): void => {
      events.push({ level, event, fields });
    };
  return { events, info: keep('info'), warn: keep('warn'), error: keep('error') };
}

/** A process that is always the same. */
const fakeProcess: ProcessStatus = {
  figures: () => ({
    cpuSeconds: 1.25,
    residentBytes: 80e6,
    heapUsedBytes: 20e6,
    heapTotalBytes: 30e6,
    openFiles: 25,
    startedMs: Date.parse('2026-01-02T03:04:05.678Z'),
    loopActiveSeconds: 2,
    loopIdleSeconds: 98,
    loopLagSeconds: 0.001,
  }),
};

/** What ships, in short. */
const ASSETS: Record<string, [text: string, contentType: string]> = {
  'swagger-ui.css': ['a{}', 'text/css; charset=utf-8'],
  'docs/index.html': ['<h1>Documentation</h1>', 'text/html; charset=utf-8'],
  'pages.css': ['a{}', 'text/css; charset=utf-8'],
  'pages.js': ['"use strict";', 'text/javascript; charset=utf-8'],
};

const fakeAssets: Assets = {
  read: async (name) => {
    const asset = ASSETS[name];
    return asset && { body: new TextEncoder().encode(asset[0]), contentType: asset[1] };
  },
};

export const PASSWORD = 'correct horse battery';
export const TOKEN = 'metrics-token-0123456789';

export interface FakeDeps extends Deps {
  simulator: FakeSimulator;
  /** The backup service of the world. */
  backups: FakeBackups;
  log: ReturnType<typeof memoryLog>;
  requests: MemoryRequestStatistics;
  identity: FakeIdentity;
  directory: FakeDirectory;
  authenticator: FastAuthenticator;
  signIns: FakeSignIns;
  audit: FakeAudit;
  healthTrend: FakeHealthTrend;
  /** The core behind the ports. */
  theCore: FakeCore;
  /** Missions at the core behind the ports. */
  missions: FakeMissions;
  /** Positions and tracks at the core behind the ports. */
  tracks: FakeTracks;
  contents: FakeContents;
  feeds: FakeFeeds;
  /** Retention at the core behind the ports: that of the world. */
  retention: FakeRetention;
  /** The database of the core behind the ports, as a vacuum meets it. */
  vacuum: FakeVacuum;
}

/** Settings are only read: those of the same values are the same, for a test makes hundreds of deps. */
const loaded = new Map<string, ReturnType<typeof loadSettings>>();

function settingsOf(values: Record<string, string>): ReturnType<typeof loadSettings> {
  const key = JSON.stringify(Object.entries(values));
  const known = loaded.get(key);
  if (known !== undefined) return known;
  const fresh = loadSettings(
    [{ source: 'environment', values: { CORE_WEBADMIN_PASSWORD: PASSWORD, METRICS_TOKEN: TOKEN, ...values } }],
    'embedded',
  );
  loaded.set(key, fresh);
  return fresh;
}

/** Deps with the web-admin password and the metrics token above, and one log called `management`. */
export function fakeDeps(values: Record<string, string> = {}, around: World = world()): FakeDeps {
  const { settings, sources, problems } = settingsOf(values);
  if (problems.length > 0) throw new Error(JSON.stringify(problems));
  const now = (): Date => around.now;
  const directory = fakeDirectory(now);
  for (const name of [ADMIN_ROLE_GROUP, settings.ADMIN_GROUP, settings.VIEWER_GROUP]) directory.addGroup(name);
  const people = [
    { username: WEBADMIN, password: settings.CORE_WEBADMIN_PASSWORD?.reveal(), groups: [ADMIN_ROLE_GROUP] },
    { username: 'vera', password: PASSWORD, groups: [settings.VIEWER_GROUP] },
    { username: 'nora', password: PASSWORD, groups: [] },
  ];
  for (const { username, password, groups } of people)
    if (password !== undefined) directory.addPerson(username, password).groups.push(...groups);
  const signIns = fakeSignIns(now);
  const audit = fakeAudit(now, (username) => {
    signIns.endAllOf(username);
    authenticator.forget(username);
  });
  const authenticator = new GuardedAuthenticator({
    failures: undefined,
    directory,
    signIns,
    audit,
    roles: { admin: settings.ADMIN_GROUP, viewer: settings.VIEWER_GROUP },
    webadminPassword: settings.CORE_WEBADMIN_PASSWORD,
    metricsToken: settings.METRICS_TOKEN,
    steadyMs: () => around.now.getTime(),
    wallMs: () => around.now.getTime(),
  });
  const theCore = fakeCore({
    now,
    accepts: (username, password) => deps.identity.accepts(username, password),
  });
  const vacuum = fakeVacuum();
  const contents = fakeContents(now);
  const missions = fakeMissions(now);
  const tracks = fakeTracks(theCore);
  const { core, coreEnrollment, coreDevices, coreAuthority, adminGrants, clientKeys, bundles } = theCore;
  const deps: FakeDeps = {
    theCore,
    contents,
    coreContents: contents,
    videoRelay: undefined,
    missions,
    coreMissions: missions.coreMissions,
    missionArchives: missions.missionArchives,
    tracks,
    coreTracks: tracks.coreTracks,
    feeds: fakeFeeds(),
    simulator: fakeSimulator(),
    backups: around.backups,
    retention: around.retention,
    coreRetention: around.retention.coreRetention,
    retentionFiles: around.retention.retentionFiles,
    retentionFacts: around.retention.retentionFacts,
    retentionHistory: around.retentionHistory,
    growthFacts: around.growth.growthFacts,
    growthHistory: around.growth.growthHistory,
    vacuum,
    vacuumFacts: vacuum.vacuumFacts,
    coreVacuum: vacuum.coreVacuum,
    coreNotices: vacuum.coreNotices,
    schedules: cronSchedules,
    timeZone: 'UTC',
    opsJobs: fakeOpsJobs(),
    core,
    coreEnrollment,
    coreDevices,
    coreAuthority,
    adminGrants,
    clientKeys,
    bundles,
    certificateStore: fakeCertificateStore(),
    enrollmentTokens: fakeEnrollmentTokens(),
    coreLock: (_, work) => work(),
    release: '1.2.3',
    now,
    authenticator,
    signIns,
    audit,
    peopleLock: (_, work) => work(),
    deviceLock: (_, work) => work(),
    feedLock: (_, work) => work(),
    startedAt: new Date('2026-01-02T03:04:05.678Z'),
    settings,
    settingsShown: showSettings(settings, sources),
    thresholds: DEFAULT_THRESHOLDS,
    log: memoryLog(),
    monitored: fakeMonitored(around),
    identity: fakeIdentity(),
    directory,
    health: new MemoryHealthCache({
      intervals: Object.fromEntries(HEALTH_MODULES.map(({ name }) => [name, 60])),
      nowMs: () => around.now.getTime(),
    }),
    healthResults: undefined,
    healthTrend: fakeHealthTrend(),
    jobRuns: fakeJobRuns(() => around.now.getTime()),
    alerts: alertsHolding([], () => around.now.getTime()),
    notify: {},
    heartbeat: undefined,
    place: { name: 'cot.example.org', url: 'https://monitor.cot.example.org' },
    addresses: { console: 'https://monitor.cot.example.org', portal: 'https://cot.example.org' },
    jobStatistics: memoryJobStatistics([
      { name: 'poll-health', intervalSeconds: () => 1 },
      { name: 'prune-job-runs', intervalSeconds: () => 3600 },
    ]),
    requests: memoryRequestStatistics(),
    process: fakeProcess,
    together: (_, work) => work(),
    logFiles: {
      names: async () => ['management'],
      tail: async (name, lines) => (name === 'management' ? ['one', 'two', 'three'].slice(-lines) : undefined),
    },
    assets: fakeAssets,
  };
  return deps;
}

export const basic = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
/** Of somebody who may read, and of somebody who may come in and do nothing. */
export const VIEWER = { authorization: basic('vera', PASSWORD) };
export const NOBODY = { authorization: basic('nora', PASSWORD) };
export const ADMIN = { authorization: basic('webadmin', PASSWORD) };
export const READER = { authorization: `Bearer ${TOKEN}` };
