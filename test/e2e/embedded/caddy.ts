// The real Caddy with the product's own configuration, on ports and in a directory of its own.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { freeOffset } from './embedded.ts';

const CONFIGURATION = resolve(import.meta.dirname, '../../../compose/caddy');

/** Why Caddy cannot run here; undefined when it can. */
export const caddyMissing = missing();

function missing(): string | undefined {
  const { stdout, error } = spawnSync('caddy', ['version'], { encoding: 'utf8' });
  if (error !== undefined) return 'caddy is not installed (2.11, Debian trixie-backports)';
  const [, minor = '0'] = /^v?2\.(\d+)/.exec(stdout) ?? [];
  return Number(minor) >= 11 ? undefined : `caddy ${stdout.trim()} is too old (2.11 is wanted)`;
}

export interface CaddyOrder {
  mode: 'subdomain' | 'direct';
  serverAddress: string;
  /** Where the core's files are; the directory of the run by default. */
  certificateDirectory?: string;
  /** Files for `local/`, by name. */
  local?: Record<string, string>;
  /** With the optional host of the video relay. */
  stream?: boolean;
  /** Further settings: upstreams, ports. */
  env?: Record<string, string>;
}

export interface Caddy {
  /** Of this run; `certificates` in it stands in for /certificate. */
  directory: string;
  certificates: string;
  ports: { http: number; https: number; enrollment: number; health: number };
  pid(): number;
  /** What it wrote so far. */
  log(): string;
  start(): Promise<void>;
  /** Waits for the first answer of its health address. */
  healthy(): Promise<void>;
  stop(): Promise<void>;
  /** Ends it and removes its directory. */
  end(): Promise<void>;
}

/** Not started yet. */
export async function newCaddy(order: CaddyOrder): Promise<Caddy> {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-caddy-'));
  const place = join(directory, 'etc');
  cpSync(CONFIGURATION, place, { recursive: true });
  if (order.stream === true) cpSync(join(place, 'stream'), join(place, 'sites'), { recursive: true });
  for (const [name, text] of Object.entries(order.local ?? {})) writeFileSync(join(place, 'local', name), text);
  const certificates = order.certificateDirectory ?? join(directory, 'certificates');
  mkdirSync(certificates, { recursive: true });
  const offset = await freeOffset();
  const [http, https, enrollment, health] = [8080 + offset, 8443 + offset, 8446 + offset, 8081 + offset];
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: directory,
    XDG_DATA_HOME: join(directory, 'data'),
    XDG_CONFIG_HOME: join(directory, 'config'),
    SERVER_ADDRESS: order.serverAddress,
    CERTIFICATE_DIR: certificates,
    HTTP_PORT: String(http),
    HTTPS_PORT: String(https),
    ENROLLMENT_PORT: String(enrollment),
    HEALTH_PORT: String(health),
    ...order.env,
  };
  let child: ChildProcess | undefined;
  let log = '';

  async function start(): Promise<void> {
    const args = ['run', '--watch', '--config', join(place, `${order.mode}.Caddyfile`), '--adapter', 'caddyfile'];
    child = spawn('caddy', args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (log += chunk.toString()));
    await once(child, 'spawn');
  }

  async function healthy(): Promise<void> {
    for (let time = 0; time < 600; time++) {
      if (child?.exitCode !== null) throw new Error(`caddy ended with ${child?.exitCode}: ${log}`);
      if ((await statusOf(health)) === 200) return;
      await new Promise((tick) => setTimeout(tick, 50));
    }
    throw new Error(`caddy did not answer in 30 s: ${log}`);
  }

  async function stop(): Promise<void> {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  return {
    directory,
    certificates,
    ports: { http, https, enrollment, health },
    pid: () => child?.pid ?? 0,
    log: () => log,
    start,
    healthy,
    stop,
    async end() {
      await stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function statusOf(port: number): Promise<number> {
  return new Promise((answer) => {
    const sent = get({ host: '127.0.0.1', port, agent: false, timeout: 1000 }, (response) => {
      response.resume();
      answer(response.statusCode ?? 0);
    });
    sent.on('error', () => answer(0));
    sent.on('timeout', () => sent.destroy());
  });
}
