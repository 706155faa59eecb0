// Certificates of a running stack, with OpenSSL, curl and devices on the stream as the other party:
// whose they are, how they are handed out, and what "revoked" means.

import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CertificateView } from '../../../shared/devices/certificates/view.ts';
import { asDevice, coreOf, type CorePlace, listedSerials, verdictOf, workDirectory } from './core-client.ts';
import { asAdministrator, type User } from './devices-api.ts';
import { eventually, newStack, stop, type TestStack } from './embedded.ts';
import { letIn, streamDevice } from './stream-device.ts';

const execute = promisify(execFile);
const SETTINGS = { MON_USER_EXPIRY_CHECK_INTERVAL: '1', UPDATES_URL: 'off' };

let stack: TestStack;
let core: CorePlace;
let work: string;
const { ask, json, newUser, newCertificate, certificate, download, revoked } = asAdministrator(() => stack);

/** Key and certificate of one that was made here, as files for curl and the stream. */
async function deviceOf({ file }: CertificateView): Promise<{ certificateFile: string; keyFile: string }> {
  const path = join(work, `${file}.pem`);
  writeFileSync(path, await download(file, '?format=pem'), { mode: 0o600 });
  return { certificateFile: path, keyFile: path };
}

beforeAll(async () => {
  stack = await newStack();
  expect((await stack.start([], { env: SETTINGS })).code).toBe(0);
  core = coreOf(stack);
  work = workDirectory(stack);
});
afterAll(() => stop(stack.data));

describe('a certificate', () => {
  it('opens with openssl pkcs12 and with Node, and is known to the core', async () => {
    await newUser('ada');
    const made = await newCertificate('ada', 'phone');
    expect(made).toMatchObject({
      file: 'ada~phone.p12',
      username: 'ada',
      name: 'phone',
      state: 'active',
      downloadable: true,
    });
    const bundle = join(work, 'ada.p12');
    writeFileSync(bundle, await download(made.file));
    const { stdout } = await execute('openssl', [
      'pkcs12',
      '-in',
      bundle,
      '-passin',
      'pass:atakatak',
      '-nodes',
      '-info',
    ]);
    expect(stdout).toContain('BEGIN PRIVATE KEY');
    const { stdout: info, stderr } = await execute('openssl', [
      'pkcs12',
      '-in',
      bundle,
      '-passin',
      'pass:atakatak',
      '-noout',
      '-info',
    ]);
    expect(info + stderr).toContain('AES-256-CBC');
    const legacy = join(work, 'ada-legacy.p12');
    writeFileSync(legacy, await download(made.file, '?compat=legacy'));
    const old = await execute('openssl', ['pkcs12', '-legacy', '-in', legacy, '-passin', 'pass:atakatak', '-nodes']);
    expect(old.stdout).toContain('BEGIN PRIVATE KEY');

    const { hostname, port } = new URL(core.api);
    const ca = readFileSync(stack.file().ca_certificate);
    const socket = connect({
      host: hostname,
      port: Number(port),
      ca,
      pfx: readFileSync(bundle),
      passphrase: 'atakatak',
    });
    await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
    expect(socket.authorized).toBe(true);
    socket.destroy();
    expect((await asDevice(core, await deviceOf(made), '/Marti/api/version')).status).toBe(200);
  });

  it('has a key that only the owner of the files can read', async () => {
    const keys = join(core.directory, 'certs/holdfast');
    expect(statSync(keys).mode & 0o777).toBe(0o700);
    const names = readdirSync(keys);
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) expect([name, statSync(join(keys, name)).mode & 0o777]).toEqual([name, 0o600]);
  });

  it('belongs to the user in its record: john and john-doe never see those of the other', async () => {
    const [john, doe] = [await newUser('john'), await newUser('john-doe')];
    const one = await newCertificate('john', 'doe');
    const other = await newCertificate('john-doe', 'phone');
    const device = await letIn(core, await deviceOf(other), 'Doe');
    await device.isUpToDate();
    const files = async (id: number): Promise<string[]> =>
      (await json<User>('GET', `/api/users/${id}`)).certs.map(({ file }) => file);
    expect([await files(john.id), await files(doe.id)]).toEqual([[one.file], [other.file]]);
    const list = await json<{ results: CertificateView[] }>('GET', '/api/ops/certs?username=john');
    expect(list.results.map(({ file }) => file)).toEqual([one.file]);
    const page = await json<{ results: User[] }>('GET', '/api/users?search=john&include=certs');
    expect(page.results.map(({ username, certs }) => [username, certs.map(({ file }) => file)])).toEqual([
      ['john', [one.file]],
      ['john-doe', [other.file]],
    ]);

    await json('DELETE', `/api/users/${john.id}`);
    await revoked(one.file);
    await device.isUpToDate();
    expect(device.isOpen).toBe(true);
    expect((await certificate(other.file)).state).toBe('active');
    device.leave();
  });

  it('that is revoked is refused by 8089 and 8443 and in the list, and only then called revoked', async () => {
    await newUser('bob');
    const made = await newCertificate('bob', 'phone');
    const own = await deviceOf(made);
    const device = await letIn(core, own, 'Bob');
    await device.isUpToDate();
    const answer = await ask('POST', `/api/ops/certs/${encodeURIComponent(made.file)}/revoke`);
    expect([200, 202]).toContain(answer.status);
    await revoked(made.file);
    expect(device.isOpen).toBe(false);
    expect(await listedSerials(core)).toContain(made.serial);
    expect(await verdictOf(core, own.certificateFile)).toBe('certificate revoked');
    expect((await asDevice(core, own, '/Marti/api/version')).status).toBe(0);
    const again = await streamDevice(core, own, 'Bob');
    await eventually('the stream has refused it', () => !again.isOpen, 10_000);
    expect(again.heard).toEqual([]);
    expect((await ask('GET', `/api/ops/certs/${encodeURIComponent(made.file)}/download`)).status).toBe(403);
    const crl = await json<{ serials: string[] }>('GET', '/api/ops/certs/crl');
    expect(crl.serials).toContain(made.serial);
  });

  it('of somebody who expires while the core is dead stays revoking, and is done a minute after the core is back', async () => {
    const user = await newUser('eve');
    const made = await newCertificate('eve', 'phone');
    const hung = stack.pid('core');
    process.kill(hung, 'SIGSTOP');
    try {
      const soon = new Date(Date.now() + 5_000).toISOString();
      await json('PATCH', `/api/users/${user.id}`, { expires_at: soon });
      await eventually(
        'eve is inactive',
        async () => !(await json<User>('GET', `/api/users/${user.id}`)).is_active,
        30_000,
      );
      const isRevoking = async (): Promise<boolean> => {
        const { certs } = await json<User>('GET', `/api/users/${user.id}`);
        expect(certs.map(({ file }) => file)).toEqual([made.file]);
        return certs[0]?.state === 'revoking';
      };
      await eventually('its certificate is being revoked', isRevoking, 30_000);
      expect(await certificate(made.file)).toMatchObject({ state: 'revoking', certs_error: expect.any(String) });
      const health = await json<{ status: string; message: string }>('GET', '/api/health/certificates');
      expect(health.status).toBe('critical');
    } finally {
      process.kill(hung, 'SIGKILL');
    }
    await eventually('another core runs', () => ![0, hung].includes(stack.pid('core')), 30_000);
    await revoked(made.file);
    await eventually(
      'nothing is left to prove',
      async () =>
        (await json<{ data: { unproven: [] } }>('GET', '/api/health/certificates')).data.unproven.length === 0,
      20_000,
    );
  });
});
