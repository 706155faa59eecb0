// Recognises the password of the settings without a hash. It lets nobody in by itself: the password is judged all the same.

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Secret } from '../../../../shared/domain/secret.ts';

/** A shorter one is not recognised: who is locked out could find it by the time that answers take. */
const LEAST_CHARACTERS = 20;

/** True for exactly this password. */
export function knownPassword(known: Secret | undefined): (password: string) => boolean {
  if (known === undefined || known.reveal().length < LEAST_CHARACTERS) return () => false;
  const secret = randomBytes(32);
  const digestOf = (password: string): Buffer => createHmac('sha256', secret).update(password).digest();
  const digest = digestOf(known.reveal());
  return (password) => timingSafeEqual(digest, digestOf(password));
}
