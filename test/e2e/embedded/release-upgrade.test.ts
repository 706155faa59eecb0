// The upgrade of the core's database from PostgreSQL 15 to 18, when a release needs it: every row
// arrives, no moment is the wrong one to be killed in, and there is a way back.

import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { answerOf, endRole, type Environment, type RunningProgram, runRole } from './container-programs.ts';
import { eventually, query } from './embedded.ts';
import { PASSWORDS, runInNamespace } from './release-database.ts';
import { asSuperuser, newUpgrade, type Upgrade, upgradeMissing } from './release-upgrade.ts';

const UP_WITHIN_MS = 120_000;
const ROWS = 6_000;
const running: RunningProgram[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => endRole(each, 'SIGKILL')));
});

async function up(environment: Environment): Promise<RunningProgram> {
  const program = runRole('database', environment);
  running.push(program);
  const isHealthy = async (): Promise<boolean> => {
    if (program.child.exitCode !== null) throw new Error(`it ended: ${program.messagesOf()}`);
    return (await answerOf('database', environment)).code === 0;
  };
  await eventually('the database is healthy', isHealthy, UP_WITHIN_MS);
  return program;
}

async function down(program: RunningProgram): Promise<void> {
  expect(await endRole(program, 'SIGINT')).toBe(0);
}

async function step(environment: Environment, name: string): Promise<{ code: number | string; text: string }> {
  const program = runRole('database', environment, { step: [name] });
  const code = await program.ended;
  return { code, text: program.messagesOf() };
}

async function killedOnce(name: string, isThen: () => boolean, kill: () => Promise<void>): Promise<void> {
  try {
    await eventually(name, isThen, UP_WITHIN_MS);
  } finally {
    await kill();
  }
}

/** The start is refused with this. */
async function refusalOf(environment: Environment): Promise<string> {
  const program = runRole('database', environment);
  expect(await program.ended).toBe(1);
  return program.messagesOf();
}

const rowsOf = (url: string) =>
  query(
    url,
    `SELECT count(*)::int AS rows, min(length(groups)) AS bits, sum(('x' || left(md5(uid || coalesce(detail, '')), 7))::bit(28)::int)::text AS sum FROM cot_router`,
  );

const title = `the upgrade of PostgreSQL for a release (${upgradeMissing ?? 'is there'})`;
describe.skipIf(upgradeMissing !== undefined)(title, () => {
  let stack: Upgrade;
  let owner: string;
  let before: unknown;
  const clusters = (): string[] =>
    readdirSync(stack.volume)
      .filter((name) => name.startsWith('pgdata'))
      .toSorted();
  const major = (name = 'pgdata'): string => readFileSync(join(stack.volume, name, 'PG_VERSION'), 'utf8').trim();

  beforeAll(async () => {
    stack = await newUpgrade();
    owner = stack.url('martiuser', PASSWORDS.CORE_DB_PASSWORD);
    const old = await up(stack.old);
    await query(
      owner,
      `INSERT INTO cot_router (uid, groups, detail)
       SELECT 'uid-' || n, lpad('101', 32768, '0')::bit varying, '<detail>' || md5(n::text) || E'\\t\\\\' || '</detail>'
       FROM generate_series(1, ${ROWS}) AS n`,
    );
    await query(owner, `INSERT INTO certificate VALUES (1, 'a token')`);
    // As an old release or an administrator left it: the start of ours re-stores our roles alone.
    await query(owner, `SET password_encryption = 'md5'; ALTER ROLE martiuser PASSWORD 'of-old'`);
    before = await rowsOf(stack.url('martiuser', 'of-old')).catch(String);
    await endRole(old, 'SIGINT');
    asSuperuser(stack, 15, `CREATE ROLE legacy LOGIN PASSWORD 'md5${'0'.repeat(32)}'`);
    asSuperuser(stack, 15, 'GRANT SELECT ON cot_router TO legacy');
    asSuperuser(stack, 15, `ALTER DATABASE cot SET work_mem = '7MB'`);
  }, UP_WITHIN_MS);

  it('is refused until it was asked for, and without an export of the database as it is', async () => {
    // What hba asks for is scram-sha-256: a role with an md5 password can't sign in.
    expect(before).toMatch(/password authentication failed/);
    const program = await up(stack.old);
    before = await rowsOf(owner);
    expect(before).toMatchObject([{ rows: ROWS, bits: 32768 }]);
    await down(program);
    expect(await refusalOf(stack.new)).toMatch(
      /created by PostgreSQL 15, but this Holdfast release uses PostgreSQL 18\. Nothing was changed.*upgrade-database\.sh --from RELEASE/,
    );
    const none = await step(stack.new, 'import');
    expect(none).toMatchObject({
      code: 1,
      text: expect.stringContaining('has no complete export of the old database'),
    });
    const wrong = await step(stack.new, 'export');
    expect(wrong).toMatchObject({ code: 1, text: expect.stringContaining('created by PostgreSQL 15') });
    expect(clusters()).toEqual(['pgdata']);
  });

  it('needs room for the export and the new cluster, and changes nothing without it', async () => {
    const small = `mount -t tmpfs -o size=1100m,mode=0700,uid=65534,gid=65534 none "$1" && cp -a "$2/." "$1/"`;
    const place = join(stack.volume, '../small');
    spawnSync('mkdir', [place]);
    expect(spawnSync('sh', ['-c', small, 'sh', place, stack.volume]).status).toBe(0);
    try {
      const { code, text } = await step({ ...stack.old, HOLDFAST_DATABASE_DIR: place }, 'export');
      expect([code, text]).toEqual([
        1,
        expect.stringMatching(
          /The volume has .* free; the upgrade needs .*twice the database.*Nothing was changed\.\n {2}Remedy: free some space/s,
        ),
      ]);
    } finally {
      spawnSync('umount', [place]);
    }
  });

  it('starts over after being killed at any moment, with the old cluster in use until it is done', async () => {
    const inExport: [string, (text: string) => boolean][] = [
      ['the export begins', () => existsSync(join(stack.volume, 'upgrade'))],
      ['the dump is being written', () => existsSync(join(stack.volume, 'upgrade/export.partial/dump'))],
    ];
    for (const [name, isThen] of inExport) {
      const { messagesOf, kill } = await runInNamespace({ volume: stack.volume, environment: stack.old }, ['export']);
      await killedOnce(name, () => isThen(messagesOf()), kill);
      expect([name, major(), existsSync(join(stack.volume, 'upgrade/export'))]).toEqual([name, '15', false]);
    }
    expect(await step(stack.old, 'export')).toMatchObject({ code: 0 });
    const databases = (): number => readdirSync(join(stack.volume, 'pgdata.upgrading/base')).length;
    const inImport: [string, (text: string) => boolean][] = [
      ['the new cluster begins', () => existsSync(join(stack.volume, 'pgdata.upgrading'))],
      ['its server runs', () => existsSync(join(stack.volume, 'pgdata.upgrading/postmaster.pid'))],
      ['its database is there', () => existsSync(join(stack.volume, 'pgdata.upgrading/base')) && databases() > 3],
      ['it is verified', (text) => text.includes('Verifying')],
    ];
    for (const [name, isThen] of inImport) {
      const { messagesOf, kill } = await runInNamespace({ volume: stack.volume, environment: stack.new }, ['import']);
      await killedOnce(name, () => isThen(messagesOf()), kill);
      await delay(100);
      expect([name, major(), clusters().includes('pgdata')]).toEqual([name, '15', true]);
    }
  });

  it('refuses an export that the old database has outlived', async () => {
    await down(await up(stack.old));
    expect(await step(stack.new, 'import')).toMatchObject({
      code: 1,
      text: expect.stringContaining('The old database ran after it was exported'),
    });
  });

  it('brings every row, role and setting, and starts on the schema of the new release', async () => {
    const exported = await step(stack.old, 'export');
    expect(exported).toMatchObject({ code: 0, text: expect.stringContaining('of PostgreSQL 15 (schema 99)') });
    const imported = await step(stack.new, 'import');
    expect(imported).toMatchObject({
      code: 0,
      text: expect.stringMatching(
        /Upgraded the database from PostgreSQL 15 to 18: \d+ tables verified\. .*kept as pgdata-15/,
      ),
    });
    expect([clusters(), major(), major('pgdata-15')]).toEqual([['pgdata', 'pgdata-15'], '18', '15']);
    expect(existsSync(join(stack.volume, 'upgrade'))).toBe(false);
    const program = await up(stack.new);
    expect(await rowsOf(owner)).toEqual(before);
    const [facts] = await query<Record<string, unknown>>(
      owner,
      `SELECT current_setting('server_version_num')::int / 10000 AS major, current_setting('archive_mode') AS archiving,
        current_setting('work_mem') AS work_mem, (SELECT max(version) FROM schema_version) AS schema,
        nextval('cot_router_id_seq')::int AS next, has_table_privilege('legacy', 'cot_router', 'SELECT') AS granted,
        (SELECT count(*)::int FROM information_schema.columns WHERE table_name = 'cot_router' AND column_name IN ('flow_tags', 'username')) AS columns`,
    );
    expect(facts).toMatchObject({
      major: 18,
      archiving: 'off',
      work_mem: '7MB',
      next: ROWS + 1,
      granted: true,
      columns: 2,
    });
    // Every role of ours has a SCRAM verifier, whatever it had; the one of somebody else is seen.
    const reader = stack.url('holdfast_ro', PASSWORDS.CORE_READER_PASSWORD);
    const stored = await query(
      reader,
      `SELECT rolname AS role, left(rolpassword, 5) AS kind FROM pg_authid WHERE rolcanlogin AND rolpassword IS NOT NULL ORDER BY 1`,
    );
    expect(stored).toEqual([
      { role: 'holdfast_flows', kind: 'SCRAM' },
      { role: 'holdfast_ro', kind: 'SCRAM' },
      { role: 'legacy', kind: expect.stringMatching(/^md5/) },
      { role: 'martiuser', kind: 'SCRAM' },
    ]);
    await query(owner, `INSERT INTO cot_router (uid, username) VALUES ('after', 'ada')`);
    await down(program);
    expect(await step(stack.old, 'export')).toMatchObject({
      code: 0,
      text: 'The database was upgraded from PostgreSQL 15 to 18 already.\n',
    });
    expect(await step(stack.new, 'import')).toMatchObject({
      code: 0,
      text: 'The database is PostgreSQL 18 already.\n',
    });
  });

  it('completes a switch that was interrupted, and never makes an empty cluster beside a kept one', async () => {
    const at = (name: string): string => join(stack.volume, name);
    renameSync(at('pgdata'), at('pgdata.upgraded'));
    const program = await up(stack.new);
    expect(await query(owner, `SELECT uid FROM cot_router WHERE username = 'ada'`)).toEqual([{ uid: 'after' }]);
    await down(program);
    renameSync(at('pgdata'), at('elsewhere'));
    expect(await refusalOf(stack.new)).toMatch(/has no cluster in use, only kept ones \(pgdata-15\)/);
    renameSync(at('elsewhere'), at('pgdata'));
    expect(clusters()).toEqual(['pgdata', 'pgdata-15']);
  });

  it('goes back to the old cluster with what it had, also when that was interrupted, and upgrades again', async () => {
    expect(await step(stack.old, 'back')).toMatchObject({ code: 0, text: 'The database is PostgreSQL 15 again.\n' });
    expect([clusters(), major()]).toEqual([['pgdata', 'pgdata-18'], '15']);
    expect(await step(stack.old, 'back')).toMatchObject({ code: 0, text: 'The database is PostgreSQL 15 already.\n' });
    const program = await up(stack.old);
    expect(await rowsOf(owner)).toEqual(before);
    await down(program);
    expect(await step(stack.new, 'back')).toMatchObject({ code: 0 });
    renameSync(join(stack.volume, 'pgdata'), join(stack.volume, 'pgdata.left'));
    expect(await step(stack.old, 'back')).toMatchObject({ code: 0 });
    expect(major()).toBe('15');
    expect(await step(stack.old, 'forget')).toMatchObject({
      code: 0,
      text: 'Deleted the kept clusters of PostgreSQL 18.\n',
    });
    expect(clusters()).toEqual(['pgdata']);
    expect((await step(stack.old, 'export')).code).toBe(0);
    expect((await step(stack.new, 'import')).code).toBe(0);
    await down(await up(stack.new));
    rmSync(join(stack.volume, 'pgdata-15'), { recursive: true });
    expect(await step(stack.old, 'back')).toMatchObject({
      code: 1,
      text: expect.stringContaining('no cluster of PostgreSQL 15 to go back to'),
    });
  });

  it('refuses a schema tool that leaves an older schema, and a release that is older than the schema', async () => {
    const stale = await newUpgrade();
    renameSync(
      join(stale.imageOf(15), 'opt/tak/db-utils/migrations.sql'),
      join(stale.imageOf(18), 'opt/tak/db-utils/migrations.sql'),
    );
    expect(await refusalOf(stale.new)).toMatch(/has schema 99, not 106: the release would lose what it receives/);
    const newer = await newUpgrade();
    await down(await up(newer.new));
    renameSync(
      join(newer.imageOf(15), 'opt/tak/db-utils/SchemaManager.jar'),
      join(newer.imageOf(18), 'opt/tak/db-utils/SchemaManager.jar'),
    );
    expect(await refusalOf(newer.new)).toMatch(/has schema 106, newer than the release's 99/);
  });
});
