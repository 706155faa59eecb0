// PKCS#12 files, as Base64. The password is the one that everybody knows: it protects nothing.

import type { KeptKey } from './client-keys.ts';

export interface Bundles {
  /** A key with its certificate and chain: AES-256-CBC; `legacy`: 3DES and SHA-1, for old ATAK. */
  withKey(key: KeptKey, options: { friendlyName: string; legacy?: boolean }): Promise<string>;
  /** CA certificates that are trusted (PEM), as old phones read them. */
  trust(chainPem: readonly string[]): Promise<string>;
}
