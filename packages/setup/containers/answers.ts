// Checks the health of a container of our image: `answers.js ROLE` exits with 0 if the role's
// program answers, else 1. It runs every few seconds, so it is small and leaves no lines in the
// logs of the programs.

import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { request as requestSecurely } from 'node:https';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { type ConnectionOptions, connect as connectSecurely } from 'node:tls';

const WITHIN_MS = 4_000;
const AT = '127.0.0.1';
const offset = Number(process.env['HOLDFAST_PORT_OFFSET'] || 0);
/** Same as in packages/stack/process/layout.ts (a test compares them). */
const PORTS = {
  core: 8443,
  enrollment: 8446,
  streaming: 8089,
  database: 5432,
  identity: 9000,
  ldap: 3389,
  backup: 8090,
} as const;
const CONTAINER_PROXY_PORT = 2375;
const CORE_DIRECTORY = '/var/lib/holdfast/core';
const RELEASE_HOME = '/opt/tak';
/** Password of keys that the release's scripts made. Ours are not encrypted. */
const RELEASE_PASSWORD = 'atakatak';
/** Checks only the CA: an operator's certificate may not name the loopback address. */
const ANY_NAME = { checkServerIdentity: () => undefined };

const CHECKS: Record<string, () => Promise<unknown>> = {
  management: () =>
    Promise.all([
      answersOk(Number(process.env['API_PORT'] || 8080), '/api/ping'),
      answersOk(Number(process.env['PORTAL_PORT'] || 3000), '/api/ping'),
    ]),
  identity: () => Promise.all([answersOk(port('identity'), '/api/v3/root/config/'), takesConnections(port('ldap'))]),
  core: () =>
    Promise.all([
      showsCertificate(port('enrollment'), join(process.env['CORE_DATA_DIR'] || CORE_DIRECTORY, 'certs/files/ca.pem')),
      takesConnections(port('core')),
      takesConnections(port('streaming')),
    ]),
  database: () => takesSignIns(Number(process.env['HOLDFAST_DATABASE_PORT'] || port('database'))),
  'release-core': () =>
    Promise.all([
      answersVersion(port('core'), releaseCertificates()),
      showsCertificate(port('enrollment'), join(releaseCertificates(), 'ca.pem'), ANY_NAME),
      takesConnections(port('streaming')),
    ]),
  backup: () => answersOk(port('backup'), '/ping'),
  'container-proxy': () => answersOk(CONTAINER_PROXY_PORT, '/_ping'),
};

function port(name: keyof typeof PORTS): number {
  return PORTS[name] + offset;
}

/** Requests a page that needs no sign-in. */
async function answersOk(at: number, path: string): Promise<void> {
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const requested = request({ host: AT, port: at, path, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    requested.on('error', reject).end();
  });
  if (status !== 200) throw new Error(`port ${at} returned ${status} for ${path}`);
}

/**
 * Checks that the certificate is from the core's CA. Closes properly, so that the server sees no
 * failed handshake.
 */
async function showsCertificate(at: number, caFile: string, options: ConnectionOptions = {}): Promise<void> {
  const socket = connectSecurely({ host: AT, port: at, ca: readFileSync(caFile), ...options });
  await opened(socket, 'secureConnect');
  socket.end();
}

/** Requests the version as management does, with the certificate of svc_api. */
async function answersVersion(at: number, certificates: string): Promise<void> {
  const file = (name: string): Buffer => readFileSync(join(certificates, name));
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const shown = {
      ca: file('ca.pem'),
      cert: file('svc_api.pem'),
      key: file('svc_api.key'),
      passphrase: RELEASE_PASSWORD,
    };
    const options = { host: AT, port: at, path: '/Marti/api/version', agent: false, ...shown, ...ANY_NAME };
    const requested = requestSecurely(options, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    requested.on('error', reject).end();
  });
  if (status !== 200) throw new Error(`port ${at} returned ${status} for /Marti/api/version`);
}

function releaseCertificates(): string {
  return join(process.env['HOLDFAST_RELEASE_HOME'] || RELEASE_HOME, 'certs/files');
}

async function takesConnections(at: number): Promise<void> {
  const socket = connect(at, AT);
  await opened(socket, 'connect');
  socket.end();
}

/**
 * Like pg_isready: a server that asks for a password is ready. It logs nothing when we then
 * disconnect.
 */
async function takesSignIns(at: number): Promise<void> {
  const socket = connect(at, AT);
  await opened(socket, 'connect');
  const parameters = Buffer.from('user\0holdfast\0database\0holdfast\0\0');
  const head = Buffer.alloc(8);
  head.writeInt32BE(head.length + parameters.length, 0);
  head.writeInt32BE(196_608, 4);
  socket.write(Buffer.concat([head, parameters]));
  const answer = await new Promise<Buffer>((resolve, reject) => {
    socket.once('data', resolve).once('error', reject);
    socket.once('end', () => reject(new Error(`port ${at} closed the connection`)));
  });
  socket.end();
  // R: asks for a password. An error other than "cannot connect now" (57P03) also means that the
  // server is ready.
  const text = answer.toString('latin1');
  if (text.startsWith('R') || (text.startsWith('E') && !text.includes('\0C57P03\0'))) return;
  throw new Error(`port ${at}: ${/\0M([^\0]*)/.exec(text)?.[1] ?? 'not the response of a database'}`);
}

async function opened(socket: Socket, event: 'connect' | 'secureConnect'): Promise<void> {
  await new Promise((resolve, reject) => socket.once(event, resolve).once('error', reject));
}

/** Ends the process with the result. */
export function checkHealth(role = ''): void {
  const check = CHECKS[role];
  if (check === undefined) {
    process.stderr.write(`Holdfast has no health check for ${JSON.stringify(role)}.\n`);
    process.exit(1);
  }
  setTimeout(() => end(`${role} does not answer within ${WITHIN_MS / 1000} s.`), WITHIN_MS).unref();
  check().then(
    () => end(),
    (error: unknown) => end(`${role} does not answer: ${error instanceof Error ? error.message : String(error)}.`),
  );
}

function end(complaint?: string): void {
  if (complaint !== undefined) process.stdout.write(`${complaint}\n`);
  process.exitCode = complaint === undefined ? 0 : 1;
  // Lets connections close properly.
  setImmediate(() => process.exit());
}
