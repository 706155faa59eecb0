// The modules of health and the facts of a vacuum on PostgreSQL 18, which a TAK Server 5.8 brings:
// its statistics have other columns, and roles with an md5 password can't sign in there.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BareServer, hasPostgres, startBareServer } from '../../packages/setup/test/bare-server.ts';
import { readerOf } from '../database/vacuum-world.ts';
import { type Measure, measuring } from './database-remedies.ts';

const JOB = '00000000-0000-4000-8000-000000000001';
const missing = hasPostgres(18) ? 'is there' : 'there is no npm package for this machine';

describe.skipIf(!hasPostgres(18))(`PostgreSQL 18 (${missing})`, () => {
  let server: BareServer;
  let database: Measure;
  let autovacuum: Measure;
  beforeAll(async () => {
    server = await startBareServer([], 18);
    database = measuring('database', server.url('holdfast_ro'));
    autovacuum = measuring('autovacuum', server.url('holdfast_ro'));
    await server.ask(
      'CREATE TABLE sized AS SELECT n, repeat(md5(n::text), 20) AS note FROM generate_series(1, 20000) n',
      'ALTER TABLE sized OWNER TO martiuser',
      'DELETE FROM sized WHERE n % 2 = 0',
      'ANALYZE sized',
    );
  });
  afterAll(() => server.end());

  it('is well as the product sets it up, with its version, sizes and WAL', async () => {
    const measured = await database();
    expect(measured).toMatchObject({ status: 'ok', remedies: [], data: { archive_mode: 'off', read_only: false } });
    expect(measured.data).toMatchObject({
      version: expect.stringMatching(/^18\./),
      wal_bytes: expect.any(Number),
      server: { md5_roles: [], schema_version: null },
    });
    expect((await autovacuum()).status).not.toBe('unknown');
  });

  it('tells dead rows, and a vacuum that runs, with its phase and percentage', async () => {
    const facts = readerOf(server.url('holdfast_ro'));
    const sized = (await facts.tables()).find(({ table }) => table === 'sized');
    expect(sized).toMatchObject({ dead_tuples: 10_000 });
    expect(await facts.statement(JOB)).toBeUndefined();
    expect(await facts.marks('public', 'sized')).toMatchObject({ vacuums: 0, dead_tuples: 10_000 });
    await server.ask('VACUUM sized');
    expect(await facts.marks('public', 'sized')).toMatchObject({ vacuums: 1, dead_tuples: 0 });
    expect(await facts.server()).toMatchObject({ max_wal_bytes: 1024 ** 3 });
  });

  it('warns of roles with an md5 password, which health can see, and no longer once they are set again', async () => {
    await server.ask(
      "SET password_encryption = 'md5'",
      `CREATE ROLE "old one" LOGIN PASSWORD 'x'`,
      `ALTER ROLE martiuser PASSWORD 'x'`,
      `CREATE ROLE never PASSWORD 'x'`,
    );
    const measured = await database();
    expect(measured).toMatchObject({
      status: 'warning',
      message: `the roles "old one", martiuser can't sign in with scram-sha-256: the stored password is md5.`,
    });
    expect(measured.remedies[0]).toMatch(/^Restart the database: .*SET password_encryption = 'scram-sha-256'/);
    await server.ask(
      "SET password_encryption = 'scram-sha-256'",
      `ALTER ROLE "old one" PASSWORD 'x'`,
      `ALTER ROLE martiuser PASSWORD 'x'`,
    );
    expect(await database()).toMatchObject({ status: 'ok' });
    await server.ask('REVOKE pg_read_all_data FROM holdfast_ro');
    expect((await database()).data).toMatchObject({ server: { md5_roles: null } });
    await server.ask('GRANT pg_read_all_data TO holdfast_ro');
  });

  it('tells the schema of a release', async () => {
    await server.ask(
      'CREATE TABLE schema_version (installed_rank int PRIMARY KEY, version varchar(50), success boolean)',
      "INSERT INTO schema_version VALUES (1, '99', true), (2, '106', true), (3, '107', false), (4, NULL, true)",
    );
    expect((await database()).data).toMatchObject({ server: { schema_version: 106 } });
  });
});
