// An embedded stack for a benchmark, in a directory of its own.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const home = resolve(import.meta.dirname, '..');
/**
 * Below the ports that the system gives to clients (32768 and above): the load itself would take
 * ours.
 */
export const OFFSET = Number(process.env['HOLDFAST_BENCH_OFFSET'] ?? 23_000);

interface StackFile {
  api: string;
  database: string;
  ldap: { url: string; base_dn: string };
  state_database: string;
  webadmin: { username: string; password: string };
  pids: { role: string; pid: number }[];
}

export interface BenchStack {
  api: string;
  apiPort: number;
  /** 8443, 8446 and 8089 of the core, and its data directory. */
  corePort: number;
  enrollmentPort: number;
  streamPort: number;
  coreDirectory: string;
  /** The core's database, as its owner. */
  database: string;
  /** The core's database, as the reader that health uses. */
  readerDatabase: string;
  /** Our own database, and that of the identity provider, as their owners. */
  stateDatabase: string;
  identityDatabase: string;
  identityUrl: string;
  identityToken: string;
  auditKey: string;
  /** The Authorization header of the web-admin. */
  authorization: string;
  /** The password of the web-admin. */
  password: string;
  ldap: { url: string; base_dn: string };
  /** The HTTP API of the identity provider, with a token that may do everything there. */
  identity: { url: string; token: string };
  pid(role: string): number;
  /** Ends the management process; the supervisor starts it again. */
  restartManagement(): void;
  /** Resolves when the API answers. */
  answering(): Promise<void>;
  stop(): void;
}

/** Starts it with these settings; the programs are built first. */
export async function benchStack(
  settings: Record<string, string> = {},
  more: readonly string[] = [],
): Promise<BenchStack> {
  const parent = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  const data = join(parent, 'data');
  script('start.sh', ['--help']);
  const args = ['--embedded', '--detach', '--data', data, '--offset', String(OFFSET), '--env', '/dev/null', ...more];
  script('start.sh', args, settings);
  const file = (): StackFile => JSON.parse(readFileSync(join(data, 'stack.json'), 'utf8')) as StackFile;
  const { api, database, ldap, state_database: stateDatabase, webadmin } = file();
  const secrets = JSON.parse(readFileSync(join(data, 'secrets.json'), 'utf8')) as Record<string, string>;
  const pid = (role: string): number => file().pids.find((each) => each.role === role)?.pid ?? 0;
  return {
    api,
    apiPort: Number(new URL(api).port),
    corePort: 8443 + OFFSET,
    enrollmentPort: 8446 + OFFSET,
    streamPort: 8089 + OFFSET,
    coreDirectory: join(data, 'core'),
    database,
    readerDatabase: asReader(database, data),
    stateDatabase,
    identityDatabase: asIdentity(stateDatabase, secrets),
    identityUrl: `http://127.0.0.1:${9000 + OFFSET}`,
    identityToken: secrets['IDENTITY_TOKEN'] ?? '',
    auditKey: secrets['AUDIT_KEY'] ?? '',
    password: webadmin.password,
    ldap,
    identity: { url: `http://127.0.0.1:${9000 + OFFSET}`, token: secretsOf(data)['IDENTITY_TOKEN'] ?? '' },
    authorization: `Basic ${Buffer.from(`${webadmin.username}:${webadmin.password}`).toString('base64')}`,
    pid,
    restartManagement: () => process.kill(pid('management'), 'SIGKILL'),
    async answering() {
      for (;;) {
        await new Promise((tick) => setTimeout(tick, 100));
        const answers = await fetch(`${api}/api/ping`).then(
          ({ ok }) => ok,
          () => false,
        );
        if (answers && pid('management') > 0) return;
      }
    },
    stop() {
      script('stop.sh', ['--data', data]);
      rmSync(parent, { recursive: true, force: true });
    },
  };
}

function secretsOf(data: string): Record<string, string> {
  return JSON.parse(readFileSync(join(data, 'secrets.json'), 'utf8')) as Record<string, string>;
}

function asReader(database: string, data: string): string {
  const url = new URL(database);
  url.username = 'holdfast_ro';
  url.password = secretsOf(data)['CORE_READER_PASSWORD'] ?? '';
  return url.href;
}

function asIdentity(stateDatabase: string, secrets: Record<string, string>): string {
  const url = new URL(stateDatabase);
  url.username = 'identity';
  url.password = secrets['IDENTITY_DB_PASSWORD'] ?? '';
  url.pathname = '/identity';
  return url.href;
}

/** Runs a script of ours to its end; throws with what it said when it fails. */
export function script(name: string, args: string[], settings: Record<string, string> = {}): void {
  const env = { ...settings, PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '/' };
  const { status, stderr } = spawnSync(join(home, 'scripts', name), args, { env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${name} ended with ${status}: ${stderr}`);
}
