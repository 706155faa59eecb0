// The serial number of a row: read quickly, and never another than the certificate has.

import { X509Certificate } from 'node:crypto';
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type TestPki, testPki } from '../../../test/core/fake-test-pki.ts';
import { serialNumberOf } from '../admin/certificates.ts';

let pki: TestPki;
beforeAll(async () => {
  pki = await testPki();
});
afterAll(() => rmSync(pki.directory, { recursive: true }));

const pemOf = (der: Buffer): string =>
  `-----BEGIN CERTIFICATE-----\n${der.toString('base64')}\n-----END CERTIFICATE-----\n`;

/** With this serial number, of as many bytes as it had. */
function withSerial({ raw, serialNumber }: X509Certificate, hex: string): Buffer {
  const der = Buffer.from(raw);
  Buffer.from(hex.padStart(serialNumber.length, '0'), 'hex').copy(der, der.indexOf(Buffer.from(serialNumber, 'hex')));
  return der;
}

it('is that of the certificate, in lower-case hex without leading zeros, also of one in other lines or after words', async () => {
  for (let round = 0; round < 20; round += 1) {
    const { certificate, signed } = await pki.client('ada');
    for (const pem of [
      certificate,
      certificate.replaceAll('\n', '\r\n'),
      `subject=ada\n${certificate}`,
      certificate.trim(),
    ])
      expect(serialNumberOf(pem)).toBe(signed.serial);
  }
});

it('is what Node.js reads, also when its highest bit is set', async () => {
  const certificate = new X509Certificate((await pki.client('ada')).certificate);
  const width = certificate.serialNumber.length;
  for (const hex of ['1a'.repeat(width / 2), '7f'.repeat(width / 2)]) {
    const read = serialNumberOf(pemOf(withSerial(certificate, hex)));
    expect(read).toBe(hex);
  }
  const negative = pemOf(withSerial(certificate, 'a5'.repeat(width / 2)));
  expect(serialNumberOf(negative)).toBe(new X509Certificate(negative).serialNumber.toLowerCase());
});

it('is null for what is no certificate, or a part of one', async () => {
  const { certificate, key } = await pki.client('ada');
  const { raw } = new X509Certificate(certificate);
  const cut = [1, 40, raw.length - 1].map((length) => pemOf(raw.subarray(0, length)));
  const longer = pemOf(Buffer.concat([raw, Buffer.from([0])]));
  // A signing request and a list begin with other fields.
  const other = pemOf(Buffer.from('300a3008020100300302012a', 'hex'));
  for (const pem of ['', 'x', key, ...cut, longer, other, pemOf(Buffer.alloc(0))])
    expect(serialNumberOf(pem)).toBeNull();
});
