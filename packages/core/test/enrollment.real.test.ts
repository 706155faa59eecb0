// Enrollment over real TLS, with the directory of a running stack and a real database; curl and
// OpenSSL are the client.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { basesOf, LDAP_SERVICE_ACCOUNT } from '@holdfast/kit/directory';
import { migrate } from '@holdfast/kit/migrate';
import { connect, type Sql } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import { type RunningServer, serveApp } from '../../../shared/runtime/node-server.ts';
import { LdapDirectory } from '../../../shared/sign-in/ldap/directory.ts';
import { isFree, newStack, query, secretsOf, stop, type TestStack } from '../../../test/e2e/embedded/embedded.ts';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { issue } from '../../../test/support/certificates.ts';
import { createEnrollmentApi } from '../enrollment/app.ts';
import { EnrollmentAttempts } from '../enrollment/events.ts';
import { certificateStore } from '../store/certificates.ts';
import { CORE_DATABASE_MIGRATED, CORE_MIGRATIONS } from '../store/migrations/index.ts';
import { fakeAuthority } from './fake-core-enrollment.ts';
import { opensslRequest } from './fake-signing-requests.ts';
import { withoutProfiles } from './fake-core-profiles.ts';

const run = promisify(execFile);
const files = mkdtempSync(join(tmpdir(), 'holdfast-enrollment-'));
const log = memoryLog();
let stack: TestStack;
let sql: Sql;
let directory: LdapDirectory;
let server: RunningServer;
let port: number;

/** Asks the provider's API as management does. */
async function provider<T>(path: string, json?: object, method = 'POST'): Promise<T> {
  const headers = { authorization: `Bearer ${secretsOf(stack)['IDENTITY_TOKEN']}`, 'content-type': 'application/json' };
  const init = json === undefined ? { headers } : { method, headers, body: JSON.stringify(json) };
  const answer = await fetch(`http://127.0.0.1:${9000 + stack.offset}/api/v3${path}`, init);
  expect([path, answer.ok]).toEqual([path, true]);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

async function appPassword(user: number, identifier: string): Promise<string> {
  await provider('/core/tokens/', { identifier, user, intent: 'app_password', expiring: false });
  return (await provider<{ key: string }>(`/core/tokens/${identifier}/view_key/`)).key;
}

/** Status and body of what curl gets; it trusts the CA alone. */
async function curl(path: string, ...args: string[]): Promise<{ status: number; body: string; headers: string }> {
  const fixed = [
    '--silent',
    '--show-error',
    '--include',
    '--cacert',
    join(files, 'ca.pem'),
    '--write-out',
    '\n%{http_code}',
  ];
  const { stdout } = await run('curl', [...fixed, ...args, `https://127.0.0.1:${port}${path}`]);
  const [, headers = '', body = '', status] = /^(.*?)\r\n\r\n([^]*)\n(\d+)$/s.exec(stdout) ?? [];
  return { status: Number(status), body, headers };
}

beforeAll(async () => {
  stack = await newStack();
  expect((await stack.start()).code).toBe(0);
  const { database, ldap } = stack.file();
  sql = connect(new Secret(database), { name: 'enrollment' });
  await migrate(sql, CORE_MIGRATIONS, CORE_DATABASE_MIGRATED);
  const { core, web } = basesOf(ldap.base_dn, undefined);
  const password = new Secret(secretsOf(stack)['LDAP_BIND_PASSWORD'] ?? '');
  const serviceAccount = { username: LDAP_SERVICE_ACCOUNT, password };
  directory = new LdapDirectory({ url: ldap.url, coreBase: core, webBase: web, serviceAccount, log });

  const ca = await issue('CA of the tests', undefined, { ca: true });
  const own = await issue('takserver', ca, { names: ['127.0.0.1'] });
  for (const [name, text] of [
    ['ca.pem', ca.pem],
    ['own.pem', own.pem],
    ['own.key', own.key],
  ] as const)
    writeFileSync(join(files, name), text);
  const api = createEnrollmentApi({
    directory,
    authority: await fakeAuthority(ca),
    certificates: certificateStore((use) => use(sql)),
    bundle: async (entries) => entries[0]?.certificate ?? new Uint8Array(),
    adminApi: (_, __, { username, role }) => new Response(`${username} ${role}`),
    profiles: withoutProfiles(() => new Date()),
    attempts: new EnrollmentAttempts(() => new Date()),
    log,
    now: () => new Date(),
    steadyMs: () => performance.now(),
  });
  do port = 20_000 + Math.floor(Math.random() * 20_000);
  while (!(await isFree(port)));
  const tls = { certificateFile: join(files, 'own.pem'), keyFile: join(files, 'own.key') };
  server = await serveApp(
    (request, connection) => api(request, connection),
    [{ address: '127.0.0.1', port, tls }],
    log,
  );
});

afterAll(async () => {
  await server.close(0);
  await directory.close();
  await sql.end({ timeout: 2 });
  await stop(stack.data);
  rmSync(files, { recursive: true });
});

describe('enrollment', () => {
  it('gives a certificate for an app password, that OpenSSL verifies and the database knows, until it is deleted', async () => {
    const { pk } = await provider<{ pk: number }>('/core/users/', { username: 'ada', name: 'Ada' });
    const key = await appPassword(pk, 'enrollment-ada');
    const asAda = ['--user', `ada:${key}`];
    const bearing = async (): Promise<string> => {
      const form = ['--data', 'grant_type=password', '--data', 'username=ada', '--data-urlencode', `password=${key}`];
      const { access_token: token } = JSON.parse((await curl('/oauth/token', ...form)).body) as {
        access_token: string;
      };
      return token;
    };

    const config = await curl('/Marti/api/tls/config', ...asAda);
    expect([config.status, config.body]).toEqual([
      200,
      expect.stringContaining('<nameEntry name="O" value="Holdfast"/>'),
    ]);
    writeFileSync(join(files, 'ada.csr'), opensslRequest().pem);
    const path = '/Marti/api/tls/signClient/v2?clientUid=ANDROID-1&version=5.1';
    const upload = ['--data-binary', `@${join(files, 'ada.csr')}`];
    const signed = await curl(path, ...asAda, ...upload);
    expect([signed.status, signed.headers]).toEqual([
      200,
      expect.stringMatching(/^content-type: application\/json\r?$/im),
    ]);
    const { signedCert, ca0 } = JSON.parse(signed.body) as { signedCert: string; ca0: string };
    const pem = `-----BEGIN CERTIFICATE-----\n${signedCert}\n-----END CERTIFICATE-----\n`;
    writeFileSync(join(files, 'ada.pem'), pem);
    const trusted = ['-CAfile', join(files, 'ca.pem'), '-purpose', 'sslclient'];
    expect((await run('openssl', ['verify', ...trusted, join(files, 'ada.pem')])).stdout).toMatch(/: OK$/m);
    expect(ca0).not.toContain('-----');

    const rows = await query<{ certificate: string }>(
      stack.file().database,
      "SELECT user_dn, creator_dn, client_uid, subject_dn, revocation_date, certificate FROM certificate WHERE user_dn = 'ada'",
    );
    expect(rows).toMatchObject([
      {
        user_dn: 'ada',
        creator_dn: 'ada',
        client_uid: 'ANDROID-1',
        subject_dn: 'CN=ada,OU=CoT,O=Holdfast',
        revocation_date: null,
      },
    ]);
    expect(rows[0]?.certificate.replaceAll(/\s/g, '')).toBe(pem.replaceAll(/\s/g, ''));

    const token = await bearing();
    const byToken = ['--header', `Authorization: Bearer ${token}`];
    expect((await curl(path, ...byToken, ...upload)).status).toBe(200);
    await provider('/core/tokens/enrollment-ada/', {}, 'DELETE');
    expect((await curl(path, ...byToken, ...upload)).status).toBe(401);
    const late = await curl(path, ...asAda, ...upload);
    expect([late.status, late.headers]).toEqual([401, expect.not.stringMatching(/^www-authenticate:/im)]);
    expect(JSON.stringify(log.events)).not.toContain(key);
  });

  it('lets an administrator through with the password, not with an app password', async () => {
    const { username, password } = stack.file().webadmin;
    const { results } = await provider<{ results: { pk: number }[] }>('/core/users/?username=webadmin');
    const code = await appPassword(results[0]?.pk ?? 0, 'enrollment-webadmin');
    const path = '/Marti/api/certadmin/cert';
    expect(await curl(path, '--user', `${username}:${password}`)).toMatchObject({
      status: 200,
      body: 'webadmin ROLE_ADMIN',
    });
    expect((await curl(path, '--user', `${username}:${code}`)).status).toBe(403);
    expect((await curl('/Marti/api/tls/config', '--user', `${username}:${code}`)).status).toBe(200);
  });

  it('locks an address out after ten failures, and no other', async () => {
    const { username, password } = stack.file().webadmin;
    const path = '/Marti/api/tls/config';
    const from = (address: string, word: string) => curl(path, '--interface', address, '--user', `${username}:${word}`);
    const guesses = await Promise.all(Array.from({ length: 16 }, (_, count) => from('127.0.0.7', `guess-${count}`)));
    expect(guesses.filter(({ status }) => status === 401)).toHaveLength(10);
    const locked = await from('127.0.0.7', password);
    expect([locked.status, locked.headers]).toEqual([429, expect.stringMatching(/^retry-after: (?:900|89\d)\r?$/im)]);
    expect((await from('127.0.0.8', password)).status).toBe(200);
    expect((await curl(path, '--interface', '127.0.0.7')).status).toBe(401);
  });
});
