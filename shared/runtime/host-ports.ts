// The HOST service binding, the worker's side: ports whose methods are calls to the Node host.

import { AppError } from '../domain/app-error.ts';
import { bytesOfBase64 } from '../domain/base64.ts';
import type { AdminGrants } from '../ports/admin-grants.ts';
import type { Alerts } from '../ports/alerts.ts';
import type { Asset, Assets } from '../ports/assets.ts';
import type { Audit } from '../ports/audit.ts';
import type { Bundles } from '../ports/bundles.ts';
import type { ClientKeys } from '../ports/client-keys.ts';
import type { ConfigurationFiles } from '../ports/configuration-files.ts';
import type { Containers } from '../ports/containers.ts';
import type { Core } from '../ports/core.ts';
import type { CoreAuthority } from '../ports/core-authority.ts';
import type { CoreDevices } from '../ports/core-devices.ts';
import type { CoreEnrollment } from '../ports/core-enrollment.ts';
import type { CoreFiles } from '../ports/core-files.ts';
import type { CoreNotices } from '../ports/core-notices.ts';
import type { CoreRetention } from '../ports/core-retention.ts';
import type { CoreVacuum } from '../ports/core-vacuum.ts';
import type { Directory } from '../ports/directory.ts';
import type { Disks } from '../ports/disks.ts';
import type { Doors } from '../ports/doors.ts';
import type { HealthCache } from '../ports/health-cache.ts';
import type { Heartbeat } from '../ports/heartbeat.ts';
import type { HostNames } from '../ports/host-names.ts';
import type { JobStatistics } from '../ports/job-statistics.ts';
import type { LogFiles } from '../ports/log-files.ts';
import type { Notifier } from '../ports/notifier.ts';
import type { ProcessStatus } from '../ports/process-status.ts';
import type { RequestStatistics } from '../ports/request-statistics.ts';
import type { RetentionFiles } from '../ports/retention-files.ts';
import type { SignIns } from '../ports/sign-ins.ts';
import type { TlsEndpoints } from '../ports/tls-endpoints.ts';
import { EXPOSED, type ExposedPort, type Outcome, type WireAsset } from './host-calls.ts';

/** A service binding of workerd. */
export interface ServiceBinding {
  fetch(url: string, init: RequestInit): Promise<Response>;
}

export type HostCall = (port: ExposedPort, method: string, args: unknown[]) => Promise<unknown>;

/** Calls through the binding; rethrows what the host's method threw. */
export function hostCall(host: ServiceBinding, token: string): HostCall {
  return async function call(port, method, args) {
    const response = await host.fetch('http://host/', {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ port, method, args: withoutLast(args) }),
    });
    if (!response.ok) throw new Error(`the host answered ${response.status} to ${port}.${method}`);
    const outcome = (await response.json()) as Outcome;
    if (!('error' in outcome)) return outcome.value;
    const { code, message } = outcome.error;
    throw code === undefined ? new Error(message) : new AppError(code, message);
  };
}

/** JSON would make null of what was left out. */
function withoutLast(args: unknown[]): unknown[] {
  return args.slice(0, args.findLastIndex((each) => each !== undefined) + 1);
}

/** The ports behind the binding, by their names there. */
interface HostPorts {
  directory: Directory;
  doors: Doors;
  signIns: SignIns;
  audit: Audit;
  core: Core;
  coreEnrollment: CoreEnrollment;
  coreDevices: CoreDevices;
  coreRetention: CoreRetention;
  retentionFiles: RetentionFiles;
  coreVacuum: CoreVacuum;
  coreNotices: CoreNotices;
  coreAuthority: CoreAuthority;
  adminGrants: AdminGrants;
  clientKeys: ClientKeys;
  bundles: Bundles;
  disks: Disks;
  coreFiles: CoreFiles;
  tls: TlsEndpoints;
  hostNames: HostNames;
  containers: Containers;
  configurationFiles: ConfigurationFiles;
  health: HealthCache;
  alerts: Alerts;
  smtp: Notifier;
  heartbeat: Heartbeat;
  jobStatistics: JobStatistics;
  requests: RequestStatistics;
  process: ProcessStatus;
  logFiles: LogFiles;
}

/** A port of the host. */
export function hostPort<N extends keyof HostPorts>(call: HostCall, port: N): HostPorts[N] {
  return Object.fromEntries(
    EXPOSED[port].map((method) => [method, (...args: unknown[]) => call(port, method, args)]),
  ) as unknown as HostPorts[N];
}

export function hostAssets(call: HostCall): Assets {
  return {
    async read(name): Promise<Asset | undefined> {
      const asset = (await call('assets', 'read', [name])) as WireAsset | undefined;
      return asset && { ...asset, body: bytesOfBase64(asset.body) };
    },
  };
}
