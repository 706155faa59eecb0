// What the functions and jobs need of the outside, handed in by the host: the ports of every
// feature, and what the settings say.

import type { SingleFlight } from '@holdfast/kit/concurrency';
import type { Schedules } from '@holdfast/kit/cron';
import type { Log } from '@holdfast/kit/log';
import type { Place } from '../alerts/message.ts';
import type { Addresses } from '../alerts/transports.ts';
import type { AlertPorts } from '../alerts/port.ts';
import type { AuditPorts } from '../audit/port.ts';
import type { BackupPorts } from '../backups/port.ts';
import type { CoreContentPorts } from '../core/contents/port.ts';
import type { CoreDevicePorts } from '../core/devices/port.ts';
import type { CoreMissionPorts } from '../core/missions/port.ts';
import type { CorePorts } from '../core/port.ts';
import type { CoreTrackPorts } from '../core/tracks/port.ts';
import type { DatabasePorts } from '../database/port.ts';
import type { DevicePorts } from '../devices/port.ts';
import type { FeedPorts } from '../feeds/port.ts';
import type { Monitored } from '../health/monitored.ts';
import type { HealthPorts } from '../health/port.ts';
import type { HostPorts } from '../host/port.ts';
import type { RequestStatistics } from '../host/request-statistics.ts';
import type { IdentityPorts } from '../identity/port.ts';
import type { JobPorts } from '../jobs/port.ts';
import type { RetentionPorts } from '../retention/port.ts';
import type { SettingView } from '../settings/load.ts';
import type { Thresholds } from '../settings/status.ts';
import type { Settings } from '../settings/table.ts';
import type { SimulationPorts } from '../simulation/port.ts';
import type { SignInPorts } from '../sign-in/port.ts';

export interface Deps
  extends
    AlertPorts,
    AuditPorts,
    BackupPorts,
    CoreContentPorts,
    CoreDevicePorts,
    CoreMissionPorts,
    CorePorts,
    CoreTrackPorts,
    DatabasePorts,
    DevicePorts,
    FeedPorts,
    HealthPorts,
    HostPorts,
    IdentityPorts,
    JobPorts,
    RetentionPorts,
    SignInPorts,
    SimulationPorts {
  release: string;
  startedAt: Date;
  now: () => Date;
  settings: Settings;
  settingsShown: SettingView[];
  thresholds: Thresholds;
  /** This stack, as alerts speak of it. */
  place: Place;
  addresses: Addresses;
  schedules: Schedules;
  /** That of the core, by its name in the IANA database. */
  timeZone: string;
  log: Log;
  requests: RequestStatistics;
  monitored: Monitored;
  together: SingleFlight;
}
