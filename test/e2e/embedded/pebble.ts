// Pebble, the ACME server for tests, and its name server, in which every name is this machine until
// told otherwise.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { testPki } from '../../core/fake-test-pki.ts';
import { freeOffset } from './embedded.ts';

/** Why Pebble cannot run here; undefined when it can. */
export const pebbleMissing = ['pebble', 'pebble-challtestsrv']
  .filter((program) => spawnSync(program, ['-h']).error !== undefined)
  .map((program) => `${program} is not installed (Debian package pebble)`)[0];

export interface PebbleOrder {
  /** Where it asks for the answers to HTTP-01. */
  httpPort: () => number;
  certificateSeconds?: number;
  /**
   * Names for which it refuses every order. All or none: after a refusal Pebble 2.4 fails at the
   * orders of others.
   */
  refused?: string[];
  /** PEBBLE_WFE_NONCEREJECT and its like. */
  env?: Record<string, string>;
}

export interface Pebble {
  /** A file for `local/` of Caddy. */
  options(): string;
  /** Where every name points to from now on; an empty word is nowhere. */
  pointNamesTo(address: string): Promise<void>;
  pointNameTo(host: string, address: string): Promise<void>;
  /** PEM of the root that it signs under in this run. */
  root(): Promise<string>;
  log(): string;
  start(): Promise<void>;
  stop(): Promise<void>;
  end(): Promise<void>;
}

/** Not started yet: Caddy's port may not be known. */
export async function newPebble(order: PebbleOrder): Promise<Pebble> {
  const { httpPort, certificateSeconds = 86_400, refused = [], env = {} } = order;
  const pki = await testPki('CA of the test of ACME');
  const own = await pki.server('pebble');
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-pebble-'));
  const offset = await freeOffset();
  const [acme, management, dns, dnsManagement] = [8443 + offset, 8081 + offset, 3000 + offset, 8080 + offset];
  const trusting = new Agent({ connect: { ca: pki.ca.certificate } });
  const children: ChildProcess[] = [];
  let log = '';

  function run(program: string, args: string[], more: Record<string, string> = {}): void {
    const child = spawn(program, args, {
      env: { PATH: process.env['PATH'] ?? '', ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (log += chunk.toString()));
    children.push(child);
  }

  async function answers(what: string, ask: () => Promise<unknown>): Promise<void> {
    for (let time = 0; time < 600; time++) {
      if (await ask().then(() => true, () => false)) return; // prettier-ignore
      await new Promise((tick) => setTimeout(tick, 50));
    }
    throw new Error(`${what} did not answer in 30 s: ${log}`);
  }

  const ask = async (url: string): Promise<string> => (await request(url, { dispatcher: trusting })).body.text();
  const setNames = async (path: string, names: object): Promise<void> => {
    const body = JSON.stringify(names);
    await (await request(`http://127.0.0.1:${dnsManagement}/${path}`, { method: 'POST', body })).body.text();
  };

  async function start(): Promise<void> {
    const config = join(directory, 'pebble.json');
    const pebble = {
      listenAddress: `127.0.0.1:${acme}`,
      managementListenAddress: `127.0.0.1:${management}`,
      certificate: own.certificateFile,
      privateKey: own.keyFile,
      httpPort: httpPort(),
      tlsPort: 1,
      ocspResponderURL: '',
      certificateValidityPeriod: certificateSeconds,
      domainBlocklist: refused,
    };
    writeFileSync(config, JSON.stringify({ pebble }));
    const off = ['-http01', '', '-https01', '', '-tlsalpn01', '', '-defaultIPv6', ''];
    run('pebble-challtestsrv', [
      ...off,
      '-dns01',
      `127.0.0.1:${dns}`,
      '-management',
      `127.0.0.1:${dnsManagement}`,
      '-defaultIPv4',
      '127.0.0.1',
    ]);
    const moods = { PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '0', PEBBLE_AUTHZREUSE: '0', ...env };
    run('pebble', ['-config', config, '-dnsserver', `127.0.0.1:${dns}`], moods);
    await answers('pebble', () => ask(`https://127.0.0.1:${acme}/dir`));
    await answers('its name server', () => setNames('set-default-ipv4', { ip: '127.0.0.1' }));
  }

  async function stop(): Promise<void> {
    await Promise.all(
      children.splice(0).map(async (child) => {
        if (child.exitCode !== null) return;
        const ended = once(child, 'exit');
        child.kill('SIGKILL');
        await ended;
      }),
    );
  }

  return {
    options: () => `acme_ca https://127.0.0.1:${acme}/dir\nacme_ca_root ${pki.ca.certificateFile}\n`,
    pointNamesTo: (address) => setNames('set-default-ipv4', { ip: address }),
    pointNameTo: (host, address) => setNames('add-a', { host: `${host}.`, addresses: [address] }),
    root: () => ask(`https://127.0.0.1:${management}/roots/0`),
    log: () => log,
    start,
    stop,
    async end() {
      await stop();
      await trusting.close();
      rmSync(directory, { recursive: true, force: true });
      rmSync(pki.directory, { recursive: true, force: true });
    },
  };
}
