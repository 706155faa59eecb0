// Certificates of a running stack: issued and downloaded through the API, used at the core as a
// phone does.

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { basic } from '../../http/fake-deps.ts';
import { coreOf, type CorePlace, workDirectory } from './core-client.ts';
import { eventually, newStack, type TestStack } from './embedded.ts';
import { RUN, stands } from './running-stack.ts';
import { letIn } from './stream-device.ts';

let stack: TestStack;
let core: CorePlace;
let directory: string;
const PASSWORD = 'ada has a long password';
const [JOHN, LONGER_NAME, GROUP] = [`john${RUN}`, `john${RUN}-doe`, `rescue${RUN}`];

interface Certificate {
  file: string;
  username: string;
  serial: string;
  fingerprint: string;
  state: string;
  downloadable: boolean;
}

async function ask(method: string, path: string, body?: unknown, as?: string): Promise<Response> {
  const { username, password } = stack.file().webadmin;
  const authorization = as === undefined ? basic(username, password) : basic(as, PASSWORD);
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const headers = { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
  return fetch(`${stack.file().api}${path}`, { method, headers, ...sent });
}

async function json<T>(method: string, path: string, body?: unknown, as?: string): Promise<T> {
  const response = await ask(method, path, body, as);
  expect([method, path, response.ok, response.ok ? '' : await response.clone().text()]).toEqual([
    method,
    path,
    true,
    '',
  ]);
  return (await response.json()) as T;
}

async function saved(path: string, into: string, as?: string): Promise<string> {
  const response = await ask('GET', path, undefined, as);
  expect([path, response.status]).toEqual([path, 200]);
  const file = join(directory, into);
  writeFileSync(file, Buffer.from(await response.arrayBuffer()));
  return file;
}

const filesOf = ({ results }: { results: Certificate[] }): string[] => results.map(({ file }) => file);
const openssl = (...args: string[]): string => execFileSync('openssl', args, { encoding: 'utf8' });

beforeAll(async () => {
  stack = await newStack();
  expect((await stack.start()).code).toBe(0);
  core = coreOf(stack);
  directory = workDirectory(stack);
  await json('POST', '/api/groups', { name: GROUP });
  for (const username of [JOHN, LONGER_NAME]) {
    const { id } = await json<{ id: number }>('POST', '/api/users', { username, name: username, groups: [GROUP] });
    expect((await ask('POST', `/api/users/${id}/password`, { password: PASSWORD })).status).toBe(204);
    await json('POST', '/api/ops/certs', { username, name: 'phone' });
  }
});

describe('a certificate that is issued', () => {
  it('is known to the core, listed with its owner alone, and its key is a file of its owner', async () => {
    const list = await json<{ results: Certificate[] }>('GET', `/api/ops/certs?username=${JOHN}`);
    expect(list.results).toMatchObject([
      { file: `${JOHN}~phone.p12`, username: JOHN, state: 'active', downloadable: true },
    ]);
    expect(filesOf(await json('GET', '/api/me/certs', undefined, LONGER_NAME))).toEqual([`${LONGER_NAME}~phone.p12`]);
    expect((await ask('GET', `/api/me/certs/${JOHN}~phone.p12/download`, undefined, LONGER_NAME)).status).toBe(404);
    const users = await json<{ results: { username: string; certs: Certificate[] }[] }>(
      'GET',
      `/api/users?include=certs&search=${JOHN}`,
    );
    expect(users.results.map(({ username, certs }) => [username, certs.map(({ file }) => file)])).toEqual([
      [JOHN, [`${JOHN}~phone.p12`]],
      [LONGER_NAME, [`${LONGER_NAME}~phone.p12`]],
    ]);
    const kept = join(core.directory, 'certs/holdfast');
    expect(statSync(kept).mode & 0o777).toBe(0o700);
    const name = `${list.results[0]?.fingerprint.replaceAll(':', '').toLowerCase()}.pem`;
    expect(readdirSync(kept)).toContain(name);
    expect(statSync(join(kept, name)).mode & 0o777).toBe(0o600);
    expect((await ask('POST', '/api/ops/certs', { username: JOHN, name: 'phone' })).status).toBe(409);
  });

  it('lets a phone into 8443 with the bundle, new and old, and onto the stream with PEM', async () => {
    const pem = await saved(`/api/me/certs/${JOHN}~phone.p12/download?format=pem`, 'john.pem', JOHN);
    const device = await letIn(core, { certificateFile: pem, keyFile: pem }, JOHN);
    await device.isUpToDate();
    device.leave();
    for (const query of ['', '?compat=legacy']) {
      const file = await saved(`/api/ops/certs/${JOHN}~phone.p12/download${query}`, 'john.p12');
      expect(await statusAt8443(readFileSync(file))).toBe(200);
    }
  });

  it('comes as a data package that leads to this core, with the CA of it', async () => {
    const zip = await saved(`/api/ops/certs/${JOHN}~phone.p12/download?format=data-package`, 'john.zip');
    execFileSync('unzip', ['-q', zip, '-d', join(directory, 'package')]);
    const pref = readFileSync(join(directory, 'package/certs/config.pref'), 'utf8');
    expect(pref).toMatch(stands ? />[^<>:]+:\d+:ssl</ : `>127.0.0.1:${new URL(core.streaming).port}:ssl<`);
    const trusted = openssl(
      'pkcs12',
      '-in',
      join(directory, 'package/certs/truststore.p12'),
      '-nokeys',
      '-passin',
      'pass:atakatak',
    );
    const { pem, fingerprint } = await json<{ pem: string; fingerprint: string }>('GET', '/api/ops/certs/ca');
    expect(trusted).toContain(pem.trim());
    expect(openssl('x509', '-in', stack.file().ca_certificate, '-noout', '-fingerprint', '-sha256')).toContain(
      fingerprint,
    );
    expect(await statusAt8443(readFileSync(join(directory, `package/certs/${JOHN}_phone.p12`)))).toBe(200);
  });

  it('is handed out no more once it is revoked, and its name is free again', async () => {
    const { serial, fingerprint } = await json<Certificate>(
      'POST',
      `/api/me/certs/${JOHN}~phone.p12/revoke`,
      undefined,
      JOHN,
    );
    expect((await ask('GET', `/api/ops/certs/${fingerprint}/download`)).status).toBe(403);
    await eventually(
      'the list has it',
      async () => (await json<{ serials: string[] }>('GET', '/api/ops/certs/crl')).serials.includes(serial),
      10_000,
    );
    const again = await json<Certificate>('POST', '/api/ops/certs', { username: JOHN, name: 'phone' });
    expect(again.file).toBe(`${JOHN}~phone.p12`);
    expect(await json<Certificate>('GET', `/api/ops/certs/${JOHN}~phone.p12`)).toMatchObject({
      fingerprint: again.fingerprint,
    });
    expect((await json<Certificate>('GET', `/api/ops/certs/${LONGER_NAME}~phone.p12`)).state).toBe('active');
  });
});

async function statusAt8443(pfx: Buffer): Promise<number | undefined> {
  const ca = readFileSync(stack.file().ca_certificate);
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  get(`${core.api}/Marti/api/version`, { pfx, passphrase: 'atakatak', ca }, (response) => {
    response.resume();
    resolve(response.statusCode);
  }).on('error', reject);
  return promise;
}
