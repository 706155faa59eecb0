// Keys, serial numbers and PEM, as every certificate of the core has them: ECDSA on the curve of
// the CA. A new CA is on P-256; one made by an earlier version is on P-384, and stays.

import { createPrivateKey, type KeyObject, randomBytes, webcrypto } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { StackError } from '@holdfast/kit/app-error';
import { HOUR_MS } from '@holdfast/kit/time';

export type Curve = 'P-256' | 'P-384';

const CURVES: Readonly<Record<string, Curve>> = { prime256v1: 'P-256', secp384r1: 'P-384' };

/** How far back certificates begin, for clocks that are behind. */
export const BACKDATED_MS = 12 * HOUR_MS;

/** A new pair; the private half can be exported. */
export async function newKeys(curve: Curve): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey({ name: 'ECDSA', namedCurve: curve }, true, ['sign', 'verify']);
}

/** Of either half; throws for a key on no curve of ours. */
export function curveOf(key: KeyObject): Curve {
  const curve = knownCurveOf(key);
  if (curve === undefined) throw new Error(`a key of another kind: ${key.asymmetricKeyType}`);
  return curve;
}

function knownCurveOf(key: KeyObject): Curve | undefined {
  return CURVES[key.asymmetricKeyDetails?.namedCurve ?? ''];
}

/** How a key on that curve signs certificates. */
export function signatureOn(curve: Curve): { name: 'ECDSA'; hash: 'SHA-256' | 'SHA-384' } {
  return { name: 'ECDSA', hash: curve === 'P-256' ? 'SHA-256' : 'SHA-384' };
}

/** The key of the CA; throws a StackError that names the file when it is missing or no such key. */
export function readCaKey(file: string): KeyObject {
  if (!existsSync(file)) {
    throw new StackError(
      `${file} is missing: without it no certificate can be made.`,
      'restore it from a backup. For a new CA, which every device must trust again, remove ca.pem beside it',
    );
  }
  const key = keyIn(file);
  if (key !== undefined && knownCurveOf(key) !== undefined) return key;
  const kind = key?.asymmetricKeyDetails?.namedCurve ?? key?.asymmetricKeyType;
  const found = key === undefined ? 'no private key' : `a key of another kind (${kind})`;
  throw new StackError(
    `${file} holds ${found}, not one on P-256 or P-384.`,
    'restore it from a backup. For a new CA, which every device must trust again, remove it and ca.pem beside it',
  );
}

/** Undefined when the file holds something else, or is cut off. */
function keyIn(file: string): KeyObject | undefined {
  const content = readFileSync(file);
  try {
    return createPrivateKey(content);
  } catch {
    return undefined;
  }
}

/** The same key for Web Crypto, to sign with. */
export async function signingKey(key: KeyObject): Promise<webcrypto.CryptoKey> {
  const algorithm = { name: 'ECDSA', namedCurve: curveOf(key) };
  return webcrypto.subtle.importKey('pkcs8', key.export({ type: 'pkcs8', format: 'der' }), algorithm, false, ['sign']);
}

export async function privateKeyPem(key: webcrypto.CryptoKey): Promise<string> {
  const der = await webcrypto.subtle.exportKey('pkcs8', key);
  const object = createPrivateKey({ key: Buffer.from(der), format: 'der', type: 'pkcs8' });
  return object.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** DER (PKCS#8) of a private key in PEM. */
export function privateKeyDer(pem: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(createPrivateKey(pem).export({ type: 'pkcs8', format: 'der' }));
}

/** A positive serial number of 16 random bytes: lower-case hex without leading zeros. */
export function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString('hex');
}

/** A serial number in the one spelling in which they are compared. */
export function normalSerial(hex: string): string {
  return hex.toLowerCase().replace(/^0+(?=.)/, '');
}

/** Every certificate of a PEM file, in its order, each with a line end. */
export function certificatesOf(pem: string): string[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => `${block}\n`);
}

/** Bytes as PEM. */
export function pemOf(label: string, der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}
