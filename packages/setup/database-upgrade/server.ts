// Runs a PostgreSQL server of an image for the upgrade, reachable only by its own user through a
// socket in a private directory, and its programs with it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { StackError } from '@holdfast/kit/app-error';
import { writeFileAtomically } from '@holdfast/kit/files';
import { type Cluster, programEnvironment } from '@holdfast/stack/database/cluster';
import { serverArguments } from '@holdfast/stack/database/postmaster';
import type { DatabaseTuning } from '../../../shared/settings/tuning.ts';
import { ended, temporaryServer } from '../release-files/schema.ts';

/** Below the volume, for its owner alone. */
export const UPGRADE = 'upgrade';
const PORT = '5432';

/** What the steps need to know of the database and its image. */
export interface UpgradePlan {
  /** The volume. */
  directory: string;
  /** Directory of the PostgreSQL programs. */
  binaries: string;
  tuning: DatabaseTuning;
  release?: { major: string };
}

/** A cluster of this container's user, whose programs end with the container. */
export function clusterOf({ binaries }: Pick<UpgradePlan, 'binaries'>, pgdata: string): Cluster {
  return {
    pgdata,
    account: { command: (program, args) => ({ program, args }), give: () => undefined },
    binaries,
    guard: { own: () => undefined, free: () => undefined },
    aborted: new AbortController().signal,
  };
}

export interface PrivateServer {
  /** Rows of a query whose columns are JSON. */
  rows<T>(database: string, query: string): Promise<T[]>;
  /** Runs a client program. Resolves with its output; `onLine` gets the lines of stderr. */
  run(program: string, args: readonly string[]): Promise<{ stderr: string }>;
  end(): Promise<void>;
}

/** Throws a StackError if the image lacks a program. */
export function proveClients(binaries: string, names: readonly string[]): void {
  const missing = names.filter((name) => !existsSync(join(binaries, name)));
  if (missing.length > 0)
    throw new StackError(
      `The image lacks ${missing.join(', ')} in ${binaries}, which the upgrade needs.`,
      'rebuild the images from the release archive: ./scripts/setup.sh ARCHIVE',
    );
}

/** `more`: settings of this server. */
export async function privateServer(
  { directory, binaries, tuning }: UpgradePlan,
  pgdata: string,
  more: Record<string, string>,
): Promise<PrivateServer> {
  const place = join(directory, UPGRADE);
  mkdirSync(place, { recursive: true, mode: 0o700 });
  const hbaFile = join(place, 'pg_hba.conf');
  writeFileAtomically(hbaFile, 'local all postgres trust\n', 0o600);
  const cluster = clusterOf({ binaries }, pgdata);
  const args = serverArguments(pgdata, {
    listen: '',
    port: Number(PORT),
    hbaFile,
    tuning,
    more: {
      unix_socket_directories: place,
      unix_socket_permissions: '0700',
      autovacuum: 'off',
      log_min_messages: 'fatal',
      ...more,
    },
  });
  const child = await temporaryServer(cluster, args, 'upgrade it');
  const environment = { ...programEnvironment(), PGHOST: place, PGPORT: PORT, PGUSER: 'postgres' };

  async function run(program: string, all: readonly string[]): Promise<{ stdout: string; stderr: string }> {
    const started = spawn(join(binaries, program), all, {
      cwd: '/',
      env: environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      started[name].setEncoding('utf8').on('data', (text: string) => (output[name] += text));
    const [code, signal] = (await once(started, 'close')) as [number | null, NodeJS.Signals | null];
    if (code === 0) return output;
    throw new StackError(
      `${program} failed (${code ?? signal ?? ''}): ${complaintIn(output.stderr)}`,
      /No space left on device/.test(output.stderr)
        ? 'free some space on the volume, then run this again. The old database is unchanged'
        : 'fix what the message reports, then run this again. The old database is unchanged',
    );
  }

  return {
    async rows<T>(database: string, query: string): Promise<T[]> {
      const wrapped = `SELECT coalesce(json_agg(each), '[]') FROM (${query}) AS each`;
      const { stdout } = await run('psql', [
        '-X',
        '-q',
        '-A',
        '-t',
        '-v',
        'ON_ERROR_STOP=1',
        '-d',
        database,
        '-c',
        wrapped,
      ]);
      return JSON.parse(stdout) as T[];
    },
    run,
    end: () => ended(child),
  };
}

function complaintIn(stderr: string): string {
  const lines = stderr.trim().split('\n');
  // The first error is the cause. The process that starts the workers only says that one ended.
  const errors = lines.filter((line) => /\b(?:error|fatal|ERROR|FATAL):/.test(line));
  return errors.find((line) => !line.includes('worker process died')) ?? errors[0] ?? lines.at(-1) ?? '';
}
