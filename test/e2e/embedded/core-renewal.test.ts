// The core in the test's own process, with a clock of the test's: what is renewed by itself, while
// connections stay open.

import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Core, CORE_DATABASE_MIGRATED, CORE_MIGRATIONS, createCore } from '@holdfast/core';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { migrate } from '@holdfast/kit/migrate';
import { withDatabase } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import { DAY_MS } from '@holdfast/kit/time';
import { listedSerials, serialOf } from './core-client.ts';
import { freeOffset, query } from './embedded.ts';
import { emptyDatabase } from './empty-database.ts';

const database = emptyDatabase();
const logged: string[] = [];
const note = (event: string): void => void logged.push(event);
let at = Date.now();
let core: Core;
let directory: string;
let ports: { api: number; enrollment: number; streaming: number };

beforeAll(async () => {
  const url = new Secret(database.url());
  await withDatabase(url, 'test', 20_000, (sql) => migrate(sql, CORE_MIGRATIONS, CORE_DATABASE_MIGRATED));
  directory = join(database.data(), 'own-core');
  const offset = await freeOffset();
  ports = { api: 8443 + offset, enrollment: 8446 + offset, streaming: 8089 + offset };
  const run = keptDatabase(url, { name: 'test', called: 'the database', variable: 'its URL' });
  core = await createCore({
    dataDirectory: directory,
    addresses: ['127.0.0.1', '::1'],
    ports,
    serverNames: ['127.0.0.1', '::1'],
    hostname: '127.0.0.1',
    roleGroups: [],
    validityDays: 365,
    run,
    runLong: run,
    runEvents: run,
    runArchive: run,
    runRetention: run,
    schedules: { next: () => [] },
    timeZone: 'UTC',
    directory: { signIn: async () => undefined, find: async () => undefined, groups: async () => [] },
    directoryPlace: { url: 'ldap://127.0.0.1', base: 'dc=core' },
    behindProxies: (fetch) => fetch,
    log: { info: note, warn: note, error: note },
    now: () => new Date(at),
    steadyMs: () => performance.now(),
  });
  await core.listen();
});
afterAll(async () => {
  await core.close(100);
});

const file = (name: string): string => join(directory, 'certs/files', name);
const fingerprint = (socket: TLSSocket): string => socket.getPeerCertificate().fingerprint256;

/** Whose clock is another than that of OpenSSL here: only the fingerprints are compared. */
async function opened(host = '127.0.0.1'): Promise<TLSSocket> {
  const socket = connect({ host, port: ports.enrollment, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  return socket;
}

async function statusOn(socket: TLSSocket): Promise<string> {
  socket.write('GET /Marti/api/tls/config HTTP/1.1\r\nHost: a\r\n\r\n');
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  return chunk.toString().slice(9, 12);
}

/** `svc_api` as its files are now. */
const apiIdentity = () => ({ cert: readFileSync(file('svc_api.pem')), key: readFileSync(file('svc_api.key')) });

async function apiStatus(identity = apiIdentity()): Promise<number | undefined> {
  const agent = new Agent(identity);
  return new Promise((resolve) => {
    const url = `https://127.0.0.1:${ports.api}/Marti/api/util/isAdmin`;
    const sent = request(url, { agent, rejectUnauthorized: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.once('error', () => resolve(undefined)).end();
  });
}

it('listens on IPv4 and IPv6', async () => {
  const [four, six] = [await opened(), await opened('::1')];
  expect(fingerprint(six)).toBe(fingerprint(four));
  expect([await statusOn(four), await statusOn(six)]).toEqual(['401', '401']);
  for (const socket of [four, six]) socket.destroy();
});

it('writes the revocation list every day, takes in what was dated by hand, and replaces a revoked svc_api', async () => {
  const before = readFileSync(file('ca.crl'), 'utf8');
  await core.look();
  expect(readFileSync(file('ca.crl'), 'utf8')).toBe(before);
  await query(database.url(), `UPDATE certificate SET revocation_date = now() WHERE user_dn = 'svc_api'`);
  const revoked = await serialOf(file('svc_api.pem'));
  const old = apiIdentity();
  expect(await apiStatus(old)).toBe(200);
  await Promise.all([core.look(), core.look()]);
  expect(await listedSerials({ directory, api: '', enrollment: '', streaming: '' })).toContain(revoked);
  // The same look has made another one, and only one: management goes on.
  expect([await apiStatus(old), await apiStatus()]).toEqual([undefined, 200]);
  expect(logged.filter((event) => event === 'certificate.replaced')).toHaveLength(1);
  at += DAY_MS;
  const listed = readFileSync(file('ca.crl'), 'utf8');
  await core.look();
  expect(readFileSync(file('ca.crl'), 'utf8')).not.toBe(listed);
});

it('gives svc_api its right back when somebody has put another users file in place', async () => {
  const users = join(directory, 'UserAuthenticationFile.xml');
  writeFileSync(
    users,
    '<UserAuthenticationFile xmlns="http://bbn.com/marti/xml/bindings"><User identifier="ada" role="ROLE_ADMIN"/></UserAuthenticationFile>',
  );
  expect(await apiStatus()).toBe(403);
  await core.look();
  expect(await apiStatus()).toBe(200);
  expect(readFileSync(users, 'utf8')).toContain('<User identifier="ada" role="ROLE_ADMIN"/>');
});

it('renews its server certificate 31 days before the end: open connections go on, new ones see the new one', async () => {
  const open = await opened();
  const old = fingerprint(open);
  expect(await statusOn(open)).toBe('401');
  at = Date.now() + 695 * DAY_MS;
  await core.look();
  const same = await opened();
  expect(fingerprint(same)).toBe(old);
  at = Date.now() + 705 * DAY_MS;
  await core.look();
  const next = await opened();
  expect(fingerprint(next)).not.toBe(old);
  expect([await statusOn(open), await statusOn(next)]).toEqual(['401', '401']);
  expect(logged.filter((event) => event === 'certificate.renewed')).toHaveLength(1);
  for (const socket of [open, same, next]) socket.destroy();
});
