// Health of a running stack, provoked against the real things: dead rows, a stopped database, a
// full disk's thresholds, TLS endpoints, changed settings.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { HealthBody, ModuleBody } from '../../health/fake-health-body.ts';
import { basic } from '../../http/fake-deps.ts';
import { answersPing, eventually, newStack, query, stop, type TestStack } from './embedded.ts';

const MODULES = [
  'database',
  'autovacuum',
  'retention',
  'disk',
  'certificates',
  'tls',
  'core',
  'identity',
  'probe',
  'time',
  'dns',
  'containers',
  'config',
  'updates',
  'backup',
  'alerts',
];

let stack: TestStack;
let feed: Server;
let feedAnswer = '[]';
let envFile: string;

const get = async (path: string): Promise<Response> => {
  const { api, webadmin } = stack.file();
  return fetch(`${api}${path}`, { headers: { authorization: basic(webadmin.username, webadmin.password) } });
};
const health = async (): Promise<HealthBody> => (await (await get('/api/health')).json()) as HealthBody;
const live = async <T = ModuleBody>(module: string): Promise<T> =>
  (await (await get(`/api/health/${module}`)).json()) as T;
const owner = <T extends object>(text: string): Promise<T[]> => query<T>(stack.file().database, text);

/**
 * A table with that many live and dead rows, which autovacuum leaves alone; the writer has
 * disconnected.
 */
async function tableWith(name: string, live_: number, dead: number): Promise<void> {
  await owner(`
    DROP TABLE IF EXISTS ${name};
    CREATE TABLE ${name} (n int) WITH (autovacuum_vacuum_threshold = 1000000000, autovacuum_vacuum_insert_threshold = -1);
    INSERT INTO ${name} SELECT generate_series(1, ${live_ + dead})`);
  await owner(`DELETE FROM ${name} WHERE n > ${live_}`);
}

beforeAll(async () => {
  feed = createServer((_, response) => response.setHeader('content-type', 'application/json').end(feedAnswer));
  await new Promise<void>((listening) => feed.listen(0, '127.0.0.1', listening));
  const address = feed.address();
  const port = typeof address === 'object' ? address?.port : 0;
  stack = await newStack();
  envFile = join(dirname(stack.data), 'health.env');
  mkdirSync(dirname(stack.data), { recursive: true });
  const intervals = MODULES.filter((name) => name !== 'time').map((name) => `MON_${name.toUpperCase()}_INTERVAL=1`);
  writeFileSync(envFile, [...intervals, `UPDATES_URL=http://127.0.0.1:${port}/api`, ''].join('\n'));
  const { code, output } = await stack.start(['--env', envFile]);
  expect(output).toMatch(new RegExp(`health +${MODULES.length} checks finished`));
  expect(code).toBe(0);
});
afterAll(async () => {
  feed.close();
  await stop(stack.data);
});

describe('a stack that has just started', () => {
  it('has measured every module once', async () => {
    const { modules } = await health();
    expect(Object.keys(modules)).toEqual(MODULES);
    for (const each of Object.values(modules)) expect(Date.parse(each.updated_at)).toBeGreaterThan(0);
  });

  it('prints what is warning or critical, and starts all the same', async () => {
    const other = await newStack();
    const { code, output } = await other.start([], {
      env: { MON_DISK_WARNING: '0', MON_DISK_CRITICAL: '0', UPDATES_URL: 'off' },
    });
    expect(code).toBe(0);
    expect(output).toMatch(new RegExp(`${MODULES.length} checks finished, 1 warning`));
    expect(output).toMatch(/disk is critical: .* % full/);
    await stop(other.data);
  });
});

describe('dead rows', () => {
  it('999 of them change nothing', async () => {
    await tableWith('rows_dead', 1000, 999);
    const { status, tables } = await live<{ status: string; tables: Record<string, unknown>[] }>('autovacuum');
    expect(tables).toContainEqual({
      schema: 'public',
      table: 'rows_dead',
      dead_tuples: 999,
      live_tuples: 1000,
      dead_pct: 49.97,
      last_autovacuum: null,
      last_vacuum: null,
    });
    expect(status).toBe('ok');
    const since = (await health()).modules['autovacuum']?.updated_at;
    await eventually('it is polled again', async () => (await health()).modules['autovacuum']?.updated_at !== since);
    expect((await health()).modules['autovacuum']?.status).toBe('ok');
  });

  it('1,000 of them turn the live answer critical at once, the cached one at its next poll, and a VACUUM heals both', async () => {
    await tableWith('rows_dead', 1000, 1000);
    expect(await live('autovacuum')).toMatchObject({
      status: 'critical',
      message: expect.stringMatching(/^public\.rows_dead: 50 % of its rows are dead \(1000 of 2000\)/),
    });
    await eventually('the cache says so', async () => (await health()).modules['autovacuum']?.status === 'critical');
    expect((await health()).status).toBe('critical');
    await owner('VACUUM rows_dead');
    await eventually('the live answer is ok', async () => (await live('autovacuum')).status === 'ok');
    await eventually('the cache is ok', async () => (await health()).modules['autovacuum']?.status === 'ok');
    await owner('DROP TABLE rows_dead');
  });
});

describe('sizes', () => {
  it('are live, and total less live is overhead', async () => {
    const size = async () => live<{ total_bytes: number; live_bytes: number; overhead_bytes: number }>('database');
    const before = await size();
    await owner(`
      CREATE TABLE grown (t text); INSERT INTO grown SELECT repeat(md5(n::text), 10) FROM generate_series(1, 20000) n`);
    const after = await size();
    await owner('DROP TABLE grown');
    expect(after.live_bytes - before.live_bytes).toBeGreaterThan(5e6);
    expect(after.overhead_bytes).toBe(after.total_bytes - after.live_bytes);
    expect(before.overhead_bytes).toBeGreaterThan(5e6);
    expect(before.overhead_bytes).toBeLessThan(20e6);
  });
});

describe('a setting of the server that is not the wanted one', () => {
  it('is a warning that names it, at once', async () => {
    await owner("ALTER DATABASE cot SET maintenance_work_mem = '65MB'");
    expect(await live<Record<string, unknown>>('autovacuum')).toMatchObject({
      status: 'warning',
      message: expect.stringMatching(/^maintenance_work_mem is 65MB, not 256MB/),
      settings: { maintenance_work_mem: '65MB' },
    });
    await owner('ALTER DATABASE cot RESET maintenance_work_mem');
    expect((await live('autovacuum')).status).toBe('ok');
    await owner("ALTER ROLE martiuser SET maintenance_work_mem = '66MB'");
    expect((await live('autovacuum')).message).toMatch(/^maintenance_work_mem is 66MB/);
    await owner('ALTER ROLE martiuser RESET maintenance_work_mem');
    expect((await live('autovacuum')).status).toBe('ok');
  });
});

describe('a changed env file', () => {
  it('is a note that names the setting, until it is changed back', async () => {
    const text = readFileSync(envFile, 'utf8');
    writeFileSync(envFile, `${text}SMTP_URL=smtp://me:mailpassword@mail.example.org\nMON_DISK_WARNING=70\n`);
    const body = await live('config');
    expect(body).toMatchObject({ status: 'note', data: { changed: ['SMTP_URL', 'modules.disk.warning'] } });
    expect(JSON.stringify(body)).not.toContain('mailpassword');
    writeFileSync(envFile, `${text}DB_AUTOVACUUM_COST_LIMIT=lots\n`);
    expect((await live('config')).message).toMatch(/DB_AUTOVACUUM_COST_LIMIT \(the next start would refuse it\)/);
    writeFileSync(envFile, text);
    expect((await live('config')).status).toBe('ok');
  });

  it('that the next start would refuse, or that is no file at all, is a note with the place, and holds nothing up', async () => {
    const text = readFileSync(envFile, 'utf8');
    writeFileSync(envFile, `${text}this is not a line\n`);
    expect((await live('config')).message).toMatch(/health\.env line \d+ \(.*the next start would refuse it\)/);
    for (const make of [() => mkdirSync(envFile), () => spawnSync('mkfifo', [envFile])]) {
      rmSync(envFile, { recursive: true });
      make();
      expect((await live('config')).message).toMatch(/health\.env \(can't be read: it isn't a regular file\)/);
      expect(await answersPing(stack.file().api)).toBe(true);
    }
    rmSync(envFile);
    writeFileSync(envFile, text);
    expect((await live('config')).status).toBe('ok');
  });
});

describe('newer releases', () => {
  it('are a note; a feed that answers nonsense is never ok', async () => {
    const server = (await live<{ version: string }>('database')).version;
    feedAnswer = JSON.stringify([
      { cycle: '16', latest: server },
      { cycle: '24', latest: process.versions.node },
    ]);
    expect((await live('updates')).status).toBe('ok');
    feedAnswer = JSON.stringify([
      { cycle: '16', latest: '16.999' },
      { cycle: '24', latest: process.versions.node },
    ]);
    expect(await live('updates')).toMatchObject({
      status: 'note',
      message: expect.stringMatching(/PostgreSQL 16\.999 is available/),
    });
    feedAnswer = '<html>Please sign in to this network</html>';
    expect((await live('updates')).status).toBe('note');
  });

  it('are not looked for without network', async () => {
    feed.closeAllConnections();
    await new Promise((closed) => feed.close(closed));
    expect(await live('updates')).toMatchObject({
      status: 'ok',
      message: expect.stringMatching(
        /^Couldn't check for updates: no network \(Couldn't reach 127\.0\.0\.1:\d+ \(ECONNREFUSED\)/,
      ),
    });
  });
});

describe('a database that stops', () => {
  /**
   * The fastest of five answers: what waits for the database waits each time, and others use this
   * machine too.
   */
  const took = async (path: string): Promise<number> => {
    let fastest = Infinity;
    for (let tries = 0; tries < 5; tries++) {
      const begun = performance.now();
      expect((await get(path)).status).toBe(200);
      fastest = Math.min(fastest, performance.now() - begun);
    }
    return fastest;
  };

  it('is critical within one interval, everything else goes on, and all heals by itself when it is back', async () => {
    const management = stack.pid('management');
    const database = stack.pid('database');
    process.kill(stack.pid('supervisor'), 'SIGSTOP');
    try {
      process.kill(database, 'SIGINT');
      await eventually('database is critical', async () => (await health()).modules['database']?.status === 'critical');
      const { status, modules } = await health();
      expect(status).toBe('critical');
      expect(modules['database']?.message).toMatch(/database does not answer/);
      expect(modules['disk']?.status).not.toBe(undefined);
      for (const path of ['/api/ping', '/api/health', '/api/health?view=status', '/api/health/disk'])
        expect([path, (await took(path)) < 2_000]).toEqual([path, true]);
      expect(await live('database')).toMatchObject({ status: 'critical', total_bytes: null });
      expect(await live('autovacuum')).toMatchObject({ status: 'critical', tables: [] });
      const updated = modules['disk']?.updated_at;
      await eventually('disk is still measured', async () => (await health()).modules['disk']?.updated_at !== updated);
    } finally {
      process.kill(stack.pid('supervisor'), 'SIGCONT');
    }
    await eventually('database is ok', async () => (await health()).modules['database']?.status === 'ok', 15_000);
    await eventually('autovacuum is ok', async () => (await health()).modules['autovacuum']?.status === 'ok');
    expect(stack.pid('management')).toBe(management);
    expect(await answersPing(stack.file().api)).toBe(true);
  });

  it('that takes no new connection is critical, although the kept ones still work', async () => {
    await owner('ALTER DATABASE cot CONNECTION LIMIT 0');
    try {
      const critical = async (): Promise<boolean> => (await health()).modules['database']?.status === 'critical';
      await eventually('database is critical', critical);
      expect((await health()).modules['database']?.message).toMatch(
        /^couldn't open a new connection: The core's database refuses the connection: too many connections/,
      );
    } finally {
      await query(stack.file().database.replace(/cot$/, 'postgres'), 'ALTER DATABASE cot CONNECTION LIMIT -1');
    }
    await eventually('it is ok again', async () => (await health()).modules['database']?.status === 'ok');
  });

  it('that only hangs is critical too, and holds nothing else up', async () => {
    const processes = await owner<{ pid: number }>(
      "SELECT pid FROM pg_stat_activity WHERE usename IN ('holdfast', 'holdfast_ro')",
    );
    const frozen = [stack.pid('database'), ...processes.map(({ pid }) => pid)];
    for (const pid of frozen) process.kill(pid, 'SIGSTOP');
    try {
      await eventually('database is critical', async () => (await health()).modules['database']?.status === 'critical');
      const updated = (await health()).modules['disk']?.updated_at;
      await eventually(
        'disk is measured meanwhile',
        async () => (await health()).modules['disk']?.updated_at !== updated,
      );
      for (const path of ['/api/ping', '/api/health']) expect(await took(path)).toBeLessThan(2000);
    } finally {
      for (const pid of frozen) process.kill(pid, 'SIGCONT');
    }
    await eventually('database is ok', async () => (await health()).modules['database']?.status === 'ok', 15_000);
  });
});

describe('a claimed job', () => {
  it('is recorded in our own database, once', async () => {
    const rows = await query<{ name: string; attempt: number; error: string | null }>(
      stack.file().state_database,
      "SELECT name, attempt, error FROM job_run WHERE name = 'prune-job-runs' AND finished_at IS NOT NULL",
    );
    expect(rows[0]).toEqual({ name: 'prune-job-runs', attempt: 1, error: null });
  });

  it('that crashed is taken over by the running process', async () => {
    await query(
      stack.file().state_database,
      `INSERT INTO job_run (name, due_at, runner, lease_until)
       VALUES ('prune-job-runs', date_trunc('hour', now()) - interval '1 day', 'a process that died', now() - interval '1 second')`,
    );
    await eventually(
      'it is finished',
      async () => {
        const [row] = await query<{ done: boolean; attempt: number }>(
          stack.file().state_database,
          "SELECT finished_at IS NOT NULL AS done, attempt FROM job_run WHERE name = 'prune-job-runs' ORDER BY due_at LIMIT 1",
        );
        // A claim that was on its way to a frozen database may have been made for nobody: then the
        // next look takes it over.
        return row?.done === true && [2, 3].includes(row.attempt);
      },
      90_000,
    );
  });
});
