// Passwords of missions: scrypt, each with a salt of its own. A release keeps bcrypt; nothing but the server reads them.

import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { serialize } from '@holdfast/kit/concurrency';

const COST = 16_384;
const KEY_BYTES = 32;
const SALT_BYTES = 16;
const MOST_CHARACTERS = 256;
const FORM = /^scrypt:16384:([0-9a-f]{32}):([0-9a-f]{64})$/;

/** One after the other: each takes some 50 ms of a thread beside the event loop, and 16 MB. Ask a rate before. */
export class MissionPasswords {
  readonly #inLine = serialize();

  /** `scrypt:16384:<salt>:<key>`, hex. */
  async hash(password: string): Promise<string> {
    const salt = randomBytes(SALT_BYTES);
    return `scrypt:${COST}:${salt.toString('hex')}:${(await this.#inLine(() => derived(password, salt))).toString('hex')}`;
  }

  /** False for a hash of another form too. */
  async matches(password: string, hash: string): Promise<boolean> {
    const [, salt, key] = FORM.exec(hash) ?? [];
    if (salt === undefined || key === undefined || !isPossiblePassword(password)) return false;
    const given = await this.#inLine(() => derived(password, Buffer.from(salt, 'hex')));
    return timingSafeEqual(given, Buffer.from(key, 'hex'));
  }
}

export function isPossiblePassword(password: string): boolean {
  return password.length > 0 && password.length <= MOST_CHARACTERS;
}

function derived(password: string, salt: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFKC'), salt, KEY_BYTES, { N: COST }, (error, key) =>
      error === null ? resolve(key) : reject(error),
    );
  });
}
