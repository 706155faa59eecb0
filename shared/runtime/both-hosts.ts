// What functions and jobs get in the same way on Node and in workerd: settings, databases, and what
// HTTP reaches.

import { AppError } from '@holdfast/kit/app-error';
import { cronSchedules } from '@holdfast/kit/cron';
import type { RunSql } from '@holdfast/kit/kept-database';
import { RELEASE, REPOSITORY } from '@holdfast/kit/release';
import { addressesOf, transportsOf, placeOf, recipientsOf, type SmtpFactory } from '../alerts/transports.ts';
import { HttpBackups } from '../backups/http.ts';
import type { Backups } from '../backups/port.ts';
import type { VideoRelay } from '../core/contents/port.ts';
import { videoRelay } from '../core/contents/relay.ts';
import { type CoreConnections, coreDatabase } from '../core/database/database.ts';
import type { CoreDatabase } from '../core/database/port.ts';
import { growthFacts } from '../database/growth/facts.ts';
import { growthHistoryTable } from '../database/growth/records.ts';
import { stateDatabase } from '../database/state-database.ts';
import { vacuumFacts } from '../database/vacuum/facts.ts';
import { certificateStoreTable } from '../devices/certificates/records.ts';
import { enrollmentTokenTable } from '../devices/enrollment/token-table.ts';
import { partsOf } from '../health/parts.ts';
import { healthTrendTable } from '../health/trend-table.ts';
import { wantedOf } from '../health/wanted.ts';
import { httpClock, releaseFeed } from '../host/http.ts';
import type { ClockSource, ReleaseFeed } from '../host/port.ts';
import { httpIdentity } from '../identity/authentik/http.ts';
import type { Exclusive, Identity } from '../identity/port.ts';
import { jobRunTable, opsJobTable } from '../jobs/tables.ts';
import { retentionFacts } from '../retention/facts.ts';
import { retentionHistoryTable } from '../retention/history-table.ts';
import { type LoadedSettings, showSettings } from '../settings/load.ts';
import type { Mode } from '../settings/rules.ts';
import type { Thresholds } from '../settings/status.ts';
import type { Settings } from '../settings/table.ts';

export interface HostFacts {
  startedAt: Date;
  loaded: Pick<LoadedSettings, 'settings' | 'sources'>;
  thresholds: Thresholds;
  /** The address of --listen. */
  listen: string | undefined;
  mode: Mode;
  nodeVersion: string;
  /** Of this machine, which is the core's too. */
  timeZone: string;
  core: CoreConnections;
  /** For figures of retention: what takes long there holds up nothing else. */
  figures: RunSql;
  state: RunSql;
  exclusive: Exclusive;
  smtp: SmtpFactory;
}

/** How the two databases are called in messages, and the variable that places each. */
export const CORE = {
  name: 'holdfast-health',
  called: "the core's database",
  variable: 'CORE_DATABASE_URL',
  lockTimeoutMs: 300,
};
/** Figures of retention, each limited by itself. */
export const FIGURES = { ...CORE, name: 'holdfast-retention', withinMs: 30_000 };
export const STATE = { name: 'holdfast', called: 'our own database', variable: 'DATABASE_URL' };
/** A lock that is held while the identity provider is asked twice. */
export const EXCLUSIVE = { ...STATE, name: 'holdfast-exclusive', withinMs: 30_000 };
/** One that is held while the core revokes, also by whoever holds one of the next two. */
export const CORE_LOCK = { ...STATE, name: 'holdfast-core', withinMs: 60_000 };
/**
 * One that is held while accounts are changed, which take the lock above: connections of its own,
 * or they wait for each other.
 */
export const PEOPLE_LOCK = { ...STATE, name: 'holdfast-people', withinMs: 60_000 };
/**
 * One that is held while the core signs and is looked at: connections of its own, or changes of
 * people wait for them.
 */
export const DEVICE_LOCK = { ...STATE, name: 'holdfast-devices', withinMs: 60_000 };

/** One that is held while a feed is changed, which takes the lock above. */
export const FEED_LOCK = { ...STATE, name: 'holdfast-feeds', withinMs: 120_000 };

/** What both hosts make in the same way, a new port of that kind too: one line in `sharedDeps`. */
export type SharedDeps = ReturnType<typeof sharedDeps>;

export function sharedDeps(facts: HostFacts) {
  const { startedAt, loaded, thresholds, listen, mode, nodeVersion, timeZone, core, figures, state, exclusive, smtp } =
    facts;
  const { settings, sources } = loaded;
  const notify = transportsOf(settings, smtp);
  const database = coreDatabase(core);
  const identity = identityOf(settings, exclusive);
  const certificateStore = certificateStoreTable(state);
  const jobRuns = jobRunTable(state);
  const backups = backupsOf(settings);
  const retention = {
    retentionFacts: retentionFacts(figures),
    retentionHistory: retentionHistoryTable(state),
    schedules: cronSchedules,
    timeZone,
  };
  const growth = { growthFacts: growthFacts(core.runSizes ?? core.run), growthHistory: growthHistoryTable(state) };
  return {
    release: RELEASE,
    now: () => new Date(),
    startedAt,
    identity,
    settings,
    settingsShown: showSettings(settings, sources),
    thresholds,
    jobRuns,
    backups,
    videoRelay: relayOf(settings),
    certificateStore,
    enrollmentTokens: enrollmentTokenTable(state),
    ...retention,
    ...growth,
    healthTrend: healthTrendTable(state),
    vacuumFacts: vacuumFacts(core.runSizes ?? core.run),
    opsJobs: opsJobTable(state),
    notify,
    place: placeOf(settings, listen, mode),
    addresses: addressesOf(settings, listen, mode),
    monitored: {
      wanted: wantedOf(settings, { listen, mode }),
      now: () => new Date(),
      startedAt,
      coreDatabase: database,
      state: stateDatabase(state),
      identity,
      certificateStore,
      jobRuns,
      backups,
      ...retention,
      ...growth,
      clocks: clocksOf(database, settings.IDENTITY_URL),
      parts: partsOf({
        mode,
        repository: settings.UPDATES_REPOSITORY ?? (REPOSITORY || undefined),
        coreRelease: settings.CORE_RELEASE,
        databaseVersion: () => database.version(),
        identityVersion: () => identity.version(),
        nodeVersion,
      }),
      recipients: recipientsOf(notify),
      releases: releasesOf(settings),
    },
  };
}

function relayOf({ RELAY_API_URL: url }: Settings): VideoRelay | undefined {
  return url === undefined ? undefined : videoRelay(url, fetch);
}

function clocksOf(core: CoreDatabase, identityUrl: string | undefined): ClockSource[] {
  const database: ClockSource = { name: 'database', readMs: () => core.clockMs(), resolutionMs: 0 };
  return identityUrl === undefined ? [database] : [database, httpClock('identity provider', identityUrl, fetch)];
}

/** Undefined if the check is off. */
function releasesOf({ UPDATES_URL: endoflifeUrl, UPDATES_GITHUB_URL: githubUrl }: Settings): ReleaseFeed | undefined {
  return endoflifeUrl === 'off' ? undefined : releaseFeed({ endoflifeUrl, githubUrl, fetch });
}

/** The identity provider, where the settings place it. */
function identityOf({ IDENTITY_URL: url, IDENTITY_TOKEN: token }: Settings, exclusive: Exclusive): Identity {
  if (url !== undefined && token !== undefined) return httpIdentity({ url, token, fetch, exclusive });
  const variable = url === undefined ? 'IDENTITY_URL' : 'IDENTITY_TOKEN';
  const port = unplaced('The identity provider cannot be called', variable);
  const provider = port as Identity;
  return {
    me: () => provider.me(),
    version: () => provider.version(),
    accounts: port as Identity['accounts'],
    groups: port as Identity['groups'],
    appPasswords: port as Identity['appPasswords'],
  };
}

/** The backup service, where the settings place it. */
function backupsOf({ BACKUP_TARGET: target, BACKUP_URL: url, BACKUP_TOKEN: token }: Settings): Backups {
  if (url !== undefined && token !== undefined) return new HttpBackups({ url, token, fetch });
  const missing = target === undefined ? 'BACKUP_TARGET' : url === undefined ? 'BACKUP_URL' : 'BACKUP_TOKEN';
  return unplaced('The backup service cannot be called', missing) as Backups;
}

/**
 * In place of a port that the settings do not place: each of its methods rejects and says what to
 * set.
 */
export function unplaced(problem: string, variable: string): object {
  const refuse = (): Promise<never> =>
    Promise.reject(new AppError('unavailable', `${problem}. Remedy: set ${variable}.`));
  return new Proxy({}, { get: (_, name) => (isMethod(name) ? refuse : undefined) });
}

/** Promises look for `then` in all that they are given. */
export function isMethod(name: string | symbol): name is string {
  return typeof name === 'string' && name !== 'then';
}
