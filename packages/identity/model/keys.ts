// Creates, seals and recognizes token keys. All depend on one secret outside the database, so that
// a stolen database is useless.

import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  randomBytes,
  randomInt,
} from 'node:crypto';
import type { Secret } from '@holdfast/kit/secret';

export interface IdentityKeys {
  /** Sealed for the token of that uuid; opens for no other one. */
  seal(key: string, tokenUuid: string): Buffer;
  /** Undefined when it was sealed with another secret, for another token, or is damaged. */
  open(sealed: Uint8Array, tokenUuid: string): string | undefined;
  /** By which a key is found; says nothing about it without the secret. */
  digest(key: string): Buffer;
  /** The uid of an account: 64 hexadecimal digits, the same as long as the secret is. */
  uid(pk: number): string;
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const KEY_LENGTH = 60;
const SHORTEST_SECRET = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** 60 letters and digits, about 357 bits. */
export function newKey(): string {
  return Array.from({ length: KEY_LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join('');
}

/** Throws when the secret is shorter than 32 characters. */
export function identityKeys(secretKey: Secret): IdentityKeys {
  const secret = secretKey.reveal();
  if (secret.length < SHORTEST_SECRET) {
    throw new Error(`The secret key of the identity provider must have at least ${SHORTEST_SECRET} characters.`);
  }
  const derived = (use: string): Buffer => Buffer.from(hkdfSync('sha256', secret, '', `holdfast identity ${use}`, 32));
  const [sealing, finding, instance] = [derived('token seal'), derived('token digest'), derived('instance')];

  return {
    seal(key, tokenUuid) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', sealing, nonce).setAAD(Buffer.from(tokenUuid));
      const text = Buffer.concat([cipher.update(key, 'utf8'), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), text]);
    },
    open(sealed, tokenUuid) {
      const bytes = Buffer.from(sealed);
      if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
      const options = { authTagLength: TAG_BYTES };
      const cipher = createDecipheriv('aes-256-gcm', sealing, bytes.subarray(0, NONCE_BYTES), options)
        .setAAD(Buffer.from(tokenUuid))
        .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      try {
        return cipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES), undefined, 'utf8') + cipher.final('utf8');
      } catch {
        return undefined;
      }
    },
    digest: (key) => createHmac('sha256', finding).update(key).digest(),
    uid: (pk) => createHash('sha256').update(`${pk}-`).update(instance).digest('hex'),
  };
}
