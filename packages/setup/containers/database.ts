// The role `database`: prepares the cluster of a volume and becomes PostgreSQL, as the first process of its container. Two
// containers on one volume would destroy it, and process numbers say nothing across containers: a lock on the volume does.

import { closeSync, existsSync, openSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf, explainFileError, messageOf, StackError } from '@holdfast/kit/app-error';
import { mountPointOf, mountsIn } from '@holdfast/kit/files';
import {
  checkMajor,
  type Cluster,
  makeCluster,
  programEnvironment,
  renewWantedState,
} from '@holdfast/stack/database/cluster';
import { serverArguments, writeAccessRules } from '@holdfast/stack/database/postmaster';
import { type DatabaseName, type DatabasePasswords, wantedState } from '@holdfast/stack/database/roles';
import type { DatabaseTuning } from '../../../shared/settings/tuning.ts';
import { anotherMajor, bringSchemaUpToDate, type ReleaseSchema } from '../release-files/schema.ts';
import { CLUSTER } from './places.ts';

/** Rejects a directory on the container's own file system, with which everything would be gone at the next update. */
export function proveVolume(directory: string, mountinfo: string): void {
  let path: string;
  try {
    path = realpathSync(directory);
  } catch (error) {
    throw new StackError(`${directory} cannot be reached.`, `mount a volume at ${directory}`, error);
  }
  const point = mountPointOf(path, mountsIn(mountinfo)) ?? '/';
  if (point !== '/') return;
  throw new StackError(
    `${directory} lies in the container itself: recreating the container would lose everything in the database.`,
    `mount a volume at ${directory}, as compose.yaml does`,
  );
}

export interface DatabasePlan {
  /** The volume. */
  directory: string;
  /** Directory of the PostgreSQL programs. */
  binaries: string;
  listen: string;
  port: number;
  /** Roles and databases are made of the passwords that are given. */
  databases: DatabaseName[];
  passwords: Partial<DatabasePasswords>;
  tuning: DatabaseTuning;
  /** The network of the flow engine. */
  flowsFrom?: string;
  /** The core's database of a release, on the PostgreSQL of its image. */
  release?: { major: string; schema: ReleaseSchema; settings: Record<string, string> };
}

export interface Becoming {
  program: string;
  args: string[];
  environment: NodeJS.ProcessEnv;
}

/** Says that this process was started under the lock of its volume. */
export const LOCKED_VARIABLE = 'HOLDFAST_VOLUME_LOCKED';
/** What flock answers when somebody else holds the lock; nothing else here ends so. */
const LOCK_TAKEN = 75;
const LOCK = 'lock';

/** The same program once more, under the lock of the volume. */
export function underLock({ directory }: DatabasePlan, environment: NodeJS.ProcessEnv): Becoming {
  refuseRoot();
  proveVolume(directory, readFileSync('/proc/self/mountinfo', 'utf8'));
  proveWritable(join(directory, LOCK));
  const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  return locked(directory, again, { ...environment, [LOCKED_VARIABLE]: '1' });
}

/** Brings the cluster up to date and says what to become. To be called under the lock. */
export async function preparedServer(plan: DatabasePlan): Promise<Becoming> {
  const { directory, binaries, passwords, databases, listen, port, tuning, flowsFrom, release } = plan;
  const pgdata = join(directory, CLUSTER);
  if (release === undefined) checkMajor(pgdata);
  else checkMajor(pgdata, release.major, anotherMajor(release.major));
  clearStalePidFile(pgdata);
  const cluster: Cluster = {
    pgdata,
    account: { command: (program, args) => ({ program, args }), give: () => undefined },
    binaries,
    guard: { own: () => undefined, free: () => undefined },
    aborted: new AbortController().signal,
  };
  const sql = wantedState(passwords, databases);
  if (!(await makeCluster(cluster, sql))) await renewWantedState(cluster, sql);
  const hbaFile = join(directory, 'pg_hba.conf');
  if (release !== undefined) await bringSchemaUpToDate(cluster, release.schema, { hbaFile, tuning });
  writeAccessRules(hbaFile, { from: 'all', ...(flowsFrom === undefined ? {} : { flowsFrom }) });
  const more = release?.settings ?? {};
  const args = serverArguments(pgdata, { listen, port, hbaFile, tuning, more });
  return locked(directory, [join(binaries, 'postgres'), ...args], programEnvironment());
}

/** Takes the place of this process; returns only by an error. */
export function become({ program, args, environment }: Becoming): never {
  if (process.execve === undefined) throw new Error('this Node cannot replace itself: it needs 22.15 or newer');
  return process.execve(program, args, environment);
}

const UNDER_LOCK = `exec 9>>"$1" || exit 74
flock -n 9 || { echo "{\\"level\\":\\"error\\",\\"role\\":\\"database\\",\\"event\\":\\"database.failed\\",\\"error\\":\\"$1 is locked: another container works on this volume. Remedy: end it, or give this one a volume of its own\\"}"; exit ${LOCK_TAKEN}; }
shift
exec "$@"`;

/** The lock stays open in the program that comes of it, and in that program's children. */
function locked(directory: string, command: string[], environment: NodeJS.ProcessEnv): Becoming {
  const args = ['sh', '-c', UNDER_LOCK, 'sh', join(directory, LOCK), ...command];
  return { program: '/bin/sh', args, environment };
}

/** Nobody else has the lock: whatever stands in the file is of a server that is gone. */
function clearStalePidFile(pgdata: string): void {
  const file = join(pgdata, 'postmaster.pid');
  if (existsSync(file)) rmSync(file);
}

/** The shell that takes the lock could say no more than which file it is. */
function proveWritable(file: string): void {
  try {
    closeSync(openSync(file, 'a', 0o600));
  } catch (error) {
    if (!['EACCES', 'EPERM', 'EROFS'].includes(codeOf(error) ?? '')) throw explainFileError(error, file);
    const account = `${process.getuid?.()}:${process.getgid?.()}`;
    throw new StackError(
      `${file} cannot be written by ${account}: ${messageOf(error)}.`,
      `mount the volume writable, and give it with everything in it to that account: chown -R ${account}`,
      error,
    );
  }
}

function refuseRoot(): void {
  if (process.getuid?.() !== 0) return;
  throw new StackError(
    'PostgreSQL refuses to run as root.',
    'let the service run as the user that owns the volume: user: "10002:10002"',
  );
}
