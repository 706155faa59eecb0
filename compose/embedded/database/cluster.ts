// The files of the PostgreSQL cluster: made once in pgdata.new and renamed when complete, roles and databases brought
// to the wanted state before every start, in single-user mode. So the superuser needs no password and can never log in
// over the network.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { syncDirectory } from '../atomic-file.ts';
import type { Guard } from '../guard.ts';
import type { Layout } from '../layout.ts';
import { identify, workingDirectory } from '../process-table.ts';
import { explainFileError, StackError } from '../stack-error.ts';
import type { Account } from './account.ts';
import { wantedState } from './roles.ts';

/** The major version that the product keeps for its life; its binaries come from npm. */
export const MAJOR = '16';

const HBA = `# Written by Holdfast at every start. The superuser cannot log in; use single-user mode while the stack is stopped.
host all postgres all reject
host all all 127.0.0.1/32 scram-sha-256
`;

export interface Cluster {
  layout: Layout;
  account: Account;
  /** Directory of the PostgreSQL programs. */
  binaries: string;
  /** Ends a program that outlives us. */
  guard: Pick<Guard, 'own' | 'free'>;
}

export interface DatabasePasswords {
  core: string;
  app: string;
}

/** Refuses a cluster of another major version, unchanged. */
export function checkMajor(layout: Layout): void {
  if (!existsSync(layout.pgdata)) return;
  const file = join(layout.pgdata, 'PG_VERSION');
  const found = existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
  if (found === MAJOR) return;
  if (found === undefined) {
    throw new StackError(
      `${layout.pgdata} is no PostgreSQL cluster (it has no PG_VERSION).`,
      'move it away, or use another directory with --data DIR',
    );
  }
  throw new StackError(
    `${layout.pgdata} was made by PostgreSQL ${found}, this Holdfast runs PostgreSQL ${MAJOR}. Nothing was changed.`,
    `dump it with pg_dump of version ${found} and load it into a new directory (--data DIR), or start the Holdfast that made it`,
  );
}

/** Makes the cluster when there is none; true when it was made now. A half-made one of a crash is thrown away first. */
export async function makeCluster(cluster: Cluster, passwords: DatabasePasswords): Promise<boolean> {
  const { layout, account } = cluster;
  const fresh = `${layout.pgdata}.new`;
  rmSync(fresh, { recursive: true, force: true });
  if (existsSync(layout.pgdata)) return false;
  try {
    mkdirSync(fresh, { mode: 0o700 });
    account.give(fresh);
    await run(cluster, 'initdb', ['-D', fresh, '-U', 'postgres', '-A', 'reject', '-E', 'UTF8', '--locale=C'], '');
    await applyWantedState(cluster, fresh, passwords, true);
    renameSync(fresh, layout.pgdata);
    syncDirectory(dirname(layout.pgdata));
    return true;
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true });
    throw explainFileError(error, layout.pgdata);
  }
}

/** Access rules, roles, passwords: as this release and these settings want them. The server must not run. */
export async function applyWantedState(
  cluster: Cluster,
  pgdata: string,
  passwords: DatabasePasswords,
  isNew: boolean,
): Promise<void> {
  const hba = join(pgdata, 'pg_hba.conf');
  try {
    writeFileSync(hba, HBA, { mode: 0o600 });
    cluster.account.give(hba);
  } catch (error) {
    throw explainFileError(error, hba);
  }
  const args = [
    '--single',
    '-j',
    '-D',
    pgdata,
    '-c',
    'log_min_error_statement=panic',
    '-c',
    'log_min_messages=error',
    'postgres',
  ];
  const output = await run(cluster, 'postgres', args, wantedState(passwords, isNew));
  const failure = /(?:ERROR|FATAL|PANIC): .*/.exec(output)?.[0];
  if (failure !== undefined) throw failed(failure, pgdata);
}

/** Removes postmaster.pid when its process is no PostgreSQL of this directory; ends a server that was left behind. */
export async function clearStaleServer(layout: Layout): Promise<'none' | 'stale file' | 'server ended'> {
  const file = join(layout.pgdata, 'postmaster.pid');
  if (!existsSync(file)) return 'none';
  const written = Number(readFileSync(file, 'utf8').split('\n')[0]);
  const single = written < 0;
  const pid = Math.abs(written);
  const identity = Number.isInteger(pid) && pid > 1 ? identify(pid) : undefined;
  if (identity === undefined || workingDirectory(pid) !== layout.pgdata) {
    rmSync(file, { force: true });
    return 'stale file';
  }
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    if (signal === (single ? 'SIGINT' : 'SIGTERM')) continue;
    process.kill(pid, signal);
    for (let waited = 0; waited < 10_000 && identify(pid)?.startTicks === identity.startTicks; waited += 50) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    if (identify(pid)?.startTicks !== identity.startTicks) break;
  }
  return 'server ended';
}

/** The environment of every PostgreSQL program: nothing of ours, so that no secret is in it. */
export function programEnvironment(): NodeJS.ProcessEnv {
  return { PATH: '/usr/bin:/bin', LC_ALL: 'C', ...(process.env['TZ'] === undefined ? {} : { TZ: process.env['TZ'] }) };
}

async function run(cluster: Cluster, name: string, args: string[], input: string): Promise<string> {
  const { program, args: all, ...identity } = cluster.account.command(join(cluster.binaries, name), args);
  const child = spawn(program, all, {
    ...identity,
    cwd: '/',
    env: programEnvironment(),
    detached: true,
    stdio: 'pipe',
  });
  if (child.pid !== undefined) cluster.guard.own(child.pid, 'SIGTERM');
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stdin.on('error', () => undefined).end(input);
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    if (code === 0) return output;
  } finally {
    if (child.pid !== undefined) cluster.guard.free(child.pid);
  }
  const line = /(?:initdb: error|FATAL|PANIC|ERROR): .*/.exec(output)?.[0] ?? output.trim().split('\n').at(-1) ?? '';
  throw failed(line, cluster.layout.pgdata);
}

function failed(line: string, pgdata: string): Error {
  if (/No space left on device/.test(line)) return Object.assign(new Error(line), { code: 'ENOSPC' });
  if (/pre-existing shared memory block|lock file .* already exists/.test(line))
    return Object.assign(new Error(line), { code: 'STILL_RUNNING' });
  return new StackError(
    `PostgreSQL cannot prepare ${pgdata}: ${line}`,
    'read the message; DIR/logs/database.log has what came before it',
  );
}
