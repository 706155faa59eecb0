// Defines the host facts that health and pages read: disks, names, logs, processes, clocks,
// containers and TLS endpoints.

import { z } from 'zod';

export interface DiskUse {
  /** The mount point. */
  mount: string;
  /** The parts of the stack that store data on it. */
  paths: string[];
  total_bytes: number;
  /** Space that an ordinary user can still write. */
  free_bytes: number;
  /** As df counts it: used space as a share of what ordinary users could use, 0..100. */
  used_pct: number;
  /** The same for inodes; null when the file system has no fixed number of them. */
  inodes_used_pct: number | null;
}

export interface Disks {
  /** One entry for each file system. Rejects when one does not answer within a few seconds. */
  use(): Promise<DiskUse[]>;
}

/** Name resolution as this machine does it, and its own addresses. */
export interface Resolution {
  /** Every address of the name, IPv4 and IPv6; empty when it has none. */
  addresses: string[];
  /** Why there is no address, as a phrase for people. */
  error: string | undefined;
}

export interface HostNames {
  /** Never rejects; gives up after a few seconds. */
  resolve(name: string): Promise<Resolution>;
  /** The addresses of this machine's interfaces, including loopback. */
  ownAddresses(): Promise<string[]>;
}

/** The log files that a person may read through the API. */
export interface LogFiles {
  /** Names without folder and extension, sorted. */
  names(): Promise<string[]>;
  /**
   * The last `lines` lines of one log, oldest first; undefined when there is no log of that name.
   */
  tail(name: string, lines: number): Promise<string[] | undefined>;
}

type Maybe<T> = T | Promise<T>;

/** Resource usage of the management process itself. */
export interface ProcessFigures {
  /** User and system together. */
  cpuSeconds: number;
  residentBytes: number;
  heapUsedBytes: number;
  heapTotalBytes: number;
  /** Null when the system does not report it. */
  openFiles: number | null;
  /** Milliseconds since 1970. */
  startedMs: number;
  /** How long the event loop has worked and waited since the start. */
  loopActiveSeconds: number;
  loopIdleSeconds: number;
  /** How late the event loop just ran a callback that was due at once. */
  loopLagSeconds: number;
}

export interface ProcessStatus {
  figures(): Maybe<ProcessFigures>;
}

/** A clock that is compared with ours. */
export interface ClockSource {
  /** Displayed to people: `database`. */
  name: string;
  /** Milliseconds since 1970; rejects when it does not answer in time. */
  readMs: () => Promise<number>;
  /** Resolution of the answer, in milliseconds. */
  resolutionMs: number;
}

/**
 * The containers of this machine as their runtime reports them, read only. A stack without a
 * runtime has no such port.
 */
export interface ContainerMount {
  /** Inside the container. */
  destination: string;
  /** The runtime's own term: volume, bind, tmpfs. */
  type: string;
  /** Volumes only. */
  name?: string;
}

export interface Container {
  name: string;
  image: string;
  /** The runtime's own term: running, exited, restarting, paused, created, removing or dead. */
  state: string;
  /** From its health check; undefined when it has none. */
  health: 'healthy' | 'unhealthy' | 'starting' | undefined;
  /** Exited containers only. */
  exit_code: number | undefined;
  /** True when the runtime should keep it running (restart policy `always` or `unless-stopped`). */
  kept_running: boolean;
  /** True when the kernel killed it for using too much memory. */
  out_of_memory: boolean;
  /** How often the runtime has restarted it. */
  restarts: number;
  mounts: ContainerMount[];
  /** Every name and address under which other containers can reach it. */
  hosts: string[];
}

export interface Containers {
  /**
   * Every container of the stack, running or not, by name. Throws an AppError (`unavailable`,
   * `upstream`) when the runtime does not answer or sends an invalid response.
   */
  list(): Promise<Container[]>;
}

/** What a TLS endpoint presents to a client that connects now. */
export interface TlsEndpoint {
  /** Displayed to people: `https://cot.example.org`. */
  name: string;
  host: string;
  port: number;
  /** The address to connect to, when it isn't the one that the name resolves to. */
  address?: string;
  /** Of the same service: they are inspected too, and the first that is reachable counts. */
  others?: readonly { host: string; port: number }[];
  /** The trusted authorities: `public` those of the system, `own` these and the stack's own CA. */
  trust: 'public' | 'own';
}

export interface TlsState {
  /** False when no certificate was received; `error` then gives the reason. */
  reachable: boolean;
  /**
   * True when the chain leads to a trusted authority, and the certificate is valid now and issued
   * to the host.
   */
  trusted: boolean;
  /** Why it is not reachable or not trusted, as a phrase for people. */
  error: string | undefined;
  /** ISO 8601; undefined when not reachable. */
  expires_at: string | undefined;
  subject: string | undefined;
  issuer: string | undefined;
  /** SHA-256 of the certificate, upper case with colons; undefined when not reachable. */
  fingerprint?: string | undefined;
}

export interface TlsEndpoints {
  /**
   * Connects, inspects the certificate, and closes. Never rejects; gives up after a few seconds.
   */
  inspect(endpoint: TlsEndpoint): Promise<TlsState>;
}

/**
 * Static files that ship with Holdfast: documents, scripts and style sheets. Nothing is
 * fetched from elsewhere.
 */
export interface Asset {
  body: Uint8Array<ArrayBuffer>;
  contentType: string;
}

export interface Assets {
  /** The asset of that plain name (`swagger-ui.css`, `docs/index.html`), or undefined. */
  read(name: string): Promise<Asset | undefined>;
}

/** Where the releases of a product are listed. */
export interface ReleaseSource {
  at: 'endoflife' | 'github';
  /** `postgresql` at endoflife.date, `caddyserver/caddy` at GitHub. */
  product: string;
}

export interface Release {
  version: string;
  /** When it was released; undefined if the list does not say. */
  releasedAt: Date | undefined;
  /** The URL of its release notes; undefined if the list does not say. */
  notes: string | undefined;
}

/** The lists of releases of the parts of the stack. */
export interface ReleaseFeed {
  /**
   * Every listed release, in any order, without pre-releases; none if the list does not know the
   * product. Throws an AppError: `unavailable` without network, `upstream` when the list can't be
   * read.
   */
  releases(source: ReleaseSource): Promise<Release[]>;
}

/** What upgrade.sh keeps of the last upgrade, in DATA_DIR. */
export const upgradeRecordSchema = z.object({
  /**
   * `upgraded`: the new version runs. `returned`: it failed, and the version before runs again.
   * `stuck`: the version before did not start either. `back`: somebody went back.
   */
  outcome: z.enum(['upgraded', 'returned', 'stuck', 'back']),
  from: z.string(),
  to: z.string(),
  /** ISO 8601. */
  at: z.string(),
  /** Why it failed; null if it did not. */
  reason: z.string().nullable(),
  /** Data that the way back put aside; null if there is none. */
  set_aside: z.string().nullable(),
  /** Where `upgrade.sh back` leads from the version that runs now; null if it leads nowhere. */
  way_back: z
    .object({
      version: z.string(),
      /** When that version was replaced; ISO 8601. */
      at: z.string(),
      /** The data of that moment; null once it is deleted. */
      snapshot: z.string().nullable(),
      /** True if a database was changed since, so that only the data of then fits. */
      schema_changed: z.boolean(),
    })
    .nullable(),
  /** True once somebody has looked at a failure. */
  cleared: z.boolean(),
});
export type UpgradeRecord = z.infer<typeof upgradeRecordSchema>;

export interface Upgrades {
  /** Undefined if there never was one. Throws an AppError if the record can't be read. */
  last(): Promise<UpgradeRecord | undefined>;
}

/** What this feature needs from outside, by the names in Deps. */
export interface HostPorts {
  logFiles: LogFiles;
  assets: Assets;
  process: ProcessStatus;
}

/** Used by health only. */
export interface MachinePorts {
  disks: Disks;
  tls: TlsEndpoints;
  hostNames: HostNames;
  /** Undefined without a container runtime. */
  containers: Containers | undefined;
  /** Undefined without DATA_DIR. */
  upgrades: Upgrades | undefined;
}
