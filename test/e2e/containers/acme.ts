// Public certificates for a stack of the tests: an ACME server of its own beside it, to which every
// name leads to Caddy.

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testPki } from '../../core/fake-test-pki.ts';
import { eventually } from '../embedded/embedded.ts';
import type { ComposeStack } from './compose-stack.ts';

export const ACME_LAYER = 'compose/compose.acme.yaml';

/** A stack with public certificates. */
export type SharedLight = ComposeStack & {
  /** A file with the root of the public certificates. */
  publicCa: string;
  /** Reads it again: an ACME server that was made anew has another. */
  readPublicCa(): Promise<void>;
  project: string;
};

/**
 * To the ACME server and to management every name of the stack is Caddy, as the DNS of the world
 * would say.
 */
const layer = (hosts: string): string => `
services:
  acme:
    image: pebble:test
    command: [-config, /acme/config.json]
    environment: { PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '0' }
    extra_hosts: [${hosts}]
    networks: [edge]
    volumes: ['./acme:/acme:ro']
  management:
    extra_hosts: [${hosts}]
`;

const ACME = {
  listenAddress: '0.0.0.0:14000',
  managementListenAddress: '0.0.0.0:15000',
  certificate: '/acme/own.pem',
  privateKey: '/acme/own.key',
  httpPort: 80,
  tlsPort: 443,
  ocspResponderURL: '',
  certificateValidityPeriod: 864_000,
};

export function hostsOf(name: string): string[] {
  return [name, ...['monitor', 'nodered', 'takserver'].map((host) => `${host}.${name}`)];
}

/** What becomes part of the checkout; `caddy`: its address in the network `edge`. */
export async function acmeFiles(name: string, caddy: string): Promise<Record<string, string>> {
  const pki = await testPki('CA of the ACME server');
  const own = await pki.server('acme', ['acme']);
  const hosts = hostsOf(name).map((host) => `'${host}:${caddy}'`);
  const files = {
    [ACME_LAYER]: layer(hosts.join(', ')),
    'compose/acme/config.json': JSON.stringify({ pebble: ACME }),
    'compose/acme/own.pem': readFileSync(own.certificateFile, 'utf8'),
    'compose/acme/own.key': readFileSync(own.keyFile, 'utf8'),
    'compose/caddy/local/acme.pem': readFileSync(pki.ca.certificateFile, 'utf8'),
    'compose/caddy/local/acme.caddy': 'acme_ca https://acme:14000/dir\nacme_ca_root /etc/caddy/local/acme.pem\n',
  };
  rmSync(pki.directory, { recursive: true });
  return files;
}

export async function withPublicCa(stack: ComposeStack): Promise<SharedLight> {
  const publicCa = join(stack.root, 'public-ca.pem');
  const readPublicCa = (): Promise<void> =>
    eventually('the root of the public certificates is known', () => fetchRoot(stack, publicCa), 60_000);
  await readPublicCa();
  return Object.assign(stack, { publicCa, readPublicCa, project: await stack.projectName() });
}

const ROOT = `
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
  fetch('https://acme:15000/roots/0').then(async (answer) => console.log(await answer.text()));
`;

async function fetchRoot(stack: ComposeStack, file: string): Promise<boolean> {
  const { stdout } = await stack.tryExec('management', 'node', '--no-warnings', '--eval', ROOT);
  if (stdout.includes('BEGIN CERTIFICATE')) writeFileSync(file, stdout);
  return stdout.includes('BEGIN CERTIFICATE');
}
