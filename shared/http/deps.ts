// What the functions and jobs need of the outside, handed in by the host.

import type { Settings } from '../config/settings.ts';
import type { ShownSetting } from '../config/shown-settings.ts';
import type { Place } from '../domain/alert-message.ts';
import type { Thresholds } from '../domain/thresholds.ts';
import type { AdminGrants } from '../ports/admin-grants.ts';
import type { Alerts } from '../ports/alerts.ts';
import type { Assets } from '../ports/assets.ts';
import type { Audit } from '../ports/audit.ts';
import type { Bundles } from '../ports/bundles.ts';
import type { CertificateBook } from '../ports/certificate-book.ts';
import type { ClientKeys } from '../ports/client-keys.ts';
import type { Core } from '../ports/core.ts';
import type { CoreAuthority } from '../ports/core-authority.ts';
import type { CoreDevices } from '../ports/core-devices.ts';
import type { CoreEnrollment } from '../ports/core-enrollment.ts';
import type { CoreNotices } from '../ports/core-notices.ts';
import type { CoreRetention } from '../ports/core-retention.ts';
import type { CoreVacuum } from '../ports/core-vacuum.ts';
import type { Directory } from '../ports/directory.ts';
import type { Doors } from '../ports/doors.ts';
import type { EnrollmentTokens } from '../ports/enrollment-tokens.ts';
import type { Exclusive } from '../ports/exclusive.ts';
import type { GrowthBook } from '../ports/growth-book.ts';
import type { GrowthFacts } from '../ports/growth-facts.ts';
import type { HealthCache } from '../ports/health-cache.ts';
import type { HealthTrend } from '../ports/health-trend.ts';
import type { Heartbeat } from '../ports/heartbeat.ts';
import type { Identity } from '../ports/identity.ts';
import type { JobRuns } from '../ports/job-runs.ts';
import type { JobStatistics } from '../ports/job-statistics.ts';
import type { Log } from '../ports/log.ts';
import type { LogFiles } from '../ports/log-files.ts';
import type { Monitored } from '../ports/monitored.ts';
import type { Outlets } from '../ports/notifier.ts';
import type { OpsJobs } from '../ports/ops-jobs.ts';
import type { ProcessStatus } from '../ports/process-status.ts';
import type { RequestStatistics } from '../ports/request-statistics.ts';
import type { RetentionBook } from '../ports/retention-book.ts';
import type { RetentionFacts } from '../ports/retention-facts.ts';
import type { RetentionFiles } from '../ports/retention-files.ts';
import type { Schedules } from '../ports/schedules.ts';
import type { SignIns } from '../ports/sign-ins.ts';
import type { VacuumFacts } from '../ports/vacuum-facts.ts';

/** Callers that ask for the same thing at the same moment share one piece of work, where the host allows that. */
export type Together = <T>(key: string, work: () => Promise<T>) => Promise<T>;

/** Where a browser finds the two faces, without a slash at the end. */
export interface Addresses {
  console: string;
  portal: string;
}

export interface Deps {
  release: string;
  startedAt: Date;
  settings: Settings;
  settingsShown: ShownSetting[];
  thresholds: Thresholds;
  log: Log;
  logFiles: LogFiles;
  assets: Assets;
  monitored: Monitored;
  identity: Identity;
  directory: Directory;
  doors: Doors;
  signIns: SignIns;
  audit: Audit;
  /** For what must not happen twice at once among several people (the last administrator). Its keys are nobody else's. */
  peopleLock: Exclusive;
  /** For certificates, enrollments and service accounts, which wait for the core. Never taken inside `peopleLock`, nor that inside it. */
  deviceLock: Exclusive;
  core: Core;
  coreEnrollment: CoreEnrollment;
  coreDevices: CoreDevices;
  coreAuthority: CoreAuthority;
  adminGrants: AdminGrants;
  clientKeys: ClientKeys;
  bundles: Bundles;
  certificateBook: CertificateBook;
  enrollmentTokens: EnrollmentTokens;
  /** One revocation at a time per core. Its keys are nobody else's, so it may be taken inside the two others. */
  coreLock: Exclusive;
  coreRetention: CoreRetention;
  /** Its files; each method rejects with what is missing when CORE_DATA_DIR is unset. */
  retentionFiles: RetentionFiles;
  retentionFacts: RetentionFacts;
  retentionBook: RetentionBook;
  vacuumFacts: VacuumFacts;
  coreVacuum: CoreVacuum;
  coreNotices: CoreNotices;
  growthFacts: GrowthFacts;
  growthBook: GrowthBook;
  schedules: Schedules;
  /** That of the core, by its name in the IANA database. */
  timeZone: string;
  opsJobs: OpsJobs;
  now: () => Date;
  health: HealthCache;
  healthTrend: HealthTrend;
  jobRuns: JobRuns;
  alerts: Alerts;
  notify: Outlets;
  /** Undefined when HEARTBEAT_URL is unset. */
  heartbeat: Heartbeat | undefined;
  /** This stack, as alerts speak of it. */
  place: Place;
  addresses: Addresses;
  jobStatistics: JobStatistics;
  requests: RequestStatistics;
  process: ProcessStatus;
  together: Together;
}
