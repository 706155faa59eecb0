// The core's database on the PostgreSQL of a release: what its first start makes, who may do what
// in it, and that no moment is the wrong one to be killed in.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import postgres from 'postgres';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { FLOWS_TABLES } from '@holdfast/stack/database/roles';
import { answerOf, endRole, type RunningProgram, runRole } from './container-programs.ts';
import { eventually, query } from './embedded.ts';
import {
  newReleaseDatabase,
  PASSWORDS,
  type ReleaseDatabase,
  releaseDatabaseMissing,
  runInNamespace,
  writeCoreConfig,
  writeJava,
} from './release-database.ts';

const UP_WITHIN_MS = 120_000;
const AFTERWARDS_MS = 300;
const running: RunningProgram[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => endRole(each, 'SIGKILL')));
});

async function up(database: ReleaseDatabase, more: Record<string, string> = {}): Promise<RunningProgram> {
  const environment = { ...database.environment, ...more };
  const program = runRole('database', environment);
  running.push(program);
  const isHealthy = async (): Promise<boolean> => {
    if (program.child.exitCode !== null) throw new Error(`it ended: ${program.messagesOf()}`);
    return (await answerOf('database', environment)).code === 0;
  };
  await eventually('the database is healthy', isHealthy, UP_WITHIN_MS);
  return program;
}

/** The sentence and the remedy with which it ends. */
async function refusalOf(database: ReleaseDatabase): Promise<string> {
  const program = runRole('database', database.environment);
  running.push(program);
  expect(await program.ended).toBe(1);
  const line =
    program
      .messagesOf()
      .trim()
      .split('\n')
      .findLast((each) => each.startsWith('{')) ?? '{}';
  const { error = '', remedy = '' } = JSON.parse(line) as { error?: string; remedy?: string };
  return `${error} Remedy: ${remedy}`;
}

const owner = (database: ReleaseDatabase): string => database.url('martiuser', PASSWORDS.CORE_DB_PASSWORD);
const reader = (database: ReleaseDatabase): string => database.url('holdfast_ro', PASSWORDS.CORE_READER_PASSWORD);

async function shown(url: string, ...names: string[]): Promise<string[]> {
  const rows = await query<{ value: string }>(
    url,
    `SELECT current_setting(name) AS value FROM unnest('{${names.join(',')}}'::text[]) WITH ORDINALITY AS each (name, place) ORDER BY place`,
  );
  return rows.map(({ value }) => value);
}

/** Of the flow engine's role, which comes from an address of its own here. */
async function asFlows<T>(database: ReleaseDatabase, use: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const url = database.url('holdfast_flows', PASSWORDS.FLOWS_DB_PASSWORD);
  const sql = postgres(url, { max: 1, fetch_types: false, onnotice: () => undefined });
  try {
    return await use(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

const title = `the core's database of a release (${releaseDatabaseMissing ?? 'is there'})`;
describe.skipIf(releaseDatabaseMissing !== undefined)(title, () => {
  /** Of the tests up to the one that spoils it. */
  let database: ReleaseDatabase;
  beforeAll(async () => {
    database = await newReleaseDatabase();
  });

  it('makes its roles and tables, tells nobody a password, and starts again with what is in it', async () => {
    const first = await up(database);
    const message = first.messagesOf();
    expect(message).toContain(
      `called: java -Xmx256m -jar SchemaManager.jar -url jdbc:postgresql://127.0.0.1:${database.port + 1}/cot upgrade`,
    );
    // What the tool itself says of it is not passed on; neither its arguments nor its environment
    // had one.
    expect(message).toContain('the password is ***');
    expect(message.match(/\*\*\*/g)).toHaveLength(1);
    for (const password of Object.values(PASSWORDS)) expect(message).not.toContain(password);
    expect(message).toContain('must be owner of extension postgis');
    expect(message).not.toContain('purged');

    expect(
      await shown(
        reader(database),
        'max_connections',
        'shared_buffers',
        'archive_mode',
        'autovacuum_vacuum_cost_limit',
        'autovacuum_vacuum_scale_factor',
        'maintenance_work_mem',
        'data_directory',
        'server_encoding',
        'lc_collate',
      ),
    ).toEqual(['256', '256MB', 'off', '432', '0.05', '256MB', join(database.volume, 'pgdata'), 'UTF8', 'C']);
    const roles = await query<{ rolname: string }>(
      owner(database),
      `SELECT rolname FROM pg_roles WHERE rolsuper OR rolcreaterole OR rolreplication`,
    );
    expect(roles.map(({ rolname }) => rolname)).toEqual(['postgres']);

    await query(owner(database), `INSERT INTO certificate VALUES (1, 'kept', 'secret')`);
    expect(await endRole(first, 'SIGINT')).toBe(0);
    const again = await up(database, { DB_AUTOVACUUM_COST_LIMIT: '999', CORE_DATABASE_MEMORY: '2g' });
    expect(await query(owner(database), 'SELECT certificate FROM certificate')).toEqual([{ certificate: 'kept' }]);
    expect(await shown(reader(database), 'autovacuum_vacuum_cost_limit', 'max_connections')).toEqual(['999', '512']);
    expect(again.messagesOf()).not.toContain('must be owner');
  });

  it('lets the flow engine read the named tables from its network alone, and nothing else', async () => {
    // All of 127.0.0.0/8 leads here: the flow engine comes from where the others come from, or from
    // nowhere.
    const elsewhere = await up(database);
    const refused = await asFlows(database, (sql) => sql`SELECT 1`).catch(String);
    expect(refused).toMatch(/pg_hba\.conf rejects connection/);
    expect(await endRole(elsewhere, 'SIGINT')).toBe(0);

    await up(database, { HOLDFAST_FLOWS_NETWORK: '127.0.0.1/32' });
    const others = await query(reader(database), 'SELECT 1').catch(String);
    expect(others).toMatch(/pg_hba\.conf rejects connection/);
    await asFlows(database, async (sql) => {
      const relations = await sql<{ name: string; may: boolean }[]>`
        SELECT relname AS name, has_table_privilege(oid, 'SELECT') AS may FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v')`;
      const readable = relations.filter(({ may }) => may).map(({ name }) => name);
      const ofPostgis = ['geography_columns', 'geometry_columns', 'spatial_ref_sys'];
      const there = FLOWS_TABLES.filter((name) => relations.some((each) => each.name === name));
      expect(readable.toSorted()).toEqual([...ofPostgis, ...there].toSorted());
      expect(there).toEqual(expect.arrayContaining(['cot_router', 'cot_router_chat', 'latestcot', 'client_endpoint']));
      expect(await sql`SELECT count(*)::int AS n FROM cot_router`).toEqual([{ n: 0 }]);
      for (const name of ['certificate', 'resource', 'tak_user', 'properties_value', 'mission', 'schema_version'])
        expect(await sql`SELECT * FROM ${sql(name)}`.catch(String)).toMatch(/permission denied/);
      for (const statement of [
        'DELETE FROM cot_router',
        'CREATE TABLE mine ()',
        'CREATE TEMPORARY TABLE mine ()',
        "SELECT pg_read_file('/etc/passwd')",
        "COPY cot_router TO PROGRAM 'true'",
      ]) {
        const answer = await sql.begin('read write', (transaction) => transaction.unsafe(statement)).catch(String);
        expect([statement, answer]).toEqual([statement, expect.stringMatching(/permission denied|must be superuser/)]);
      }
      expect(await sql`SHOW statement_timeout`).toEqual([{ statement_timeout: '30s' }]);
      expect(await sql`SET temp_file_limit = -1`.catch(String)).toMatch(/permission denied/);
    });
    const many = await Promise.all(
      Array.from({ length: 7 }, () =>
        asFlows(database, (sql) => sql`SELECT pg_sleep(1)`).then(
          () => 'in',
          (error: unknown) => String(error),
        ),
      ),
    );
    expect(many.filter((each) => each === 'in').length).toBeLessThanOrEqual(5);
    expect(many.join()).toMatch(/too many connections for role/);
  });

  it('refuses tables without the history of a release, and a cluster of another major version, and changes neither', async () => {
    const first = await up(database);
    await query(owner(database), 'DROP TABLE schema_version');
    await endRole(first, 'SIGINT');
    expect(await refusalOf(database)).toMatch(
      /cot has tables but no release history .* schema tool would delete them\. Nothing was changed\. Remedy: .*pg_dump/,
    );
    await endRole(running.pop() as RunningProgram, 'SIGKILL');

    const version = join(database.volume, 'pgdata/PG_VERSION');
    const major = readFileSync(version, 'utf8').trim();
    writeFileSync(version, '14\n');
    expect(await refusalOf(database)).toMatch(
      new RegExp(
        `created by PostgreSQL 14, but this Holdfast release uses PostgreSQL ${major}\\. Nothing was changed\\. .*upgrade-database\\.sh --from`,
      ),
    );
    writeFileSync(version, `${major}\n`);
    expect(existsSync(join(database.volume, 'pgdata.new'))).toBe(false);
  });

  it('ends with the words of the schema tool when that fails, and with a sentence when files or programs are missing', async () => {
    const database = await newReleaseDatabase();
    writeCoreConfig(database.root, 'another password');
    expect(await refusalOf(database)).toMatch(
      /SchemaManager\.jar upgrade\) failed \(2\): .*no connection.*CORE_DB_PASSWORD/s,
    );
    writeCoreConfig(database.root, PASSWORDS.CORE_DB_PASSWORD);
    writeJava(database, '#!/bin/sh\nexit 0\n');
    expect(await refusalOf(database)).toMatch(/reported success but created no schema/);
    const without = join(database.root, 'without-java');
    mkdirSync(without);
    for (const name of ['flock', 'mount', 'setpriv', 'sh', 'unshare'])
      symlinkSync(`/usr/bin/${name}`, join(without, name));
    expect(await refusalOf({ ...database, environment: { ...database.environment, PATH: without } })).toMatch(
      /java is missing in this image/,
    );
    rmSync(join(database.root, 'image/opt/tak/CoreConfig.xml'));
    expect(await refusalOf(database)).toMatch(
      /Couldn't read .*CoreConfig\.xml \(ENOENT\), .*core-data must be mounted/,
    );
    writeCoreConfig(database.root, PASSWORDS.CORE_DB_PASSWORD);
    writeJava(database);
    await up(database);
  });

  it('starts with one PostgreSQL alone, and names those that it finds', async () => {
    const database = await newReleaseDatabase();
    mkdirSync(join(database.root, 'image/usr/pgsql-18/bin'), { recursive: true });
    writeFileSync(join(database.root, 'image/usr/pgsql-18/bin/postgres'), '');
    const program = runRole('database', database.environment);
    running.push(program);
    expect(await program.ended).toBe(1);
    expect(program.messagesOf()).toMatch(/This image has 2 PostgreSQL servers.*pgsql-18/s);
    expect(readdirSync(database.volume)).toEqual([]);
  });

  it('succeeds at the next start, in whatever part of the first one it is killed', async () => {
    const database = await newReleaseDatabase();
    const has = (name: string): boolean => existsSync(join(database.volume, name));
    const moments: ((text: string) => boolean)[] = [
      () => has('pgdata.new'),
      () => has('pgdata'),
      (output) => output.includes('database.schema_upgrading'),
      (reported) => reported.includes('called: java'),
      (stated) => stated.includes('database.schema_up_to_date'),
    ];
    for (const [place, isThen] of moments.entries()) {
      const { messagesOf, kill } = await runInNamespace(database);
      try {
        await eventually(`moment ${place} of the start`, () => isThen(messagesOf()), UP_WITHIN_MS);
        // Not at its beginning alone; each moment is as good as the other.
        await delay(Math.random() * AFTERWARDS_MS);
      } finally {
        await kill();
      }
    }
    const program = await up(database);
    expect(await query(owner(database), 'SELECT installed_rank FROM schema_version')).toEqual([{ installed_rank: 1 }]);
    expect(await endRole(program, 'SIGINT')).toBe(0);
  });
});
