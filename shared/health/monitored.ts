// Lists everything that the health modules read, provided by the host.

import type { Schedules } from '@holdfast/kit/cron';
import type { Directory } from '@holdfast/kit/directory';
import type { Alerts, Channel, Heartbeat } from '../alerts/port.ts';
import type { Backups } from '../backups/port.ts';
import type { CoreDatabase } from '../core/database/port.ts';
import type { ClientKeys, CoreDevices, CoreEnrollment } from '../core/devices/port.ts';
import type { Core, CoreFiles, CoreRetention } from '../core/port.ts';
import type { GrowthHistory, GrowthFacts, State } from '../database/port.ts';
import type { CertificateStore } from '../devices/port.ts';
import type { ClockSource, MachinePorts, ReleaseFeed, ReleaseSource, TlsEndpoint } from '../host/port.ts';
import type { Identity } from '../identity/port.ts';
import type { JobRuns } from '../jobs/port.ts';
import type { RetentionHistory, RetentionFacts, RetentionFiles, WantedRetention } from '../retention/port.ts';
import type { ConfigurationFiles } from '../settings/setting.ts';
import type { DatabaseTuning } from '../settings/tuning.ts';

export interface WantedContainer {
  /** The reverse proxy as seen from here; undefined if TRUSTED_PROXIES names no single address. */
  proxyAddress: string | undefined;
  /** Where it speaks HTTPS; the public port can be another one. */
  proxyPort: number;
}

/** The values that the settings request and that health compares with the actual ones. */
export interface Wanted {
  tuning: DatabaseTuning;
  retention: WantedRetention;
  backups: WantedBackups | undefined;
  /** PGDATA of the core's database as this machine sees it; undefined if unknown. */
  databaseDirectory: string | undefined;
  /** The host of CORE_DATABASE_URL; undefined if it names none. */
  databaseHost: string | undefined;
  /** Host names that must resolve to this machine, without IP addresses. */
  publicNames: string[];
  /** Addresses that count as this machine's although no interface has them, as behind NAT. */
  publicAddresses: string[];
  tlsEndpoints: TlsEndpoint[];
  /**
   * Our own container, whose interfaces and files differ from the machine's; undefined outside
   * containers.
   */
  container: WantedContainer | undefined;
  /** The endpoints of the core; undefined if the variable is not set. */
  coreEndpoints: Record<'api' | 'enrollment' | 'streaming', TlsEndpoint | undefined>;
}

/** Undefined if no backups are wanted. */
export interface WantedBackups {
  /** BACKUP_CRON, in the time zone of the machine. */
  cron: string;
}

/** A program of the stack whose releases are watched. */
export interface Part {
  name: string;
  source: ReleaseSource;
  version: () => Promise<string>;
  /** How many leading numbers of a release must be those of ours: one for `16.14`, none for any. */
  cycleParts: number;
  /** The URL of release notes, where the list has none. */
  notes?: (version: string) => string;
  /** Its releases need not be listed: then nothing is reported. */
  mayBeUnlisted?: boolean;
}

export interface Monitored extends MachinePorts {
  wanted: Wanted;
  now: () => Date;
  /** When this process began. */
  startedAt: Date;
  coreDatabase: CoreDatabase;
  state: State;
  /** Undefined without CORE_DATA_DIR. */
  coreFiles: CoreFiles | undefined;
  configurationFiles: ConfigurationFiles;
  identity: Pick<Identity, 'me' | 'version' | 'accounts' | 'appPasswords'>;
  core: Pick<Core, 'status' | 'stream' | 'certificates'>;
  coreDevices: CoreDevices;
  coreEnrollment: CoreEnrollment;
  clientKeys: ClientKeys;
  jobRuns: Pick<JobRuns, 'summaries'>;
  backups: Pick<Backups, 'state'>;
  certificateStore: CertificateStore;
  coreRetention: Pick<CoreRetention, 'policy' | 'schedule' | 'runs'>;
  retentionFiles: Pick<RetentionFiles, 'read'>;
  retentionFacts: RetentionFacts;
  retentionHistory: RetentionHistory;
  growthFacts: GrowthFacts;
  growthHistory: GrowthHistory;
  schedules: Schedules;
  /** The time zone of the core. */
  timeZone: string;
  directory: Directory;
  clocks: ClockSource[];
  parts: Part[];
  /** Undefined if the check for releases is off. */
  releases: ReleaseFeed | undefined;
  alerts: Pick<Alerts, 'summary' | 'trouble'>;
  /** The number of recipients on each channel. */
  recipients: Partial<Record<Channel, number>>;
  /** Undefined if no heartbeat is set up. */
  heartbeat: Pick<Heartbeat, 'state'> | undefined;
}
