// The light stack as the tests of an embedded stack know theirs: every inner door on a port of
// 127.0.0.1, and a directory with stack.json, secrets.json and the files of the core.

import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CORE_BASE } from '@holdfast/kit/directory';
import { freeOffset } from '../embedded/embedded.ts';
import { PORTABLE_SETTINGS } from '../embedded/portable.ts';
import type { StackFile, TestStack } from '../embedded/stack-file.ts';
import { addressesOf, gatewayOf } from './light-services.ts';
import type { SharedLight } from './shared-light.ts';
import { WireRelay } from './wire-relay.ts';

/**
 * The second database of a stack has no port of its own elsewhere: it gets that of the portal, and
 * the portal another.
 */
const APP_DATABASE_PORT = 3000;
const PORTAL_PORT = 8081;

/** In the light stack `identity` is in the place of both parts of authentik. */
const ENDPOINTS = [
  { port: 8080, service: 'management', network: 'edge', inside: 8080 },
  { port: PORTAL_PORT, service: 'management', network: 'edge', inside: 3000 },
  { port: 8443, service: 'core', network: 'edge', inside: 8443 },
  { port: 8446, service: 'core', network: 'edge', inside: 8446 },
  { port: 8089, service: 'core', network: 'edge', inside: 8089 },
  { port: 9000, service: 'authentik-server', network: 'directory', inside: 9000 },
  { port: 3389, service: 'authentik-ldap', network: 'directory', inside: 3389 },
  { port: 5432, service: 'core-database', network: 'core-data', inside: 5432 },
  { port: APP_DATABASE_PORT, service: 'app-database', network: 'app-data', inside: 5432 },
] as const;

export interface LightAuthenticator extends AsyncDisposable {
  /** For HOLDFAST_STACK_FILE. */
  stackFile: string;
  stack: Pick<TestStack, 'data' | 'offset' | 'file'>;
  /** To be called when containers were made anew: their addresses may be others. */
  lookAgain(): Promise<void>;
}

/** `streaming`: what answers at 8089. */
export async function openAuthenticator(light: SharedLight, streaming = 'core'): Promise<LightAuthenticator> {
  const { engine, project, env } = light;
  const offset = await freeOffset();
  let addresses = new Map<string, string>();
  const lookAgain = async (): Promise<void> => {
    addresses = await addressesOf(light);
  };
  await lookAgain();
  const relay = new WireRelay(engine);
  for (const { port, service, network, inside } of ENDPOINTS)
    await relay.open(port + offset, () => ({
      host:
        addresses.get(`${inside === 8089 ? streaming : service}@${network}`) ??
        addresses.get(`identity@${network}`) ??
        '',
      port: inside,
    }));

  const data = mkdtempSync(join(engine.directory, 'light-'));
  const volume = await engine.docker(['volume', 'inspect', '--format', '{{.Mountpoint}}', `${project}_core-data`]);
  symlinkSync(volume, join(data, 'core'));
  mkdirSync(join(data, 'logs'));
  const gateway = await gatewayOf(light, 'management', 'edge');
  const file = (): StackFile => stackFileOf(light, data, offset, gateway);
  const stackFile = join(data, 'stack.json');
  writeFileSync(stackFile, JSON.stringify(file()), { mode: 0o600 });
  writeFileSync(join(data, 'secrets.json'), JSON.stringify(env), { mode: 0o600 });
  return {
    stackFile,
    stack: { data, offset, file },
    lookAgain,
    async [Symbol.asyncDispose]() {
      await relay[Symbol.asyncDispose]();
      await rm(data, { recursive: true, force: true });
    },
  };
}

function stackFileOf({ env: settings }: SharedLight, data: string, offset: number, gateway: string): StackFile {
  const at = (port: number): string => `127.0.0.1:${String(port + offset)}`;
  const database = (user: string, name: string, port: number, secret: string): string =>
    `postgres://${user}:${settings[secret] ?? ''}@${at(port)}/${name}`;
  return {
    api: `http://${at(8080)}`,
    console: `http://${at(8080)}`,
    portal: `http://${at(PORTAL_PORT)}`,
    core: { api: `https://${at(8443)}`, enrollment: `https://${at(8446)}`, streaming: `tls://${at(8089)}` },
    ldap: { url: `ldap://${at(3389)}`, base_dn: CORE_BASE },
    database: database('martiuser', 'cot', 5432, 'CORE_DB_PASSWORD'),
    state_database: database('holdfast', 'holdfast', APP_DATABASE_PORT, 'APP_DB_PASSWORD'),
    ca_certificate: join(data, 'core/certs/files/ca.pem'),
    api_certificate: { file: join(data, 'core/certs/files/svc_api.p12'), password: 'atakatak' },
    webadmin: { username: 'webadmin', password: settings['CORE_WEBADMIN_PASSWORD'] ?? '' },
    pids: [],
    settings: Object.fromEntries(Object.keys(PORTABLE_SETTINGS).map((name) => [name, settings[name] ?? ''])),
    seen_as: gateway,
  };
}
