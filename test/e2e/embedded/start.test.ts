import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  answersPing,
  cleanEnvironment,
  eventually,
  home,
  isFree,
  lives,
  newDataDirectory,
  newStack,
  type Outcome,
  outcomeOf,
  query,
  run,
  secretsOf,
  type StackFile,
  startArguments,
  stop,
  type TestStack,
  tuningOf,
} from './embedded.ts';
import { expectFlowsRights } from './flows-role.ts';

const SHOW = `SELECT current_setting('autovacuum_vacuum_scale_factor') AS scale,
  current_setting('autovacuum_vacuum_cost_limit') AS cost, current_setting('maintenance_work_mem') AS memory`;

let stack: TestStack;

describe('start.sh --embedded --detach', () => {
  let first: StackFile;
  let outcome: Outcome | undefined;

  beforeAll(async () => {
    stack = await newStack(newDataDirectory());
    const args = startArguments(stack.data, stack.offset, ['--detach']);
    const stdio = ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'] as const;
    const child = spawn(join(home, 'scripts/start.sh'), args, { env: cleanEnvironment(), stdio: [...stdio] });
    outcome = await Promise.race([outcomeOf(child), once(child, 'exit').then(() => delay(5000, undefined))]);
    expect(outcome?.output).toContain('Holdfast is running');
    expect(outcome?.output).toContain(
      `enroll on port ${8446 + stack.offset}, stream on port ${8089 + stack.offset}, use the core's API on port ${8443 + stack.offset}`,
    );
    expect(outcome?.code).toBe(0);
    first = stack.file();
  });

  it('holds no descriptor of its caller, and its output goes to DIR/logs', async () => {
    expect(outcome, 'closed within 5 s after the end of start.sh').toBeDefined();
    await eventually(
      'the log says ready',
      () => readFileSync(join(stack.data, 'logs/supervisor.log'), 'utf8').includes('stack.ready'),
      60_000,
    );
  });

  it('ends healthy: every process answers', async () => {
    expect(await answersPing(first.api)).toBe(true);
    expect(await query(first.database, 'SELECT current_database() AS name, current_user::text AS me')).toEqual([
      { name: 'cot', me: 'martiuser' },
    ]);
    expect(await query(first.state_database, 'SELECT current_database() AS name, current_user::text AS me')).toEqual([
      { name: 'holdfast', me: 'holdfast' },
    ]);
  });

  it('writes stack.json, mode 0600, with addresses on 127.0.0.1, credentials and processes', async () => {
    expect(statSync(join(stack.data, 'stack.json')).mode & 0o777).toBe(0o600);
    expect([first.api, first.console]).toEqual(Array(2).fill(`http://127.0.0.1:${8080 + stack.offset}`));
    expect(first.portal).toBe(`http://127.0.0.1:${3000 + stack.offset}`);
    expect(await answersPing(first.portal)).toBe(true);
    expect(new URL(first.database).hostname).toBe('127.0.0.1');
    expect(first.pids.map(({ role }) => role)).toEqual(['supervisor', 'database', 'identity', 'core', 'management']);
    expect(first.pids.every(({ pid }) => lives(pid))).toBe(true);
    expect(existsSync(first.ca_certificate)).toBe(true);
  });

  it('applies the autovacuum settings of the specification, seen by psql', () => {
    const shown = execFileSync('psql', [first.database, '-Atc', SHOW], { encoding: 'utf8' }).trim();
    expect(shown).toBe('0.05|1000|256MB');
  });

  it('gives no process of ours superuser rights, and lets the superuser in nowhere', async () => {
    for (const url of [first.database, first.state_database]) {
      expect(await query(url, 'SELECT rolsuper FROM pg_roles WHERE rolname = current_user')).toEqual([
        { rolsuper: false },
      ]);
    }
    const superuser = new URL(first.database);
    superuser.username = 'postgres';
    await expect(query(superuser.href, 'SELECT 1')).rejects.toThrow(/pg_hba|reject/);
  });

  it('gives the flow engine a role that reads named tables of the core alone', async () => {
    await expectFlowsRights(first.database);
    const flows = new URL(first.database);
    flows.username = 'holdfast_flows';
    flows.password = secretsOf(stack)['FLOWS_DB_PASSWORD'] ?? '';
    expect(await query(flows.href, 'SELECT id FROM cot_router WHERE false')).toEqual([]);
    await expect(query(flows.href, 'SELECT * FROM certificate')).rejects.toThrow(/permission denied/);
    await expect(query(flows.href, 'DELETE FROM cot_router')).rejects.toThrow(/read-only|permission denied/);
    flows.pathname = '/holdfast';
    await expect(query(flows.href, 'SELECT 1')).rejects.toThrow(/pg_hba\.conf rejects connection/);
  });

  it('keeps every secret out of logs, progress and the process list', () => {
    const secrets = [new URL(first.database).password, new URL(first.state_database).password, first.webadmin.password];
    const logs = readdirSync(join(stack.data, 'logs')).map((name) =>
      readFileSync(join(stack.data, 'logs', name), 'utf8'),
    );
    const commands = readdirSync('/proc').flatMap((entry) => (/^\d+$/.test(entry) ? [commandOf(entry)] : []));
    expect(logs.length).toBeGreaterThanOrEqual(3);
    for (const secret of secrets) expect([...logs, ...commands].filter((text) => text.includes(secret))).toEqual([]);
  });

  it('refuses a second start on the same directory and leaves the first one running', async () => {
    const { code, output } = await stack.start();
    expect(code).toBe(1);
    expect(output).toContain(`already uses ${stack.data}`);
    expect(output).toMatch(/Remedy: .*stop\.sh --data/);
    expect(stack.file().pids).toEqual(first.pids);
    expect(await answersPing(first.api)).toBe(true);
  });

  it('refuses taken ports, all at once, with the program that holds them and the remedy', async () => {
    const other = newDataDirectory();
    const { code, output } = await outcomeOf(run('start.sh', startArguments(other, stack.offset, ['--detach'])));
    expect(code).toBe(1);
    expect(output).toContain(`127.0.0.1:${8080 + stack.offset} (API and console) is in use by`);
    expect(output).toContain(`127.0.0.1:${3000 + stack.offset} (portal) is in use by`);
    expect(output).toContain(`127.0.0.1:${5432 + stack.offset} (PostgreSQL) is in use by postgres (process`);
    expect(output).toContain('--offset');
    expect(existsSync(join(other, 'pgdata'))).toBe(false);
    expect(existsSync(join(other, 'secrets.json'))).toBe(false);
  });

  it('shows other settings after the next start, keeps data and secrets, and warns of what the database overrides', async () => {
    await query(first.database, 'CREATE TABLE kept (n int); INSERT INTO kept SELECT generate_series(1, 1000)');
    await query(first.database, "ALTER ROLE martiuser SET maintenance_work_mem = '16MB'");
    expect((await stop(stack.data)).output).toContain('has stopped');
    expect(first.pids.filter(({ pid }) => lives(pid))).toEqual([]);
    expect(stack.file().pids).toEqual([]);
    const env = { DB_AUTOVACUUM_SCALE_FACTOR: '0.2', DB_AUTOVACUUM_COST_LIMIT: '200', DB_MAINTENANCE_WORK_MEM: '64MB' };
    const { code, output } = await stack.start([], { env });
    expect(output).toContain('autovacuum 0.2 / 200 / 64MB');
    expect(output).toContain('maintenance_work_mem is 16MB, not 64MB');
    expect(code).toBe(0);
    const again = stack.file();
    const environment = Object.keys(env).toSorted();
    expect({ ...again, pids: [] }).toEqual({
      ...first,
      pids: [],
      started_with: { ...first.started_with, environment },
    });
    expect(await query(again.database, SHOW)).toEqual([{ scale: '0.2', cost: '200', memory: '16MB' }]);
    expect(await query(again.database, 'SELECT count(*)::int AS n FROM kept')).toEqual([{ n: 1000 }]);
    expect(await query(again.state_database, 'SELECT count(*)::int AS starts FROM stack_start')).toEqual([
      { starts: 2 },
    ]);
  });

  it('stop.sh frees every port and is content when nothing runs', async () => {
    expect((await stop(stack.data)).code).toBe(0);
    expect(await isFree(8080 + stack.offset)).toBe(true);
    expect(await isFree(5432 + stack.offset)).toBe(true);
    const again = await stop(stack.data);
    expect([again.code, again.output]).toEqual([0, `The stack in ${stack.data} is already stopped.\n`]);
  });
});

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

describe('a stack in the foreground', () => {
  it('stops everything in order on Ctrl-C, and says so', async () => {
    const ofSupervisor = logFrom('supervisor');
    const ofDatabase = logFrom('database');
    const child = run('start.sh', startArguments(stack.data, stack.offset, []));
    const outcome = outcomeOf(child);
    await eventually('the log says ready', () => ofSupervisor().includes('stack.ready'), 60_000);
    expect(await answersPing(stack.file().api)).toBe(true);
    const { pids } = stack.file();
    process.kill(-(child.pid ?? 0), 'SIGINT');
    const { code, output } = await outcome;
    expect(code).toBe(0);
    expect(output).toContain('Holdfast has stopped.');
    expect(pids.filter(({ pid }) => lives(pid))).toEqual([]);
    const log = ofSupervisor();
    expect(log.indexOf('"event":"process.ended","process":"management"')).toBeGreaterThan(0);
    expect(log.indexOf('"event":"process.ended","process":"database"')).toBeGreaterThan(
      log.indexOf('"event":"process.ended","process":"management"'),
    );
    expect(ofDatabase()).toContain('database system is shut down');
  });

  /** What a log has from now on. */
  function logFrom(role: string): () => string {
    const file = join(stack.data, 'logs', `${role}.log`);
    const { length } = readFileSync(file, 'utf8');
    return () => readFileSync(file, 'utf8').slice(length);
  }
});

describe('a first start with an env file', () => {
  let fresh: TestStack;
  let env: string;
  beforeAll(async () => {
    fresh = await newStack(newDataDirectory());
    env = join(dirname(fresh.data), 'my.env');
    writeFileSync(
      env,
      'DB_AUTOVACUUM_COST_LIMIT=333\nDB_AUTOVACUM_SCALE_FACTOR=0.3\nCORE_WEBADMIN_PASSWORD="a password of mine"\n',
    );
  });

  /** Interrupts it at that moment; what it said. */
  async function interrupted(moment: () => Promise<void>): Promise<Outcome> {
    const child = run('start.sh', startArguments(fresh.data, fresh.offset, ['--env', env]));
    const outcome = outcomeOf(child);
    await moment();
    // Refused, it may have ended.
    if (child.exitCode === null) process.kill(-(child.pid ?? 0), 'SIGINT');
    return outcome;
  }

  it('interrupted in the middle leaves nothing running', async () => {
    const begun = (): boolean => existsSync(join(fresh.data, 'pgdata.new'));
    expect((await interrupted(() => eventually('the start has begun', begun, 60_000))).code).toBe(1);
    expect(await isFree(5432 + fresh.offset)).toBe(true);
  });

  it('interrupted at any moment keeps the lock until everything has ended', async () => {
    const outcomes: Promise<Outcome>[] = [];
    for (const delayMs of [120, 200, 300, 500]) {
      // Each comes while the one before may still be ending.
      const sent = Promise.withResolvers<void>();
      const moment = (): Promise<void> => delay(delayMs).then(sent.resolve);
      outcomes.push(interrupted(moment));
      await sent.promise;
    }
    for (const { output } of await Promise.all(outcomes)) {
      expect(output).not.toContain('Unexpected failure');
      expect(output).not.toContain('Stopping processes left over from a crash');
    }
  });

  it('uses its settings, and a name that nothing reads is said with what was meant', async () => {
    const { code, output } = await fresh.start(['--env', env]);
    expect(code).toBe(0);
    expect(output).not.toContain('Stopping processes left over from a crash');
    expect(output).toContain('unknown setting DB_AUTOVACUM_SCALE_FACTOR. Did you mean DB_AUTOVACUUM_SCALE_FACTOR?');
    expect(output).toContain('autovacuum 0.05 / 333 / 256MB');
    expect(await tuningOf(fresh.file().database)).toEqual(['0.05', '333', '256MB']);
    expect(fresh.file().webadmin.password).toBe('a password of mine');
    expect(readFileSync(join(fresh.data, 'secrets.json'), 'utf8')).not.toContain('CORE_WEBADMIN_PASSWORD');
  });
});
