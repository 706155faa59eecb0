// What the functions and jobs need of the outside, handed in by the host.

import type { SingleFlight } from '@holdfast/kit/concurrency';
import type { Schedules } from '@holdfast/kit/cron';
import type { Directory } from '@holdfast/kit/directory';
import type { Log } from '@holdfast/kit/log';
import type { Place } from '../alerts/message.ts';
import type { Addresses } from '../alerts/outlets.ts';
import type { Alerts, Heartbeat, Outlets } from '../alerts/port.ts';
import type { Audit } from '../audit/port.ts';
import type { ClientKeys, CoreDevices, CoreEnrollment } from '../core/devices/port.ts';
import type { Core, CoreAuthority, CoreNotices, CoreRetention } from '../core/port.ts';
import type { CoreVacuum, GrowthBook, GrowthFacts, VacuumFacts } from '../database/port.ts';
import type { AdminGrants, Bundles, CertificateBook, EnrollmentTokens } from '../devices/port.ts';
import type { Monitored } from '../health/monitored.ts';
import type { HealthCache, HealthTrend } from '../health/port.ts';
import type { Assets, LogFiles, ProcessStatus } from '../host/port.ts';
import type { RequestStatistics } from '../host/request-statistics.ts';
import type { Exclusive, Identity } from '../identity/port.ts';
import type { JobRuns, JobStatistics, OpsJobs } from '../jobs/port.ts';
import type { RetentionBook, RetentionFacts, RetentionFiles } from '../retention/port.ts';
import type { ShownSetting } from '../settings/load.ts';
import type { Settings } from '../settings/table.ts';
import type { Thresholds } from '../settings/threshold-figures.ts';
import type { Authenticator, SignIns } from '../sign-in/port.ts';

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
  doors: Authenticator;
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
  together: SingleFlight;
}
