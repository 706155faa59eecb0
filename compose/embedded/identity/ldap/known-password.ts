// Recognises the password that a key was let in with last, and the one of the settings, by a digest under a key that dies with the process. It lets nobody
// in by itself: the password is judged all the same.

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Secret } from '../../../../shared/domain/secret.ts';

export interface KnownPassword {
  remember(key: string, password: string): void;
  isSame(key: string, password: string): boolean;
}

/** For the few names that our own parts use: nothing is forgotten. */
export function knownPassword(fromSettings?: Secret): KnownPassword {
  const secret = randomBytes(32);
  const digests = new Map<string, Buffer>();
  const digestOf = (password: string): Buffer => createHmac('sha256', secret).update(password).digest();
  const always = fromSettings === undefined ? undefined : digestOf(fromSettings.reveal());
  return {
    remember: (key, password) => void digests.set(key, digestOf(password)),
    isSame(key, password) {
      const given = digestOf(password);
      return [digests.get(key), always].some((known) => known !== undefined && timingSafeEqual(known, given));
    },
  };
}
