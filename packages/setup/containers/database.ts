// Runs the role `database`: prepares the cluster of a volume, then becomes PostgreSQL as the
// container's first process. Locks the volume, because two containers on one volume would destroy
// the cluster.

import { closeSync, existsSync, openSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf, explainFileError, messageOf, StackError } from '@holdfast/kit/app-error';
import { mountPointOf, mountsIn } from '@holdfast/kit/files';
import { checkMajor, makeCluster, programEnvironment, renewWantedState } from '@holdfast/stack/database/cluster';
import { serverArguments, writeAccessRules } from '@holdfast/stack/database/postmaster';
import { type DatabaseName, type DatabasePasswords, wantedState } from '@holdfast/stack/database/roles';
import type { DatabaseTuning } from '../../../shared/settings/tuning.ts';
import { CLUSTER, finishSwitch } from '../database-upgrade/clusters.ts';
import { clusterOf } from '../database-upgrade/server.ts';
import { anotherMajor, bringSchemaUpToDate, type ReleaseSchema } from '../release-files/schema.ts';

/**
 * Throws a StackError if the directory is not on a volume: the next update would delete its data.
 */
export function proveVolume(directory: string, mountinfo: string): void {
  let path: string;
  try {
    path = realpathSync(directory);
  } catch (error) {
    throw new StackError(`Couldn't access ${directory}.`, `mount a volume at ${directory}`, error);
  }
  const point = mountPointOf(path, mountsIn(mountinfo)) ?? '/';
  if (point !== '/') return;
  throw new StackError(
    `${directory} is not on a volume: recreating the container would delete the database.`,
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
  /** Databases to create. Roles are created for the given passwords. */
  databases: DatabaseName[];
  passwords: Partial<DatabasePasswords>;
  tuning: DatabaseTuning;
  /** The network of the flow engine. */
  flowsFrom?: string;
  /** Set for the core database of a release, which uses the PostgreSQL of its image. */
  release?: { major: string; schema: ReleaseSchema; settings: Record<string, string> };
}

export interface Becoming {
  program: string;
  args: string[];
  environment: NodeJS.ProcessEnv;
}

/** Set in a process that holds the lock of its volume. */
export const LOCKED_VARIABLE = 'HOLDFAST_VOLUME_LOCKED';
/** Exit code if another process holds the lock. Used for nothing else. */
const LOCK_TAKEN = 75;
const LOCK = 'lock';

/** Runs the same program again, with the lock of the volume. */
export function underLock({ directory }: DatabasePlan, environment: NodeJS.ProcessEnv): Becoming {
  refuseRoot();
  proveVolume(directory, readFileSync('/proc/self/mountinfo', 'utf8'));
  proveWritable(join(directory, LOCK));
  const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  return locked(directory, again, { ...environment, [LOCKED_VARIABLE]: '1' });
}

/** Updates the cluster and returns the program to become. The caller must hold the lock. */
export async function preparedServer(plan: DatabasePlan): Promise<Becoming> {
  const { directory, binaries, passwords, databases, listen, port, tuning, flowsFrom, release } = plan;
  const pgdata = join(directory, CLUSTER);
  finishSwitch(directory);
  if (release === undefined) checkMajor(pgdata);
  else checkMajor(pgdata, release.major, anotherMajor(release.major));
  clearStalePidFile(pgdata);
  const cluster = clusterOf(plan, pgdata);
  const sql = wantedState(passwords, databases);
  if (!(await makeCluster(cluster, sql))) await renewWantedState(cluster, sql);
  const hbaFile = join(directory, 'pg_hba.conf');
  if (release !== undefined) await bringSchemaUpToDate(cluster, release.schema, { hbaFile, tuning });
  writeAccessRules(hbaFile, { from: 'all', ...(flowsFrom === undefined ? {} : { flowsFrom }) });
  const more = release?.settings ?? {};
  const args = serverArguments(pgdata, { listen, port, hbaFile, tuning, more });
  return locked(directory, [join(binaries, 'postgres'), ...args], programEnvironment());
}

/** Replaces this process. Returns only with an error. */
export function become({ program, args, environment }: Becoming): never {
  if (process.execve === undefined) throw new Error('this Node is too old: version 22.15 or newer is needed');
  return process.execve(program, args, environment);
}

const UNDER_LOCK = `exec 9>>"$1" || exit 74
flock -n 9 || { echo "{\\"level\\":\\"error\\",\\"role\\":\\"database\\",\\"event\\":\\"database.failed\\",\\"error\\":\\"$1 is locked: another container uses this volume. Remedy: stop it, or use another volume\\"}"; exit ${LOCK_TAKEN}; }
shift
exec "$@"`;

/** The program and its children inherit the lock. */
function locked(directory: string, command: string[], environment: NodeJS.ProcessEnv): Becoming {
  const args = ['sh', '-c', UNDER_LOCK, 'sh', join(directory, LOCK), ...command];
  return { program: '/bin/sh', args, environment };
}

/** We hold the lock, so the file is from a server that has ended. */
function clearStalePidFile(pgdata: string): void {
  const file = join(pgdata, 'postmaster.pid');
  if (existsSync(file)) rmSync(file);
}

/** Checked here for a better message than the shell's that takes the lock. */
function proveWritable(file: string): void {
  try {
    closeSync(openSync(file, 'a', 0o600));
  } catch (error) {
    if (!['EACCES', 'EPERM', 'EROFS'].includes(codeOf(error) ?? '')) throw explainFileError(error, file);
    const account = `${process.getuid?.()}:${process.getgid?.()}`;
    throw new StackError(
      `${account} couldn't write ${file}: ${messageOf(error)}.`,
      `mount the volume writable, and make that user the owner of everything in it: chown -R ${account}`,
      error,
    );
  }
}

function refuseRoot(): void {
  if (process.getuid?.() !== 0) return;
  throw new StackError(
    'PostgreSQL refuses to run as root.',
    'run the service as the owner of the volume: user: "10002:10002"',
  );
}
