// Takes the place of authentik: `server` (our own provider, and before it what identity-setup asks
// besides), `worker` (brings what only its environment knows, as applying a blueprint does), `ldap`
// (the outpost: the directory of the server at its own port), and the health checks of each.

import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { IDENTITY_VARIABLE, type IdentityHandover } from '@holdfast/identity/handover';
import { basesOf } from '@holdfast/kit/directory';
import { fakeAuthentik, OUTPOST_TOKEN } from '../../../../../packages/setup/test/authentik.ts';

const PROGRAM = '/app/dist/identity.js';
/** On the volume that server and worker share. */
const FROM_WORKER = '/data/from-worker.json';
const [HTTP, LDAP, OWN_HTTP, OWN_LDAP] = [9000, 3389, 9009, 3390];
const OF_SETUP = /^\/(?:-\/health\/|api\/v3\/(?:managed\/blueprints|outposts|admin\/settings)\/)/;

interface FromWorker {
  bootstrapToken: string;
  managementToken: string;
  searchPassword: string;
  coreBase: string;
  webBase: string;
}

function must(name: string): string {
  const value = process.env[name] ?? '';
  if (value === '') throw new Error(`${name} is not set`);
  return value;
}

async function worker(): Promise<void> {
  const reported: FromWorker = {
    bootstrapToken: must('AUTHENTIK_BOOTSTRAP_TOKEN'),
    managementToken: must('IDENTITY_TOKEN'),
    searchPassword: must('LDAP_BIND_PASSWORD'),
    coreBase: process.env['LDAP_BASE_DN'] ?? '',
    webBase: process.env['LDAP_WEB_BASE_DN'] ?? '',
  };
  if (!existsSync('/blueprints/holdfast/holdfast.yaml')) throw new Error('the blueprint is not where it is looked for');
  writeFileSync(`${FROM_WORKER}.new`, JSON.stringify(reported), { mode: 0o600 });
  renameSync(`${FROM_WORKER}.new`, FROM_WORKER);
  await stays();
}

async function server(): Promise<void> {
  const host = must('AUTHENTIK_POSTGRESQL__HOST');
  const password = encodeURIComponent(must('AUTHENTIK_POSTGRESQL__PASSWORD'));
  const account = `${must('AUTHENTIK_POSTGRESQL__USER')}:${password}`;
  const secretKey = must('AUTHENTIK_SECRET_KEY');
  while (!existsSync(FROM_WORKER)) await delay(200);
  const text = readFileSync(FROM_WORKER, 'utf8');
  const reported = JSON.parse(text) as FromWorker;
  // What the worker brings later counts too, such as after a rotation of secrets: the engine starts
  // this one again.
  setInterval(() => {
    if (readFileSync(FROM_WORKER, 'utf8') !== text) process.exit(1);
  }, 200);
  const handover: IdentityHandover = {
    databaseUrl: `postgres://${account}@${host}:5432/${must('AUTHENTIK_POSTGRESQL__NAME')}`,
    secretKey,
    apiToken: reported.managementToken,
    address: '0.0.0.0',
    httpPort: OWN_HTTP,
    ldapPort: OWN_LDAP,
    searchPassword: reported.searchPassword,
    bases: basesOf(reported.coreBase || undefined, reported.webBase || undefined),
  };
  for (const name of Object.keys(process.env)) if (name.startsWith('AUTHENTIK_')) delete process.env[name];
  process.env[IDENTITY_VARIABLE] = JSON.stringify(handover);
  await import(PROGRAM);
  const fake = await fakeAuthentik(reported.bootstrapToken, reported.managementToken);
  const known = ['holdfast-management', 'authentik-bootstrap-token', OUTPOST_TOKEN].join('|');
  const ofFake = new RegExp(`${OF_SETUP.source}|^/api/v3/core/tokens/(?:${known})/`);
  createServer((query, answer) => {
    const byBootstrap = query.headers.authorization === `Bearer ${reported.bootstrapToken}`;
    const isFakes = byBootstrap || ofFake.test(query.url ?? '');
    const place = isFakes ? new URL(fake.url) : new URL(`http://127.0.0.1:${String(OWN_HTTP)}`);
    const { url: path, method, headers } = query;
    const forwarded = request(place, { path, method, headers, agent: false }, (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(answer);
    });
    forwarded.on('error', () => (answer.headersSent ? answer.destroy() : answer.writeHead(502).end()));
    query.pipe(forwarded);
  }).listen(HTTP, '0.0.0.0');
}

/** Like the outpost: no key that the server takes, no directory. */
async function ldap(): Promise<void> {
  const token = must('AUTHENTIK_TOKEN');
  const key = token.startsWith('file://') ? readFileSync(token.slice('file://'.length), 'utf8').trim() : token;
  const url = must('AUTHENTIK_HOST');
  if (key === '') throw new Error('the outpost has no key');
  createTcpServer((client) => {
    const upstream = connect(OWN_LDAP, new URL(url).hostname);
    client.pipe(upstream).pipe(client);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const)
      one.on('error', () => other.destroy());
  }).listen(LDAP, '0.0.0.0');
  await stays();
}

function answers(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', reject).once('connect', () => resolve(void socket.end()));
  });
}

/** The program is the first process of its container. */
function healthcheck(): Promise<void> {
  const program = readFileSync('/proc/1/cmdline', 'utf8').includes('worker') ? 'worker' : 'server';
  if (program === 'server') return answers(HTTP);
  return existsSync(FROM_WORKER) ? Promise.resolve() : Promise.reject(new Error('nothing was brought'));
}

async function stays(): Promise<void> {
  process.once('SIGTERM', () => process.exit(0));
  for (;;) await delay(2 ** 30);
}

const PROGRAMS: Record<string, () => Promise<void>> = {
  server,
  worker,
  healthcheck,
  ldap,
  'ldap-healthcheck': () => answers(LDAP),
};
const program = PROGRAMS[process.argv[2] ?? ''];
if (program === undefined) throw new Error(`authentik does not know ${String(process.argv[2])}`);
program().catch((error: unknown) => {
  process.stderr.write(`${String(error)}\n`);
  process.exit(1);
});
