// Recognises the password that a key was let in with last, by a digest under a key that dies with the process. It lets nobody
// in by itself: the password is judged all the same.

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

export interface KnownPassword {
  remember(key: string, password: string): void;
  isSame(key: string, password: string): boolean;
}

/** For the few names that our own parts use: nothing is forgotten. */
export function knownPassword(): KnownPassword {
  const secret = randomBytes(32);
  const digests = new Map<string, Buffer>();
  const digestOf = (password: string): Buffer => createHmac('sha256', secret).update(password).digest();
  return {
    remember: (key, password) => void digests.set(key, digestOf(password)),
    isSame(key, password) {
      const known = digests.get(key);
      return known !== undefined && timingSafeEqual(known, digestOf(password));
    },
  };
}
