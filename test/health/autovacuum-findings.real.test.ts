// Each finding of the module autovacuum, provoked at a real server; its remedy, pasted as it stands, ends it.

import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BareServer, startBareServer } from '../../packages/setup/test/bare-server.ts';
import { STOCK } from '../../shared/settings/tuning.ts';
import { carryOut, type Measure, measuring } from './database-remedies.ts';

let server: BareServer;
let measure: Measure;
beforeAll(async () => {
  server = await startBareServer();
  measure = measuring('autovacuum', server.url('holdfast_ro'));
});
afterAll(() => server.end());

/** A table of that many rows, of which so many are dead. Autovacuum looks once a minute; here it must not. */
const filled = (name: string, rows: number, dead: number): Promise<unknown> =>
  server.ask(
    `CREATE TABLE ${name} (n int PRIMARY KEY) WITH (autovacuum_vacuum_threshold = 1000000, autovacuum_vacuum_insert_threshold = -1)`,
    `INSERT INTO ${name} SELECT generate_series(1, ${rows})`,
    `DELETE FROM ${name} WHERE n <= ${dead}`,
  );

const RELOADED = 'SELECT pg_reload_conf()';

describe('a setting that differs names where it comes from', () => {
  it.each([
    ['ALTER SYSTEM SET autovacuum = off', 'autovacuum is off, not on (by ALTER SYSTEM)'],
    ['ALTER SYSTEM SET autovacuum_work_mem = 32768', 'autovacuum_work_mem is 32MB, not -1 (by ALTER SYSTEM)'],
    ['ALTER SYSTEM SET track_counts = off', 'track_counts is off, not on (by ALTER SYSTEM)'],
    ['ALTER DATABASE cot SET track_counts = off', 'track_counts is off, not on (by ALTER DATABASE cot)'],
    [
      "ALTER DATABASE cot SET maintenance_work_mem = '1MB'",
      'maintenance_work_mem is 1MB, not 256MB (by ALTER DATABASE cot)',
    ],
    [
      "ALTER ROLE martiuser SET maintenance_work_mem = '2MB'",
      'maintenance_work_mem is 2MB, not 256MB (by ALTER ROLE martiuser)',
    ],
    ["ALTER ROLE ALL SET maintenance_work_mem = '3MB'", 'maintenance_work_mem is 3MB, not 256MB (by ALTER ROLE ALL)'],
    [
      "ALTER ROLE martiuser IN DATABASE cot SET maintenance_work_mem = '4MB'",
      'maintenance_work_mem is 4MB, not 256MB (by ALTER ROLE martiuser IN DATABASE cot)',
    ],
  ])('%s, and the remedy takes it back', async (statement, says) => {
    await server.ask(statement, RELOADED);
    await expect.poll(measure).toMatchObject({ status: 'warning', details: [`${says}.`] });
    await carryOut(server, await measure());
    await expect.poll(measure).toMatchObject({ status: 'ok', remedies: [] });
  });

  it('in a configuration file: the file and the line', async () => {
    const file = join(server.data, 'postgresql.conf');
    const before = readFileSync(file, 'utf8');
    appendFileSync(file, 'autovacuum_work_mem = 1MB\n');
    await server.ask(RELOADED);
    const line = before.split('\n').length;
    await expect.poll(measure).toMatchObject({
      details: [`autovacuum_work_mem is 1MB, not -1 (in ${file}, line ${line}).`],
      remedies: [`Remove autovacuum_work_mem from ${file}, line ${line}, then SELECT pg_reload_conf();`],
    });
    writeFileSync(file, before);
    await server.ask(RELOADED);
    await expect.poll(measure).toMatchObject({ status: 'ok' });
  });

  it('by other start flags than were asked for: a restart of the stack, and the variable', async () => {
    await server.restart({ autovacuum_vacuum_scale_factor: '0.3', autovacuum_vacuum_cost_limit: '200' });
    const { details, remedies } = await measure();
    expect(details).toEqual([
      'autovacuum_vacuum_scale_factor is 0.3, not 0.05 (by a start flag of the server).',
      'autovacuum_vacuum_cost_limit is 200, not 1000 (by a start flag of the server).',
    ]);
    expect(remedies[0]).toMatch(/^Restart the server with the stack .*DB_AUTOVACUUM_SCALE_FACTOR/);
    await server.restart();
    expect(await measure()).toMatchObject({ status: 'ok', remedies: [] });
  });
});

describe('a table with settings of its own', () => {
  it.each(['autovacuum_enabled = false', 'autovacuum_vacuum_scale_factor = 0.4', 'autovacuum_vacuum_cost_limit = 10'])(
    '(%s) is named when it is large, and the remedy takes them back',
    async (option) => {
      await server.ask(
        'CREATE SCHEMA IF NOT EXISTS "Own"',
        `CREATE TABLE "Own"."Large ""one""" WITH (${option}) AS SELECT generate_series(1, 2000) n`,
        `CREATE TABLE "Own".small WITH (${option}) AS SELECT generate_series(1, 20) n`,
      );
      const set = option.replaceAll(' ', '');
      await expect
        .poll(measure)
        .toMatchObject({ status: 'warning', details: [`Own.Large "one" overrides autovacuum settings: ${set}.`] });
      await carryOut(server, await measure());
      expect(await measure()).toMatchObject({ status: 'ok' });
      await server.ask('DROP SCHEMA "Own" CASCADE');
    },
  );

  it('that make autovacuum come earlier is none of our business', async () => {
    await server.ask(
      'CREATE TABLE early WITH (autovacuum_vacuum_scale_factor = 0.01) AS SELECT generate_series(1, 2000) n',
    );
    expect(await measure()).toMatchObject({ status: 'ok' });
    await server.ask('DROP TABLE early');
  });
});

describe('a table with many dead rows names what holds them', () => {
  it('a transaction that is older than the last vacuum: its remedy ends it, and the next vacuum helps', async () => {
    const client = postgres(server.url('martiuser'), {
      max: 1,
      fetch_types: false,
      connection: { application_name: 'a map' },
    });
    const open = Promise.withResolvers<number>();
    const transaction = client
      .begin('ISOLATION LEVEL REPEATABLE READ', async (sql) => {
        const [row] = await sql<[{ pid: number }]>`SELECT pg_backend_pid() AS pid`;
        open.resolve(row.pid);
        await new Promise(() => undefined);
      })
      .catch(() => undefined);
    const pid = await open.promise;
    await filled('held', 10_000, 2000);
    await expect.poll(measure).toMatchObject({ status: 'critical' });
    expect((await measure()).message, 'it is young, and nothing proves that it holds anything up').not.toContain('pid');
    await server.ask('VACUUM held');
    await expect
      .poll(async () => (await measure()).message)
      .toMatch(
        new RegExp(
          `^public.held: 20 % .*cleanup blocked by the transaction of pid ${pid} \\(martiuser, a map\\), open since 20`,
        ),
      );
    await carryOut(server, await measure());
    await transaction;
    await client.end({ timeout: 1 });
    await server.ask('VACUUM held');
    await expect.poll(measure).toMatchObject({ status: 'ok' });
    await server.ask('DROP TABLE held');
  });

  it('a prepared transaction, which its remedy rolls back', async () => {
    await server.restart({ max_prepared_transactions: '2' });
    await server.ask('BEGIN', 'CREATE TABLE unfinished (n int)', "PREPARE TRANSACTION 'it''s mine'");
    await filled('prepared', 10_000, 2000);
    await server.ask('VACUUM prepared');
    await expect
      .poll(async () => (await measure()).message)
      .toMatch(/cleanup blocked by the prepared transaction 'it''s mine' \(postgres\), open since /);
    await carryOut(server, await measure());
    await server.ask('VACUUM prepared');
    await expect.poll(measure).toMatchObject({ status: 'ok' });
    await server.ask('DROP TABLE prepared');
    await server.restart();
  });
});

describe('stock settings', () => {
  const flags = {
    autovacuum_vacuum_scale_factor: '0.2',
    autovacuum_vacuum_cost_limit: '200',
    maintenance_work_mem: '64MB',
  };

  it('are told without raising the level, and a table with 16 % dead rows is critical all the same', async () => {
    await server.restart(flags);
    const request = measuring('autovacuum', server.url('holdfast_ro'), STOCK);
    const well = await request();
    expect(well).toMatchObject({ status: 'ok', data: { settings_stock: true, settings_differ: [] } });
    expect(well.message).toMatch(/No table needs attention \(stock settings: autovacuum waits for 20 % dead rows\)\.$/);
    await server.ask(
      'CREATE TABLE stock (n int PRIMARY KEY) WITH (autovacuum_vacuum_insert_threshold = -1)',
      'INSERT INTO stock SELECT generate_series(1, 20000)',
    );
    await server.ask('ANALYZE stock');
    await server.ask('DELETE FROM stock WHERE n <= 3200');
    await expect.poll(request).toMatchObject({ status: 'critical' });
    const { message, remedies } = await request();
    expect(message).toMatch(
      /^public\.stock: 16 % .*stock settings: autovacuum waits for 20 % dead rows; critical from 15 %/,
    );
    expect(remedies).toEqual([
      'Stock settings allow that many dead rows: set DB_AUTOVACUUM_SCALE_FACTOR=0.05 DB_AUTOVACUUM_COST_LIMIT=1000 DB_MAINTENANCE_WORK_MEM=256MB (the tuned defaults) and restart the stack.',
    ]);
    await server.ask('DROP TABLE stock');
  });

  it('are told one by one where only some are stock', async () => {
    await server.restart({ autovacuum_vacuum_cost_limit: '200' });
    const tuning = { scaleFactor: 0.05, costLimit: 200, maintenanceWorkMem: '256MB' };
    const { status, message, data } = await measuring('autovacuum', server.url('holdfast_ro'), tuning)();
    expect([status, data['settings_stock']]).toEqual(['ok', false]);
    expect(message).toMatch(/\(stock value of DB_AUTOVACUUM_COST_LIMIT \(200\)\)\.$/);
    await server.restart();
  });
});
