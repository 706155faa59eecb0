// OpenSSL, Node and Java open what Holdfast hands to phones.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, createServer, type PeerCertificate } from 'node:tls';
import { afterAll, describe, expect, it } from 'vitest';
import { pkcs12Bundles } from '../../shared/devices/certificates/bundles.ts';
import { testPki } from '../core/fake-test-pki.ts';

const directory = mkdtempSync(join(tmpdir(), 'holdfast-bundles-'));
const pki = await testPki('Holdfast test CA');
afterAll(() => [directory, pki.directory].forEach((path) => rmSync(path, { recursive: true, force: true })));

const ada = await pki.client('ada');
const server = await pki.server();
const kept = { keyPem: ada.key, certificatePem: ada.certificate, chainPem: [pki.ca.certificate] };
const modern = Buffer.from(await pkcs12Bundles.withKey(kept, { friendlyName: 'ada' }), 'base64');
const legacy = Buffer.from(await pkcs12Bundles.withKey(kept, { friendlyName: 'ädä 密', legacy: true }), 'base64');
const trust = Buffer.from(await pkcs12Bundles.trust([pki.ca.certificate]), 'base64');

function openssl(bundle: Buffer, ...args: string[]): { text: string; reported: string; status: number | null } {
  const file = join(directory, 'bundle.p12');
  writeFileSync(file, bundle);
  const { stdout, stderr, status } = spawnSync('openssl', ['pkcs12', '-in', file, '-passin', 'pass:atakatak', ...args]);
  return { text: stdout.toString(), reported: stderr.toString(), status };
}

/** Who came in at a server that wants a certificate of the CA. */
async function cameInAs(pfx: Buffer): Promise<string> {
  const { promise: peer, resolve } = Promise.withResolvers<PeerCertificate>();
  const listening = createServer(
    {
      cert: server.certificate,
      key: server.key,
      ca: pki.ca.certificate,
      requestCert: true,
      rejectUnauthorized: true,
    },
    (socket) => {
      resolve(socket.getPeerCertificate());
      socket.end();
    },
  );
  await new Promise<void>((ready) => listening.listen(0, '127.0.0.1', ready));
  const { port } = listening.address() as AddressInfo;
  const socket = connect({ host: '127.0.0.1', port, pfx, passphrase: 'atakatak', ca: pki.ca.certificate });
  socket.resume();
  try {
    return String((await peer).subject.CN);
  } finally {
    socket.destroy();
    listening.close();
  }
}

describe('a bundle with a key', () => {
  it('is opened by openssl: AES-256-CBC, key, certificate and chain under the name of the user', () => {
    const { text, reported, status } = openssl(modern, '-nodes', '-info');
    expect([status, reported]).toEqual([0, expect.stringContaining('AES-256-CBC')]);
    expect(reported).not.toMatch(/3DES|RC2|TripleDES/i);
    expect(text).toContain('friendlyName: ada');
    expect(text.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
    expect(text).toContain(ada.key.trim().split('\n')[1]);
  });

  it('lets a device of Node in', async () => {
    expect(await cameInAs(modern)).toBe('ada');
  });

  it('of the old kind is opened by openssl -legacy: 3DES throughout, and a MAC of SHA-1', () => {
    const { text, reported: notice, status } = openssl(legacy, '-legacy', '-nodes', '-info');
    expect([status, notice]).toEqual([0, expect.stringContaining('MAC: sha1, Iteration 2048')]);
    expect(notice.match(/pbeWithSHA1And3-KeyTripleDES-CBC, Iteration 2048/g)).toHaveLength(2);
    expect(text.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
    expect(text).toContain(ada.key.trim().split('\n')[1]);
    expect(text).toContain(pki.ca.certificate.trim().split('\n')[2]);
    const wrong = spawnSync('openssl', [
      'pkcs12',
      '-legacy',
      '-in',
      join(directory, 'bundle.p12'),
      '-passin',
      'pass:x',
    ]);
    expect(wrong.stderr.toString()).toContain('Mac verify error');
  });

  it('of the old kind lets a device in, too', async () => {
    expect(await cameInAs(legacy)).toBe('ada');
  });

  it.runIf(hasKeytool())('of both kinds has one entry with its chain for Java', () => {
    for (const bundle of [modern, legacy]) {
      const listed = keytool(bundle);
      expect(listed).toContain('Entry type: PrivateKeyEntry');
      expect(listed).toContain('Certificate chain length: 2');
    }
  });

  it('is not made of what is no certificate, and says nothing of the key', async () => {
    const wrong = { ...kept, certificatePem: 'nothing' };
    await expect(pkcs12Bundles.withKey(wrong, { friendlyName: 'ada' })).rejects.toMatchObject({ code: 'upstream' });
  });
});

describe('a truststore', () => {
  it('holds the CA in the clear, with a MAC of SHA-1, as old phones read it', () => {
    const { text, reported, status } = openssl(trust, '-nokeys', '-info');
    expect([status, reported]).toEqual([0, expect.stringContaining('MAC: sha1')]);
    expect(text.match(/BEGIN CERTIFICATE/g)).toHaveLength(1);
    expect(text).toContain('friendlyName: Holdfast test CA');
    expect(text).toContain(pki.ca.certificate.trim().split('\n')[2]);
  });

  it.runIf(hasKeytool())('is one that Java trusts', () => {
    expect(keytool(trust)).toContain('Entry type: trustedCertEntry');
  });
});

function hasKeytool(): boolean {
  return spawnSync('keytool', ['-help']).status === 0;
}

function keytool(bundle: Buffer): string {
  const file = join(directory, 'java.p12');
  writeFileSync(file, bundle);
  const args = ['-list', '-v', '-storetype', 'PKCS12', '-keystore', file, '-storepass', 'atakatak'];
  return execFileSync('keytool', args, { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C.UTF-8' } });
}
