// A CA for tests, and certificates of it with whatever dates and names a test needs; all P-384, in a directory of their own.

import 'reflect-metadata';
import { createPrivateKey, randomBytes, webcrypto, X509Certificate } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';
import { DAY_MS } from '@holdfast/kit/time';
import type { SignedCertificate } from '@holdfast/pki/parts';
import { readClientCertificate } from '../../packages/core/tls/admission.ts';

const KEY = { name: 'ECDSA', namedCurve: 'P-384' } as const;
const SIGNATURE = { name: 'ECDSA', hash: 'SHA-384' } as const;

/** A certificate with its key, as PEM files and as text. */
export interface TestCertificate {
  certificateFile: string;
  keyFile: string;
  certificate: string;
  key: string;
  signed: SignedCertificate;
}

export interface TestPki {
  directory: string;
  ca: TestCertificate;
  client(name: string, options?: { from?: Date; to?: Date; usages?: string[] }): Promise<TestCertificate>;
  /** For 127.0.0.1 and `hosts`; `into` names the files. */
  server(into?: string, hosts?: string[]): Promise<TestCertificate>;
}

/** `name` is the CA's; two CAs may have the same. */
export async function testPki(name = 'Test CA'): Promise<TestPki> {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-pki-'));
  const caKeys = await webcrypto.subtle.generateKey(KEY, true, ['sign', 'verify']);
  const caCertificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: `CN=${name}`,
    notBefore: new Date(Date.now() - DAY_MS),
    notAfter: new Date(Date.now() + 3650 * DAY_MS),
    signingAlgorithm: SIGNATURE,
    keys: caKeys,
    extensions: [new x509.BasicConstraintsExtension(true, 0, true)],
  });

  async function issue(
    file: string,
    subject: string,
    extensions: x509.Extension[],
    { from = new Date(Date.now() - DAY_MS), to = new Date(Date.now() + 90 * DAY_MS) } = {},
  ): Promise<TestCertificate> {
    const keys = await webcrypto.subtle.generateKey(KEY, true, ['sign', 'verify']);
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: serialNumber(),
      subject,
      issuer: caCertificate.subject,
      notBefore: from,
      notAfter: to,
      signingAlgorithm: SIGNATURE,
      publicKey: keys.publicKey,
      signingKey: caKeys.privateKey,
      extensions,
    });
    return written(directory, file, certificate, keys.privateKey);
  }

  return {
    directory,
    ca: await written(directory, 'ca', caCertificate, caKeys.privateKey),
    client: (of, { usages = ['1.3.6.1.5.5.7.3.2'], ...dates } = {}) =>
      issue(
        `${of}-${randomBytes(3).toString('hex')}`,
        `CN=${of}`,
        usages.length === 0 ? [] : [new x509.ExtendedKeyUsageExtension(usages)],
        dates,
      ),
    server: (into = 'server', hosts = []) =>
      issue(into, 'CN=takserver', [
        new x509.SubjectAlternativeNameExtension([
          { type: 'ip', value: '127.0.0.1' },
          ...hosts.map((value) => ({ type: 'dns' as const, value })),
        ]),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      ]),
  };
}

async function written(
  directory: string,
  name: string,
  certificate: x509.X509Certificate,
  privateKey: webcrypto.CryptoKey,
): Promise<TestCertificate> {
  const files = { certificateFile: join(directory, `${name}.pem`), keyFile: join(directory, `${name}.key`) };
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', privateKey));
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }).export({ type: 'pkcs8', format: 'pem' });
  const pem = `${certificate.toString('pem')}\n`;
  writeFileSync(files.certificateFile, pem);
  writeFileSync(files.keyFile, key, { mode: 0o600 });
  const read = readClientCertificate(new X509Certificate(pem));
  const signed: SignedCertificate = {
    pem,
    der: new Uint8Array(certificate.rawData),
    serial: read.serial,
    hash: read.hash,
    subject: read.subject,
    commonName: read.commonName,
    notBefore: certificate.notBefore,
    notAfter: certificate.notAfter,
  };
  return { ...files, certificate: pem, key: key.toString(), signed };
}

function serialNumber(): string {
  return `4${randomBytes(8).toString('hex').slice(1)}`;
}
