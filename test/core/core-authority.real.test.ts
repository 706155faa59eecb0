import 'reflect-metadata';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { coreAuthorityFiles } from '../../shared/core/files.ts';
import { issue, type Issued } from '../support/certificates.ts';

const ca = await issue('ca', undefined, { ca: true });
const namesake = await issue('ca', undefined, { ca: true });
let root: string;
const put = (name: string, content: string | Uint8Array): void =>
  writeFileSync(join(root, 'certs/files', name), content);

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'holdfast-authority-'));
  mkdirSync(join(root, 'certs/files'), { recursive: true });
  put('ca.pem', ca.pem);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

async function listOf(issuer: Issued, serials: string[]): Promise<x509.X509Crl> {
  return x509.X509CrlGenerator.create({
    issuer: issuer.certificate.subject,
    thisUpdate: new Date('2026-01-02T03:04:05Z'),
    nextUpdate: new Date('2026-01-09T03:04:05Z'),
    entries: serials.map((serialNumber) => ({ serialNumber, revocationDate: new Date('2026-01-01T00:00:00Z') })),
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    signingKey: issuer.keys.privateKey,
  });
}

const pemOf = (list: x509.X509Crl): string => x509.PemConverter.encode(list.rawData, 'X509 CRL');

describe('the CA of the core', () => {
  it('is told with its chain, its fingerprint and its end', async () => {
    const above = await issue('above', undefined, { ca: true });
    put('ca.pem', ca.pem + above.pem);
    const { chainPem, fingerprint, expiresAt } = await coreAuthorityFiles(root).certificate();
    expect(chainPem.map((pem) => pem.trim())).toEqual([ca.pem.trim(), above.pem.trim()]);
    const message = execFileSync('openssl', ['x509', '-noout', '-fingerprint', '-sha256'], {
      input: ca.pem,
    }).toString();
    expect(message.trim().split('=')[1]).toBe(fingerprint);
    expect(expiresAt).toBe(ca.certificate.notAfter.toISOString());
  });

  it('is unavailable, with the file and the reason, when it is missing, torn or no CA', async () => {
    const certificate = () => coreAuthorityFiles(root).certificate();
    for (const [content, reason] of [
      [ca.pem.slice(0, 200), 'cannot be understood'],
      [(await issue('ada', ca)).pem, 'cannot be understood'],
      ['x'.repeat(300_000), 'is larger than'],
    ] as const) {
      put('ca.pem', content);
      await expect(certificate()).rejects.toMatchObject({ code: 'unavailable' });
      await expect(certificate()).rejects.toThrow(`${join(root, 'certs/files/ca.pem')} ${reason}`);
    }
    rmSync(join(root, 'certs'), { recursive: true });
    await expect(certificate()).rejects.toThrow('ca.pem is missing');
  });
});

describe('its revocation list', () => {
  it.each(['pem', 'der'])('is told with its serials, from %s', async (form) => {
    const list = await listOf(ca, ['01', '00ff12', '7a']);
    put('ca.crl', form === 'pem' ? pemOf(list) : new Uint8Array(list.rawData));
    const { pem, ...others } = await coreAuthorityFiles(root).revocationList();
    expect(others).toEqual({
      serials: ['1', 'ff12', '7a'],
      thisUpdate: '2026-01-02T03:04:05.000Z',
      nextUpdate: '2026-01-09T03:04:05.000Z',
      ours: true,
    });
    const text = execFileSync('openssl', ['crl', '-noout', '-text'], { input: pem }).toString();
    expect(text.match(/Serial Number/g)).toHaveLength(3);
  });

  it('of another CA of the same name is not ours', async () => {
    put('ca.crl', pemOf(await listOf(namesake, [])));
    expect(await coreAuthorityFiles(root).revocationList()).toMatchObject({ ours: false, serials: [] });
  });

  it('is unavailable when it is missing or torn, or when there is no CA to hold it against', async () => {
    const revocationList = () => coreAuthorityFiles(root).revocationList();
    await expect(revocationList()).rejects.toThrow('ca.crl is missing');
    put('ca.crl', pemOf(await listOf(ca, ['01'])).slice(0, 150));
    await expect(revocationList()).rejects.toMatchObject({ code: 'unavailable' });
    put('ca.crl', pemOf(await listOf(ca, ['01'])));
    rmSync(join(root, 'certs/files/ca.pem'));
    await expect(revocationList()).rejects.toThrow('ca.pem is missing');
  });
});
