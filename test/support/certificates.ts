// Real certificates for tests, of any kind that a server should not have.

import 'reflect-metadata';
import { randomBytes, webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import { DAY_MS } from '@holdfast/kit/time';

const KEY = { name: 'ECDSA', namedCurve: 'P-256' } as const;

/** A certificate with its key, in PEM. */
export interface Issued {
  certificate: x509.X509Certificate;
  keys: webcrypto.CryptoKeyPair;
  pem: string;
  key: string;
}

export interface Input {
  ca?: boolean;
  names?: string[];
  from?: Date;
  to?: Date;
}

/** Issues a certificate for `names` (localhost); self-signed without an issuer; valid from yesterday for a month. */
export async function issue(commonName: string, issuer: Issued | undefined, input: Input = {}): Promise<Issued> {
  const keys = await webcrypto.subtle.generateKey(KEY, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: `40${randomBytes(8).toString('hex')}`,
    subject: `CN=${commonName}, O=Holdfast test`,
    issuer: issuer?.certificate.subjectName ?? `CN=${commonName}, O=Holdfast test`,
    notBefore: input.from ?? new Date(Date.now() - DAY_MS),
    notAfter: input.to ?? new Date(Date.now() + 30 * DAY_MS),
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    publicKey: keys.publicKey,
    signingKey: (issuer?.keys ?? keys).privateKey,
    extensions: [
      new x509.BasicConstraintsExtension(input.ca ?? false, undefined, true),
      new x509.SubjectAlternativeNameExtension(
        (input.names ?? ['localhost']).map((value) => ({ type: /^[\d.]+$|:/.test(value) ? 'ip' : 'dns', value })),
      ),
    ],
  });
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64');
  const key = `-----BEGIN PRIVATE KEY-----\n${der}\n-----END PRIVATE KEY-----\n`;
  return { certificate, keys, pem: `${certificate.toString('pem')}\n`, key };
}
