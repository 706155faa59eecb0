// Exports the database of the core from the cluster of an older PostgreSQL, for an upgrade: roles,
// schema and rows, with the facts that the import must find again. Runs in the image of the old
// release. The old cluster stays as it is.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statfsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { StackError } from '@holdfast/kit/app-error';
import { say } from '@holdfast/kit/command';
import { syncDirectory, writeFileAtomically } from '@holdfast/kit/files';
import { formatBytes } from '@holdfast/kit/format';
import { checkMajor } from '@holdfast/stack/database/cluster';
import { CORE_DATABASE } from '@holdfast/stack/database/roles';
import { anotherMajor } from '../release-files/schema.ts';
import { CLUSTER, finishSwitch, keptMajors, majorOf } from './clusters.ts';
import { copyProgress } from './progress.ts';
import { type PrivateServer, privateServer, proveClients, UPGRADE, type UpgradePlan } from './server.ts';

/** Below UPGRADE. */
const EXPORT = 'export';
const PARTIAL = 'export.partial';
const FACTS = 'facts.json';
const ROLES = 'roles.sql';
const DUMP = 'dump';
/** WAL and small files of the new cluster. */
const SPARE_BYTES = 1024 ** 3;
const MAX_JOBS = 4;

const factsSchema = z.object({
  major: z.string(),
  /** SHA-256 of pg_control: it changes with every start of the old server. */
  control: z.string(),
  bytes: z.number(),
  /** Rows by table, quoted as SQL does. */
  tables: z.record(z.string(), z.number()),
  sequences: z.record(z.string(), z.number().nullable()),
  schema: z.number().nullable(),
  /** Those that a dump leaves out, by name, with their schemas. */
  extensions: z.record(z.string(), z.string()),
});
export type ExportFacts = z.infer<typeof factsSchema>;

export interface Export {
  facts: ExportFacts;
  /** File of the roles, and directory of the dump. */
  roles: string;
  dump: string;
}

export const jobs = (): number => Math.min(MAX_JOBS, availableParallelism());

export async function exportDatabase(plan: UpgradePlan): Promise<void> {
  const { directory, binaries, release } = plan;
  finishSwitch(directory);
  const pgdata = join(directory, CLUSTER);
  if (!existsSync(pgdata))
    throw new StackError(`${directory} has no database to upgrade.`, 'start the stack: ./scripts/start.sh');
  if (release !== undefined && majorOf(pgdata) !== release.major && keptMajors(directory).includes(release.major)) {
    say(`The database was upgraded from PostgreSQL ${release.major} to ${majorOf(pgdata)} already.\n`);
    return;
  }
  if (release !== undefined) checkMajor(pgdata, release.major, anotherMajor(release.major));
  proveClients(binaries, ['psql', 'pg_dump', 'pg_dumpall']);
  const partial = join(directory, UPGRADE, PARTIAL);
  rmSync(join(directory, UPGRADE), { recursive: true, force: true });
  rmSync(join(pgdata, 'postmaster.pid'), { force: true });
  const server = await privateServer(plan, pgdata, { default_transaction_read_only: 'on' });
  let facts: Omit<ExportFacts, 'control'>;
  try {
    facts = { major: majorOf(pgdata), ...(await readFacts(server)) };
    mustHaveRoom(directory, facts.bytes);
    mkdirSync(partial, { recursive: true, mode: 0o700 });
    await server.run('pg_dumpall', ['--roles-only', '--no-sync', '--file', join(partial, ROLES)]);
    const progress = copyProgress(server, 'Exporting', facts.tables);
    const options = ['--format=directory', '--compress=1', `--jobs=${jobs()}`, '--file', join(partial, DUMP)];
    await server.run('pg_dump', [...options, CORE_DATABASE]).finally(() => progress.end());
  } finally {
    await server.end();
  }
  const whole: ExportFacts = { ...facts, control: controlOf(pgdata) };
  writeFileAtomically(join(partial, FACTS), `${JSON.stringify(whole, undefined, 1)}\n`, 0o600);
  renameSync(partial, join(directory, UPGRADE, EXPORT));
  syncDirectory(join(directory, UPGRADE));
  say(`Exported ${total(facts.tables)} rows of PostgreSQL ${facts.major} (schema ${facts.schema ?? 'unknown'}).\n`);
}

/** The complete export of the cluster in use. Throws a StackError if there is none. */
export function readExport(volume: string): Export {
  const place = join(volume, UPGRADE, EXPORT);
  const remedy = 'run ./scripts/upgrade-database.sh --from RELEASE, which exports it first';
  if (!existsSync(join(place, FACTS)))
    throw new StackError('The volume has no complete export of the old database.', remedy);
  const facts = factsSchema.parse(JSON.parse(readFileSync(join(place, FACTS), 'utf8')));
  if (facts.control !== controlOf(join(volume, CLUSTER)))
    throw new StackError('The old database ran after it was exported, so the export may lack rows.', remedy);
  return { facts, roles: join(place, ROLES), dump: join(place, DUMP) };
}

export async function readFacts(server: PrivateServer): Promise<Omit<ExportFacts, 'control' | 'major'>> {
  const others = await server.rows<{ name: string }>(
    'postgres',
    `SELECT datname AS name FROM pg_database WHERE NOT datistemplate AND datname NOT IN ('postgres', '${CORE_DATABASE}')`,
  );
  if (others.length > 0)
    throw new StackError(
      `The database server also has ${others.map(({ name }) => name).join(', ')}, which the upgrade would leave behind. Nothing was changed.`,
      'dump them with pg_dump under the old release and drop them, then run this again',
    );
  const [general] = await server.rows<{ bytes: number; versioned: boolean }>(
    CORE_DATABASE,
    `SELECT pg_database_size(current_database()) AS bytes, to_regclass('public.schema_version') IS NOT NULL AS versioned`,
  );
  const names = await server.rows<{ name: string }>(CORE_DATABASE, TABLES);
  const counts =
    names.length === 0
      ? []
      : await server.rows<{ name: string; rows: number }>(
          CORE_DATABASE,
          names.map(({ name }) => `SELECT ${literal(name)} AS name, count(*) AS rows FROM ${name}`).join(' UNION ALL '),
        );
  const sequences = await server.rows<{ name: string; value: number | null }>(
    CORE_DATABASE,
    `SELECT format('%I.%I', schemaname, sequencename) AS name, last_value AS value FROM pg_sequences`,
  );
  const extensions = await server.rows<{ name: string; place: string }>(CORE_DATABASE, UNDUMPED_EXTENSIONS);
  return {
    bytes: general?.bytes ?? 0,
    tables: Object.fromEntries(counts.map(({ name, rows }) => [name, rows])),
    sequences: Object.fromEntries(sequences.map(({ name, value }) => [name, value])),
    schema: general?.versioned === true ? await readSchema(server) : null,
    extensions: Object.fromEntries(extensions.map(({ name, place }) => [name, place])),
  };
}

/** Without those of extensions, whose rows come with the extension. */
const TABLES = `SELECT format('%I.%I', n.nspname, c.relname) AS name
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
  ORDER BY 1`;

/**
 * Ours were created in single-user mode before the first start, where objects get numbers that
 * pg_dump takes for built-in.
 */
const UNDUMPED_EXTENSIONS = `SELECT extname AS name, extnamespace::regnamespace::text AS place FROM pg_extension
  WHERE oid < 16384 AND extname <> 'plpgsql'`;

/** The history of a made-up release may have no versions. */
async function readSchema(server: PrivateServer): Promise<number | null> {
  const [row] = await server.rows<{ schema: number | null }>(
    CORE_DATABASE,
    `SELECT max((to_jsonb(each) ->> 'version')::int) AS schema FROM schema_version AS each
      WHERE to_jsonb(each) ->> 'version' ~ '^\\d{1,6}$'`,
  );
  return row?.schema ?? null;
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** For the export and the new cluster. */
function mustHaveRoom(volume: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(volume);
  const needed = 2 * bytes + SPARE_BYTES;
  if (bavail * bsize >= needed) return;
  throw new StackError(
    `The volume has ${formatBytes(bavail * bsize)} free; the upgrade needs ${formatBytes(needed)}: twice the database (${formatBytes(bytes)}) and 1 GB. Nothing was changed.`,
    'free some space, or delete history first (retention), then run this again',
  );
}

function controlOf(pgdata: string): string {
  return createHash('sha256')
    .update(readFileSync(join(pgdata, 'global/pg_control')))
    .digest('hex');
}

function total(tables: Record<string, number>): number {
  return Object.values(tables).reduce((sum, rows) => sum + rows, 0);
}
