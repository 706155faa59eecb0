// Each finding of the module database on settings, WAL and its archive, provoked at a real server; its remedy, pasted as it
// stands, ends it. Pieces of WAL are 1 MB here, so that a little is much.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BareServer, startBareServer } from '../../packages/setup/test/bare-server.ts';
import { carryOut, type Measure, measuring } from './database-remedies.ts';

const SMALL = { max_wal_size: '4MB', min_wal_size: '2MB' };
let server: BareServer;
let measure: Measure;
beforeAll(async () => {
  server = await startBareServer(['--wal-segsize=1']);
  await server.restart(SMALL);
  measure = measuring('database', server.url('holdfast_ro'));
});
afterAll(() => server.end());

const says = async (): Promise<string> => (await measure()).message;
/** What nobody keeps goes at a checkpoint. */
async function isWell(): Promise<void> {
  const afterCheckpoint = async () => {
    await server.ask('CHECKPOINT');
    return measure();
  };
  await expect.poll(afterCheckpoint).toMatchObject({ status: 'ok', remedies: [] });
}

/** Some thirty pieces, of which the server keeps what somebody needs. */
async function writeMuch(): Promise<void> {
  await server.ask(
    'CREATE TABLE much AS SELECT repeat(md5(n::text), 30) FROM generate_series(1, 30000) n',
    'DROP TABLE much',
    'SELECT pg_switch_wal()',
    'CHECKPOINT',
  );
}

it('a server as the product sets it up has none', isWell);

describe('writing', () => {
  it.each([
    ['ALTER SYSTEM SET default_transaction_read_only = on', 'by ALTER SYSTEM'],
    ['ALTER DATABASE cot SET default_transaction_read_only = on', 'by ALTER DATABASE cot'],
    ['ALTER ROLE martiuser SET default_transaction_read_only = on', 'by ALTER ROLE martiuser'],
  ])('that is switched off (%s) is critical, and the remedy takes it back', async (statement, where) => {
    await server.ask(statement, 'SELECT pg_reload_conf()');
    const expected = `the database accepts no writes: default_transaction_read_only is on (${where}).`;
    await expect.poll(measure).toMatchObject({ status: 'critical', message: expected });
    await carryOut(server, await measure());
    await isWell();
  });

  it('is found to be taken back also by connections that were opened while it was off', async () => {
    await server.ask('ALTER DATABASE cot SET default_transaction_read_only = on');
    const opened = measuring('database', server.url('holdfast_ro'));
    expect(await opened()).toMatchObject({ status: 'critical' });
    await carryOut(server, await opened());
    expect(await opened()).toMatchObject({ status: 'ok', remedies: [], data: { read_only: false } });
  });

  it('is not possible on a standby, which the remedy promotes', async () => {
    await server.restart(SMALL, () => writeFileSync(join(server.data, 'standby.signal'), ''));
    expect(await measure()).toMatchObject({
      status: 'critical',
      message: 'the database accepts no writes: it is a standby.',
      remedies: [
        expect.stringMatching(/^Point CORE_DATABASE_URL to the primary\. .*SELECT pg_promote\(\);$/) as string,
      ],
    });
    await carryOut(server, await measure());
    await isWell();
  });
});

describe('a setting by which data is lost', () => {
  it.each([
    ['fsync', 'critical', /the whole database/],
    ['full_page_writes', 'warning', /pages of tables/],
    ['synchronous_commit', 'note', /last confirmed writes/],
  ])('%s = off is %s, and the remedy takes it back', async (name, status, why) => {
    await server.ask(`ALTER SYSTEM SET ${name} = off`, 'SELECT pg_reload_conf()');
    const message = expect.stringMatching(why) as string;
    await expect
      .poll(measure)
      .toMatchObject({ status, message, remedies: [`ALTER SYSTEM RESET ${name}; SELECT pg_reload_conf();`] });
    expect(await says()).toContain(`${name} is off (by ALTER SYSTEM): `);
    await carryOut(server, await measure());
    await isWell();
  });

  it('that waits for a restart is a note with its name', async () => {
    await server.ask('ALTER SYSTEM SET max_connections = 77', 'SELECT pg_reload_conf()');
    const message = 'max_connections changed in the configuration and needs a restart of the server.';
    await expect.poll(measure).toMatchObject({ status: 'note', message });
    await server.ask('ALTER SYSTEM RESET max_connections', 'SELECT pg_reload_conf()');
    await isWell();
  });
});

describe('WAL that piles up', () => {
  it('for a slot that nobody uses: its name and how much, and the remedy drops it', async () => {
    await server.ask("SELECT pg_create_physical_replication_slot('old_s_standby', true)");
    await writeMuch();
    await expect
      .poll(says)
      .toMatch(
        /^WAL takes \d+ MB, max_wal_size is 4\.2 MB: the replication slot 'old_s_standby', which is unused, keeps \d+ MB\.$/,
      );
    expect(await measure()).toMatchObject({ status: 'warning' });
    await carryOut(server, await measure());
    await writeMuch();
    await isWell();
  });

  it('for wal_keep_size', async () => {
    await server.ask("ALTER SYSTEM SET wal_keep_size = '100MB'", 'SELECT pg_reload_conf()');
    await writeMuch();
    await expect.poll(says).toMatch(/^WAL takes \d+ MB, .*: wal_keep_size keeps 105 MB\.$/);
    await carryOut(server, await measure());
    await writeMuch();
    await isWell();
  });

  it('cannot be seen by a role without pg_monitor, which is told whom to grant it', async () => {
    await server.ask('REVOKE pg_monitor FROM holdfast_ro');
    await expect.poll(measure).toMatchObject({
      status: 'note',
      message: 'the size of WAL is unknown; GRANT pg_monitor to the role holdfast_ro.',
      data: { wal_bytes: null, server: { data_directory: null } },
    });
    await carryOut(server, await measure());
    await isWell();
    expect((await measure()).data).toMatchObject({ server: { data_directory: server.data } });
  });
});

describe('archiving WAL', () => {
  it('without a command is a warning, and says where it was switched on', async () => {
    await server.ask('ALTER SYSTEM SET archive_mode = on');
    await server.restart(SMALL);
    const { status, message, remedies } = await measure();
    expect([status, message]).toEqual([
      'warning',
      'WAL archiving has no command (archive_mode is on), so WAL will fill the disk.',
    ]);
    expect(remedies[0]).toMatch(
      /ALTER SYSTEM RESET archive_mode; SELECT pg_reload_conf\(\); Then restart the server\.$/,
    );
  });

  it('towards a directory that is not there: which piece, since when, the program alone; the remedy frees the disk', async () => {
    const command = 'cp %p /nowhere/secret-token/%f';
    await server.ask(`ALTER SYSTEM SET archive_command = '${command}'`, 'SELECT pg_reload_conf()');
    await writeMuch();
    await expect.poll(measure, { timeout: 15_000 }).toMatchObject({
      details: [
        expect.stringMatching(
          /^WAL archiving fails, .*: cp failed for [0-9A-F]{24} at 20.* UTC; nothing was ever archived\.$/,
        ),
        expect.stringMatching(/^WAL takes .*: its archive accepts none\.$/),
      ] as string[],
    });
    expect(JSON.stringify(await measure())).not.toContain('secret-token');
    const [repair] = (await measure()).remedies;
    expect(repair).toContain("ALTER SYSTEM SET archive_command = '/bin/true'; SELECT pg_reload_conf();");
    await carryOut(server, await measure());
    await server.restart(SMALL);
    await writeMuch();
    await isWell();
  });

  it('that works is shown and raises nothing', async () => {
    await server.ask('ALTER SYSTEM SET archive_mode = on', "ALTER SYSTEM SET archive_command = '/bin/true'");
    await server.restart(SMALL);
    await server.ask('CREATE TABLE something (n int)', 'SELECT pg_switch_wal()');
    const archive = { mode: 'on', command: '/bin/true', failing: false, archived_at: expect.any(String) as string };
    await expect.poll(measure).toMatchObject({ status: 'ok', data: { server: { archive } } });
    await server.ask('ALTER SYSTEM RESET archive_mode', 'ALTER SYSTEM RESET archive_command');
  });
});
