// The keys that a certificate may be made for.

import { createPublicKey, type KeyObject } from 'node:crypto';

/** With the name of its curve, whatever parameters it came with. */
export interface CertifiableKey {
  key: KeyObject;
  /** SubjectPublicKeyInfo. */
  der: Uint8Array<ArrayBuffer>;
}

const CURVES = new Set(['prime256v1', 'secp384r1', 'secp521r1']);
const FEWEST_RSA_BITS = 2048;
const MOST_RSA_BITS = 8192;
const MOST_RSA_EXPONENT = 2n ** 64n;

/** What this side takes, for a person to read. */
export const KEYS_TAKEN = 'RSA of 2048 to 8192 bits, elliptic curves P-256, P-384 and P-521, and Ed25519';

/** The key in a SubjectPublicKeyInfo; undefined when it is none, or one that is not taken. */
export function certifiableKey(spki: Uint8Array): CertifiableKey | undefined {
  let key: KeyObject;
  try {
    key = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
  } catch {
    return undefined;
  }
  if (!isTaken(key)) return undefined;
  const named = createPublicKey({ key: key.export({ format: 'jwk' }), format: 'jwk' });
  return { key: named, der: Uint8Array.from(named.export({ type: 'spki', format: 'der' })) };
}

function isTaken({ asymmetricKeyType: type, asymmetricKeyDetails: details = {} }: KeyObject): boolean {
  const { modulusLength = 0, publicExponent = 0n, namedCurve = '' } = details;
  if (type === 'ed25519') return true;
  if (type === 'ec') return CURVES.has(namedCurve);
  if (type !== 'rsa' || modulusLength < FEWEST_RSA_BITS || modulusLength > MOST_RSA_BITS) return false;
  return publicExponent >= 3n && publicExponent % 2n === 1n && publicExponent < MOST_RSA_EXPONENT;
}
