// The vacuum in the database of a TAK Server release: an older PostgreSQL with PostGIS, tables that belong to others, other tablespaces.

import { randomUUID } from 'node:crypto';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Postgis, postgisMissing, startPostgis } from '../../packages/setup/test/postgis.ts';
import { RELEASE_TABLES } from '../../packages/setup/test/release-tables.ts';
import { eventually } from '../e2e/embedded/embedded.ts';
import { type RealVacuum, realVacuum } from './vacuum-world.ts';

const title = `a vacuum in the database of a release (${postgisMissing ?? 'is there'})`;

describe.skipIf(postgisMissing !== undefined)(title, () => {
  let database: Postgis;
  let superuser: postgres.Sql;
  let member: RealVacuum;

  beforeAll(async () => {
    database = await startPostgis();
    superuser = postgres(database.owner, { max: 1, fetch_types: false, onnotice: () => undefined });
    for (const statement of [
      RELEASE_TABLES,
      'CREATE ROLE keeper NOLOGIN',
      "CREATE ROLE member LOGIN PASSWORD 'a password'",
      'GRANT keeper TO member',
      'GRANT ALL ON SCHEMA public TO keeper',
      'ALTER DATABASE cot OWNER TO keeper',
      'ALTER TABLE cot_router OWNER TO keeper',
      'SET allow_in_place_tablespaces = on',
      "CREATE TABLESPACE another LOCATION ''",
      'CREATE TABLE far (n int) TABLESPACE another',
      'CREATE TABLE half_far (n int)',
      'CREATE INDEX half_far_n ON half_far (n) TABLESPACE another',
    ])
      await superuser.unsafe(statement);
    member = realVacuum(database.owner.replace(/\/\/.*@/, '//member:a%20password@'), database.reader);
  });
  afterAll(async () => {
    await superuser?.end({ timeout: 1 });
    await member?.end();
    await database?.end();
  });

  const orderOf = async (table: string) => {
    const marks = await member.facts.marks('public', table);
    return { job: randomUUID(), mode: 'full', schema: 'public', table, oid: marks?.oid ?? 0 } as const;
  };

  it('knows which tables belong to others, and which lie elsewhere', async () => {
    const tables = await member.facts.tables();
    const of = (name: string) => tables.find(({ table }) => table === name);
    expect(of('cot_router')).toMatchObject({ allowed: true, elsewhere: false });
    expect(of('spatial_ref_sys')).toMatchObject({ allowed: false, elsewhere: false });
    expect(of('far')).toMatchObject({ elsewhere: true });
    expect(of('half_far')).toMatchObject({ elsewhere: true });
  });

  it('is carried out by a member of the owner, and seen as such', async () => {
    const order = await orderOf('cot_router');
    const before = await member.facts.marks('public', 'cot_router');
    await member.vacuum.begin(order);
    await member.ended(order.job);
    expect(await member.facts.statement(order.job)).toEqual({ state: 'ended', error: null });
    expect((await member.facts.marks('public', 'cot_router'))?.filenode).not.toBe(before?.filenode);
    expect(await member.vacuum.settle(order.job)).toBeNull();
  });

  it('is an error where the server leaves the table out with a warning', async () => {
    const order = await orderOf('spatial_ref_sys');
    const { promise: enough, resolve: release } = Promise.withResolvers<void>();
    const { promise: holds, resolve: isHeld } = Promise.withResolvers<void>();
    const reading = superuser.begin(async (sql) => {
      await sql`SELECT count(*) FROM spatial_ref_sys`;
      isHeld();
      await enough;
      await sql`REVOKE keeper FROM member`;
    });
    await holds;
    await member.patient.begin(order);
    const waits = async () => {
      const [row] =
        await member.sql`SELECT FROM pg_stat_activity WHERE application_name = ${`holdfast-vacuum ${order.job}`} AND wait_event_type = 'Lock'`;
      return row !== undefined;
    };
    await eventually('the vacuum waits', waits, 20_000);
    release();
    await reading;
    const reported = async () => {
      const name = `holdfast-vacuum ${order.job} 42501`;
      return (await superuser`SELECT FROM pg_stat_activity WHERE application_name = ${name}`).length === 1;
    };
    await eventually('the outcome stands in the name', reported, 10_000);
    // Whoever may not vacuum any more is not believed.
    expect(await member.facts.statement(order.job)).toBeUndefined();
    expect(await member.patient.settle(order.job)).toMatch(/spatial_ref_sys/);
    await superuser`GRANT keeper TO member`;
  });
});
