// Creates PKCS#12 files for devices, with the well-known password. The large library behind it is
// loaded on first use.

import { X509Certificate } from 'node:crypto';
import { AppError } from '@holdfast/kit/app-error';
import type { KeptKey } from '../../core/devices/port.ts';
import type { Bundles } from '../port.ts';
import { BUNDLE_PASSWORD } from './data-package.ts';

type Bytes = Uint8Array<ArrayBuffer>;

export const pkcs12Bundles: Bundles = {
  async withKey(key, { friendlyName, legacy = false }) {
    const bundle = { ...derOf(key), friendlyName, password: BUNDLE_PASSWORD };
    if (legacy) {
      const { legacyKeyBundle } = await import('@holdfast/pki/pkcs12-legacy');
      return legacyKeyBundle(bundle).toString('base64');
    }
    const { keyBundle } = await import('@holdfast/pki/pkcs12');
    return Buffer.from(await keyBundle(bundle)).toString('base64');
  },

  async trust(chainPem) {
    const { certificateBundle } = await import('@holdfast/pki/pkcs12');
    const entries = chainPem.map(certificateOf).map((certificate) => ({
      friendlyName: commonName(certificate),
      certificate: new Uint8Array(certificate.raw),
    }));
    return Buffer.from(await certificateBundle(entries, BUNDLE_PASSWORD)).toString('base64');
  },
};

function derOf({ keyPem, certificatePem, chainPem }: KeptKey): {
  privateKeyPkcs8Der: Bytes;
  certificate: Bytes;
  chain: Bytes[];
} {
  const [, base64 = ''] = /-----BEGIN PRIVATE KEY-----([^-]+)-----END PRIVATE KEY-----/.exec(keyPem) ?? [];
  return {
    privateKeyPkcs8Der: new Uint8Array(Buffer.from(base64, 'base64')),
    certificate: new Uint8Array(certificateOf(certificatePem).raw),
    chain: chainPem.map((pem) => new Uint8Array(certificateOf(pem).raw)),
  };
}

function certificateOf(pem: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (error) {
    throw new AppError('upstream', 'A certificate cannot be read, so no bundle can be made from it.', { cause: error });
  }
}

function commonName({ subject }: X509Certificate): string {
  return /^CN=(.+)$/m.exec(subject)?.[1] ?? 'CA';
}
