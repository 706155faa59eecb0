import { X509Certificate } from 'node:crypto';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { expect, it } from 'vitest';
import { prolongCa, replaceCa } from '@holdfast/pki/ca-renewal';
import { normalSerial } from '@holdfast/pki/keys';
import { ensureServerCertificate } from '@holdfast/pki/server-certificate';
import { DAY, NAMES, workshops } from '../../pki/test/workshop.ts';
import { ensureApiCertificate } from '../admin/api-certificate.ts';
import { memoryCertificates, memoryUsersFile } from './fake-core-certificates.ts';

const workshop = workshops();

const MADE = new Date('2026-11-22T10:00:00Z');

async function place() {
  const shop = await workshop(MADE);
  const [certificates, users, revoked] = [memoryCertificates(), memoryUsersFile(), new Set<string>()];
  const current = (): X509Certificate => new X509Certificate(readFileSync(shop.files.api));
  return {
    ...shop,
    certificates,
    users,
    revoked,
    current,
    /** As a start does it; tells the fingerprint. */
    ensure: async (now = MADE): Promise<string> => {
      const { file, password } = await ensureApiCertificate({
        coreDirectory: shop.directory,
        authority: await shop.open(),
        certificates,
        users,
        isRevoked: (serial) => revoked.has(serial),
        now,
      });
      expect(() => createSecureContext({ pfx: readFileSync(file), passphrase: password })).not.toThrow();
      expect(users.roleOf({ hash: current().fingerprint256, commonName: '' })).toBe('ROLE_ADMIN');
      expect((await certificates.byHash(current().fingerprint256))?.userDn).toBe('svc_api');
      return current().fingerprint256;
    },
  };
}

it('svc_api is made once, recorded, an administrator, and its key is private', async () => {
  const { ensure, files, certificates } = await place();
  const first = await ensure();
  expect([await ensure(), await ensure(new Date(+MADE + 333 * DAY))]).toEqual([first, first]);
  expect(await certificates.list('all', MADE)).toMatchObject([
    { creatorDn: 'holdfast', clientUid: 'svc_api', subjectDn: 'CN=svc_api,OU=CoT,O=Holdfast' },
  ]);
  for (const file of [files.apiKey, files.apiBundle]) expect(statSync(file).mode & 0o777).toBe(0o600);
});

it('it is made anew when it is revoked, unknown to the table, of another CA, near its end, or not valid yet', async () => {
  const { ensure, revoked, current, certificates, files, directory } = await place();
  const seen = [await ensure()];
  revoked.add(normalSerial(current().serialNumber));
  seen.push(await ensure());
  await certificates.setRevoked((await certificates.byHash(current().fingerprint256))?.id ?? 0, MADE);
  seen.push(await ensure());
  await certificates.remove([(await certificates.byHash(current().fingerprint256))?.id ?? 0]);
  seen.push(await ensure());
  const [pem, key] = [readFileSync(files.api), readFileSync(files.apiKey)];
  await replaceCa(files, MADE);
  await ensureServerCertificate(directory, NAMES, MADE);
  writeFileSync(files.api, pem);
  writeFileSync(files.apiKey, key);
  seen.push(await ensure());
  seen.push(await ensure(new Date(+MADE + 336 * DAY)));
  // The clock was ahead, and is right again.
  seen.push(await ensure());
  expect(new Set(seen).size).toBe(7);
  expect(await ensure()).toBe(seen.at(-1));
});

it('it keeps its key and number when the CA has a new certificate for its key, and carries that one', async () => {
  const { ensure, files } = await place();
  const first = await ensure();
  const bundle = readFileSync(files.apiBundle);
  await prolongCa(files, MADE);
  expect(await ensure()).toBe(first);
  expect(readFileSync(files.api, 'utf8')).toContain(readFileSync(files.ca, 'utf8'));
  expect(readFileSync(files.apiBundle).equals(bundle)).toBe(false);
});

it('a crash between any two of its files is healed by the next start', async () => {
  const { ensure, files, users } = await place();
  await ensure();
  for (const lost of ['api', 'apiKey'] as const) {
    const before = await ensure();
    rmSync(files[lost]);
    expect(await ensure()).not.toBe(before);
    writeFileSync(files[lost], 'torn');
    await ensure();
  }
  const last = await ensure();
  rmSync(files.apiBundle);
  expect(await ensure()).toBe(last);
  writeFileSync(files.apiBundle, readFileSync(files.apiBundle).subarray(0, 500));
  expect(await ensure()).toBe(last);
  users.grant({ identifier: 'svc_api', fingerprint: 'of an older one', role: 'ROLE_ADMIN' });
  expect(await ensure()).toBe(last);
});
