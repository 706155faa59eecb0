// Creates a key with its signing request (PKCS#10). Its library is large, so this file is loaded at
// the first enrollment.

import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { type JsonNameParams, Name, Pkcs10CertificateRequestGenerator } from '@peculiar/x509';
import type { NameEntry } from './signing-rules.ts';

const KEY = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SIGNATURE = { name: 'ECDSA', hash: 'SHA-256' } as const;

export interface SigningRequest {
  /** Base64 of the DER. */
  request: string;
  /** SubjectPublicKeyInfo, DER. */
  publicKey: Buffer;
  /** PKCS#8, not encrypted. */
  keyPem: string;
}

/** The subject has exactly these entries, and the name. Throws for an unknown kind of entry. */
export async function signingRequest(username: string, entries: readonly NameEntry[]): Promise<SigningRequest> {
  const keys = await webcrypto.subtle.generateKey(KEY, true, ['sign', 'verify']);
  const subject: JsonNameParams = [...entries, { name: 'CN', value: username }].map(({ name, value }) => ({
    // A plain text would be read as an expression: `#0c`, `"a"`.
    [name]: [{ utf8String: value }],
  }));
  const made = await Pkcs10CertificateRequestGenerator.create({
    name: new Name(subject),
    keys,
    signingAlgorithm: SIGNATURE,
  });
  const [publicKey, key] = await Promise.all([
    webcrypto.subtle.exportKey('spki', keys.publicKey),
    webcrypto.subtle.exportKey('pkcs8', keys.privateKey),
  ]);
  return {
    request: Buffer.from(made.rawData).toString('base64'),
    publicKey: Buffer.from(publicKey),
    keyPem: `-----BEGIN PRIVATE KEY-----\n${lines(Buffer.from(key).toString('base64'))}\n-----END PRIVATE KEY-----\n`,
  };
}

/** Lines of 64 characters, as PEM requires. */
function lines(base64: string): string {
  return base64.match(/.{1,64}/g)?.join('\n') ?? '';
}
