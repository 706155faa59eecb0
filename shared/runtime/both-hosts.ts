// What functions and jobs get in the same way on Node and in workerd: settings, databases, and what HTTP reaches.

import { certificateBookTable } from '../adapters/certificate-book-table.ts';
import { type CoreConnections, coreDatabase } from '../adapters/core-database.ts';
import { retentionFacts } from '../adapters/core-retention-facts.ts';
import { cronSchedules } from '../adapters/cron-schedules.ts';
import { enrollmentTokenTable } from '../adapters/enrollment-token-table.ts';
import { growthBookTable } from '../adapters/growth-book-table.ts';
import { healthTrendTable } from '../adapters/health-trend-table.ts';
import { growthFacts } from '../adapters/growth-facts.ts';
import { httpClock } from '../adapters/http-clock.ts';
import { jobRunTable } from '../adapters/job-run-table.ts';
import type { RunSql } from '../adapters/kept-database.ts';
import { opsJobTable } from '../adapters/ops-job-table.ts';
import { releaseFeed } from '../adapters/release-feed.ts';
import { retentionBookTable } from '../adapters/retention-book-table.ts';
import { stateDatabase } from '../adapters/state-database.ts';
import { vacuumFacts } from '../adapters/vacuum-facts.ts';
import type { LoadedSettings } from '../config/load-settings.ts';
import { showSettings } from '../config/shown-settings.ts';
import type { Mode } from '../config/setting-rules.ts';
import type { Thresholds } from '../domain/thresholds.ts';
import type { Deps } from '../http/deps.ts';
import type { ClockSource } from '../ports/clock-source.ts';
import type { CoreDatabase } from '../ports/core-database.ts';
import type { Exclusive } from '../ports/exclusive.ts';
import type { Monitored, Part } from '../ports/monitored.ts';
import { identityOf } from './identity-part.ts';
import { RELEASE } from './release.ts';
import { addressesOf, outletsOf, placeOf, recipientsOf, type SmtpFactory } from './outlets.ts';
import { wantedOf } from './wanted.ts';

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
/** One that is held while accounts are changed, which take the lock above: connections of its own, or they wait for each other. */
export const PEOPLE_LOCK = { ...STATE, name: 'holdfast-people', withinMs: 60_000 };
/** One that is held while the core signs and is looked at: connections of its own, or changes of people wait for them. */
export const DEVICE_LOCK = { ...STATE, name: 'holdfast-devices', withinMs: 60_000 };

type Shared = Pick<
  Deps,
  | 'release'
  | 'now'
  | 'startedAt'
  | 'identity'
  | 'settings'
  | 'settingsShown'
  | 'thresholds'
  | 'jobRuns'
  | 'certificateBook'
  | 'enrollmentTokens'
  | 'retentionFacts'
  | 'retentionBook'
  | 'vacuumFacts'
  | 'growthFacts'
  | 'growthBook'
  | 'healthTrend'
  | 'schedules'
  | 'timeZone'
  | 'opsJobs'
  | 'notify'
  | 'place'
  | 'addresses'
> & {
  monitored: Pick<
    Monitored,
    | 'wanted'
    | 'now'
    | 'startedAt'
    | 'coreDatabase'
    | 'state'
    | 'identity'
    | 'certificateBook'
    | 'jobRuns'
    | 'retentionFacts'
    | 'retentionBook'
    | 'growthFacts'
    | 'growthBook'
    | 'schedules'
    | 'timeZone'
    | 'clocks'
    | 'parts'
    | 'releases'
    | 'recipients'
  >;
};

export function sharedDeps(facts: HostFacts): Shared {
  const { startedAt, loaded, thresholds, listen, mode, nodeVersion, timeZone, core, figures, state, exclusive, smtp } =
    facts;
  const { settings, sources } = loaded;
  const notify = outletsOf(settings, smtp);
  const database = coreDatabase(core);
  const identity = identityOf(settings, exclusive);
  const certificateBook = certificateBookTable(state);
  const jobRuns = jobRunTable(state);
  const retention = {
    retentionFacts: retentionFacts(figures),
    retentionBook: retentionBookTable(state),
    schedules: cronSchedules,
    timeZone,
  };
  const growth = { growthFacts: growthFacts(core.runSizes ?? core.run), growthBook: growthBookTable(state) };
  return {
    release: RELEASE,
    now: () => new Date(),
    startedAt,
    identity,
    settings,
    settingsShown: showSettings(settings, sources),
    thresholds,
    jobRuns,
    certificateBook,
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
      certificateBook,
      jobRuns,
      ...retention,
      ...growth,
      clocks: clocksOf(database, settings.IDENTITY_URL),
      parts: partsOf(database, nodeVersion),
      recipients: recipientsOf(notify),
      releases: settings.UPDATES_URL === 'off' ? undefined : releaseFeed(settings.UPDATES_URL, fetch),
    },
  };
}

function clocksOf(core: CoreDatabase, identityUrl: string | undefined): ClockSource[] {
  const database: ClockSource = { name: 'database', readMs: () => core.clockMs(), resolutionMs: 0 };
  return identityUrl === undefined ? [database] : [database, httpClock('identity provider', identityUrl, fetch)];
}

/** The programs whose releases are watched, by their names at endoflife.date. */
function partsOf(core: CoreDatabase, nodeVersion: string): Part[] {
  return [
    { name: 'PostgreSQL', product: 'postgresql', version: () => core.version(), cycleParts: 1 },
    { name: 'Node.js', product: 'nodejs', version: async () => nodeVersion, cycleParts: 1 },
  ];
}
