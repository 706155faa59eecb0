// Who asks: the owner of the API token in the Authorization header. Failures are 403, never 401.

import type { StoredAccount } from '../store/account-rows.ts';
import type { IdentityStore } from '../store/store.ts';
import { forbidden, notFound } from './refused.ts';

const LONGEST_KEY = 1024;

export async function signIn(header: string | undefined, store: IdentityStore, now: Date): Promise<StoredAccount> {
  if (header === undefined || header.trim() === '') {
    throw forbidden('Authentication credentials were not provided.');
  }
  const [scheme = '', key = '', ...rest] = header.trim().split(/\s+/);
  if (scheme.toLowerCase() !== 'bearer') throw forbidden('Unsupported authentication type');
  if (key === '' || rest.length > 0) throw forbidden('Malformed header');
  const owner = key.length > LONGEST_KEY ? undefined : await store.tokens.ownerOf(key, now);
  if (owner === undefined) throw forbidden('Token invalid/expired');
  return owner;
}

/** Administration is for members of a group of superusers. */
export function administers(caller: StoredAccount): void {
  if (!caller.is_superuser) throw forbidden();
}

/** As `administers`, where the path names one object: who may not see it does not learn that it is there. */
export function seesEverything(caller: StoredAccount): void {
  if (!caller.is_superuser) throw notFound();
}
