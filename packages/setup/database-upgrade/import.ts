// Imports an export into a new cluster of the image's PostgreSQL beside the old one, verifies it,
// and puts it in use. The old cluster is kept. Until then a failure or a crash changes nothing.

import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { StackError } from '@holdfast/kit/app-error';
import { say } from '@holdfast/kit/command';
import { syncDirectory } from '@holdfast/kit/files';
import { initializeCluster, syncCluster } from '@holdfast/stack/database/cluster';
import { CORE_DATABASE } from '@holdfast/stack/database/roles';
import { CLUSTER, finishSwitch, majorOf, switchToUpgraded, UPGRADED, UPGRADING } from './clusters.ts';
import { type ExportFacts, jobs, readExport, readFacts } from './export.ts';
import { copyProgress } from './progress.ts';
import { clusterOf, type PrivateServer, privateServer, proveClients, UPGRADE, type UpgradePlan } from './server.ts';

/** Faster, and safe: a crash means that the import starts over, and the end syncs every file. */
const UNSAFE = {
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_wal_size: '4GB',
  max_connections: '50',
};

export async function importDatabase(plan: UpgradePlan): Promise<void> {
  const { directory, binaries, release } = plan;
  finishSwitch(directory);
  const major = release?.major ?? '';
  if (existsSync(join(directory, CLUSTER)) && majorOf(join(directory, CLUSTER)) === major) {
    rmSync(join(directory, UPGRADE), { recursive: true, force: true });
    say(`The database is PostgreSQL ${major} already.\n`);
    return;
  }
  proveClients(binaries, ['psql', 'pg_restore', 'initdb']);
  const { facts, roles, dump } = readExport(directory);
  const [upgrading, upgraded] = [join(directory, UPGRADING), join(directory, UPGRADED)];
  for (const path of [upgrading, upgraded]) rmSync(path, { recursive: true, force: true });
  mkdirSync(upgrading, { mode: 0o700 });
  await initializeCluster(clusterOf(plan, upgrading));
  const server = await privateServer(plan, upgrading, { ...UNSAFE, maintenance_work_mem: '512MB' });
  try {
    await loadRoles(server, roles);
    await createDatabase(server, dump, facts);
    const progress = copyProgress(server, 'Importing', facts.tables);
    const options = [`--dbname=${CORE_DATABASE}`, '--exit-on-error', `--jobs=${jobs()}`];
    await server.run('pg_restore', [...options, dump]).finally(() => progress.end());
    say('Verifying...\n');
    verify(facts, await readFacts(server));
    await server.run('psql', ['-X', '-q', '-d', CORE_DATABASE, '-c', 'ANALYZE']);
  } finally {
    await server.end();
  }
  await syncCluster(clusterOf(plan, upgrading));
  renameSync(upgrading, upgraded);
  syncDirectory(directory);
  switchToUpgraded(directory);
  rmSync(join(directory, UPGRADE), { recursive: true, force: true });
  say(
    `Upgraded the database from PostgreSQL ${facts.major} to ${major}: ${Object.keys(facts.tables).length} tables verified. The old cluster is kept as ${CLUSTER}-${facts.major}.\n`,
  );
}

/** The superuser exists in every cluster. */
const EXPECTED_ERROR = /ERROR: {2}role "postgres" already exists/;

async function loadRoles(server: PrivateServer, file: string): Promise<void> {
  const { stderr } = await server.run('psql', ['-X', '-q', '-d', 'postgres', '-f', file]);
  const failure = stderr.split('\n').find((line) => /ERROR: {2}/.test(line) && !EXPECTED_ERROR.test(line));
  if (failure !== undefined)
    throw new StackError(
      `The roles of the old database couldn't be created: ${failure}`,
      'fix what the message reports under the old release, then run this again. The old database is unchanged',
    );
}

/** With its settings and rights, and the extensions that its tables need. */
async function createDatabase(server: PrivateServer, dump: string, { extensions }: ExportFacts): Promise<void> {
  const nothingElse = ['--use-list=/dev/null', '--dbname=postgres'];
  await server.run('pg_restore', ['--create', '--exit-on-error', ...nothingElse, dump]);
  for (const [name, place] of Object.entries(extensions)) {
    const statement = `CREATE EXTENSION IF NOT EXISTS "${name.replaceAll('"', '""')}" WITH SCHEMA ${place}`;
    await server.run('psql', ['-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', CORE_DATABASE, '-c', statement]);
  }
}

/** Throws a StackError that names the first differences. */
export function verify(before: ExportFacts, after: Omit<ExportFacts, 'control' | 'major'>): void {
  const differences = [
    ...differing(before.tables, after.tables).map(
      (name) => `${name}: ${after.tables[name] ?? 'no'} rows, not ${before.tables[name] ?? 0}`,
    ),
    ...differing(before.sequences, after.sequences).map(
      (name) => `${name}: at ${String(after.sequences[name])}, not ${String(before.sequences[name])}`,
    ),
    ...(before.schema === after.schema ? [] : [`schema ${after.schema}, not ${before.schema}`]),
  ];
  if (differences.length === 0) return;
  throw new StackError(
    `The imported database differs from the old one: ${differences.slice(0, 5).join('; ')}. The old database is unchanged.`,
    'run ./scripts/upgrade-database.sh again. If it fails again, report this',
  );
}

function differing<T>(before: Readonly<Record<string, T>>, after: Readonly<Record<string, T>>): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((name) => before[name] !== after[name]);
}
