// Defines the files in the data directory of an embedded stack (--data DIR), and its ports.

import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { codeOf, explainFileError, StackError } from '@holdfast/kit/app-error';
import { UsageError } from '@holdfast/kit/command';

export interface Layout {
  root: string;
  /** The database cluster; `pgdata.new` until it is complete. */
  pgdata: string;
  /** CORE_DATA_DIR: the files of the core. */
  core: string;
  logs: string;
  /** DATA_DIR: files of the management process. */
  management: string;
  /** Files of the flow engine; exists only with --flows. */
  flows: string;
  /** Files of the running stack only: lock, process list, compile cache. */
  run: string;
  lock: string;
  processes: string;
  secrets: string;
  stack: string;
  /** Settings of a restored stack; without it those of the repository count. */
  env: string;
}

/** Paths below an absolute data directory. */
export function layoutOf(root: string): Layout {
  const run = join(root, 'run');
  return {
    root,
    pgdata: join(root, 'pgdata'),
    core: join(root, 'core'),
    logs: join(root, 'logs'),
    management: join(root, 'management'),
    flows: join(root, 'flows'),
    run,
    lock: join(run, 'lock'),
    processes: join(run, 'processes.json'),
    secrets: join(root, 'secrets.json'),
    stack: join(root, 'stack.json'),
    env: join(root, '.env'),
  };
}

/**
 * Creates missing directories. Started as root, the database runs as another user and must be able
 * to enter the root.
 */
export function makeDirectories(layout: Layout): void {
  const asRoot = process.getuid?.() === 0;
  makeDirectory(layout.root, asRoot ? 0o711 : 0o700);
  for (const directory of [layout.core, layout.logs, layout.management, layout.run]) makeDirectory(directory, 0o700);
}

/** Creates the directories of the flow engine and its certificate. */
export function makeFlowsDirectories(layout: Layout, certificate: string): void {
  for (const directory of [layout.flows, certificate]) makeDirectory(directory, 0o700);
}

function makeDirectory(path: string, mode: number): void {
  try {
    makeParents(dirname(path));
    makeOne(path, mode);
    if (!statSync(path).isDirectory()) throw Object.assign(new Error(path), { code: 'ENOTDIR' });
  } catch (error) {
    throw explainFileError(error, path);
  }
  refuseStrangers(path);
}

/** One by one: a recursive mkdir never returns below /proc. */
function makeParents(path: string): void {
  if (existsSync(path)) return;
  makeParents(dirname(path));
  makeOne(path, 0o755);
}

/** Another start may create the same directory at the same time. */
function makeOne(path: string, mode: number): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

/** The owner of a directory could put links into it, and so choose which file we write. */
function refuseStrangers(path: string): void {
  const { uid } = statSync(path);
  const me = process.getuid?.();
  if (uid === me || uid === 0) return;
  throw new StackError(
    `${path} belongs to user ${uid}, but you are user ${me}.`,
    `start as the owner, or choose another directory with --data DIR`,
  );
}

/** Ports of the embedded stack before the offset. */
export const BASE_PORTS = {
  api: 8080,
  portal: 3000,
  core: 8443,
  enrollment: 8446,
  streaming: 8089,
  database: 5432,
  identity: 9000,
  ldap: 3389,
  /** Not 4222, where a service of the distribution may listen. Only with --cluster. */
  nats: 4223,
  flows: 1880,
  backup: 8090,
} as const;

export type Ports = Record<keyof typeof BASE_PORTS, number>;

/**
 * Ports that browsers and Node's fetch refuse for HTTP and HTTPS: the "bad ports" of the Fetch
 * standard (https://fetch.spec.whatwg.org/#port-blocking).
 */
export const BLOCKED_PORTS: readonly number[] = [
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
  6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

/** The ports that serve HTTP or HTTPS, with the names that messages use. */
const WEB_PORTS = {
  api: 'API and console',
  portal: 'portal',
  core: 'API of the core',
  enrollment: 'enrollment',
  identity: 'identity provider',
  flows: 'flow engine',
  backup: 'backup service',
} as const satisfies Partial<Record<keyof Ports, string>>;
const OFFSET_STEP = 100;

export interface BlockedPort {
  port: number;
  /** The service that would use the port. */
  purpose: string;
  /** The next multiple of 100 that blocks no port. */
  nextOffset: number;
}

/** How far the ports of two core nodes are apart. */
export const NODE_PORT_STEP = 10;

/** What a stack has beside its fixed parts. `nodes`: how many cores. */
export interface WantedParts {
  flows: boolean;
  nodes?: number | undefined;
}

/** The first web port that browsers would refuse with this offset; undefined if there is none. */
export function blockedPort(offset: number, parts: WantedParts): BlockedPort | undefined {
  const blocked = firstBlocked(offset, parts);
  if (blocked === undefined) return undefined;
  let nextOffset = offset;
  do nextOffset = (Math.floor(nextOffset / OFFSET_STEP) + 1) * OFFSET_STEP;
  while (firstBlocked(nextOffset, parts) !== undefined);
  return { ...blocked, nextOffset };
}

function firstBlocked(
  offset: number,
  { flows, nodes = 1 }: WantedParts,
): Pick<BlockedPort, 'port' | 'purpose'> | undefined {
  const further = Array.from({ length: nodes - 1 }, (_, index) => index + 2);
  const ofNodes = further.flatMap((node) => {
    const shift = (node - 1) * NODE_PORT_STEP + offset;
    return [
      { port: BASE_PORTS.core + shift, purpose: `API of core-${node}` },
      { port: BASE_PORTS.enrollment + shift, purpose: `enrollment of core-${node}` },
    ];
  });
  const fixed = Object.entries(WEB_PORTS)
    .filter(([name]) => flows || name !== 'flows')
    .map(([name, purpose]) => ({ port: BASE_PORTS[name as keyof typeof WEB_PORTS] + offset, purpose }));
  return [...fixed, ...ofNodes].find(({ port }) => BLOCKED_PORTS.includes(port));
}

/** The highest base port. An offset must keep it below 65536. */
export const HIGHEST_BASE_PORT = 9000;

/** The ports of a stack. */
export function portsWithOffset(offset: number): Ports {
  const shifted = Object.entries(BASE_PORTS).map(([name, port]) => [name, port + offset]);
  return Object.fromEntries(shifted) as Ports;
}

/** The absolute path of `--data DIR`; by default `data` in `home`. Throws a UsageError. */
export function dataDirectory(value: string | undefined, { home, cwd }: { home: string; cwd: string }): string {
  if (value === undefined) return join(home, 'data');
  if (value === '' || /\p{Cc}/u.test(value))
    throw new UsageError('--data needs a directory name without control characters');
  return resolve(cwd, value);
}
