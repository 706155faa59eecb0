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
  };
}

/** Creates missing directories. Started as root, the database runs as another user and must be able to enter the root. */
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
  flows: 1880,
} as const;

export type Ports = Record<keyof typeof BASE_PORTS, number>;

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
