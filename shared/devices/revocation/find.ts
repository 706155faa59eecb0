// Finds what was revoked past Holdfast, so that it is proven as well, and keys of revoked certificates that were left behind.

import { CANARY_ACCOUNT, isSameUser } from '@holdfast/kit/names';
import { DAY_MS } from '@holdfast/kit/time';
import type { Core } from '../../core/port.ts';
import type { RevocationDeps } from '../port.ts';
import { hasEnded } from '../rules.ts';
import { noteAsRevoking } from './prove.ts';

export type FindRevocationsDeps = RevocationDeps & { core: Pick<Core, 'revokedCertificates'> };

/** Notes what has a date at the core and is not in the book; resolves with their number. Rejects as the core does. */
export async function findRevocations(deps: FindRevocationsDeps): Promise<number> {
  const revoked = await deps.core.revokedCertificates();
  const now = deps.now();
  // The canary is proven by its own run.
  const inForce = revoked.filter((each) => !hasEnded(each, now) && !isSameUser(each.username, CANARY_ACCOUNT));
  const known = new Set(await deps.certificateBook.noted(inForce.map(({ hash }) => hash)));
  const found = inForce.filter(({ hash }) => !known.has(hash));
  await noteAsRevoking(deps, found, now.toISOString());
  for (const { username, hash } of found) deps.log.info('revocation.found', { username, hash });
  return found.length;
}

/** Of revocations that were proven within a day; resolves with the number of keys that were removed. */
export async function removeLeftKeys({ certificateBook, clientKeys, now }: RevocationDeps): Promise<number> {
  const proven = await certificateBook.provenSince(new Date(now().getTime() - DAY_MS).toISOString());
  const left = proven.length === 0 ? [] : await clientKeys.kept(proven);
  for (const hash of left) await clientKeys.remove(hash);
  return left.length;
}
