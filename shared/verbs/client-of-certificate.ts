// Which connection a certificate has: cores name no certificate per connection, only what the device calls itself and since when
// it is there.

import type { CoreCertificate, CoreClient } from '../ports/core.ts';

export type Enrolled = Pick<CoreCertificate, 'hash' | 'clientUid' | 'issuedAt' | 'revokedAt'>;

/** The core counts in seconds. */
export const ROUNDED_MS = 2_000;

/**
 * A connection is that of the newest certificate in force that there was when it began: a device that has enrolled again still
 * streams with the old one. `all` and `clients` are those of one user; since when is null where the core does not say it.
 */
export function clientOfCertificate<C extends Pick<CoreClient, 'uid' | 'since'>>(
  certificate: Enrolled,
  all: readonly Enrolled[],
  clients: readonly C[],
): C | undefined {
  const { clientUid, hash } = certificate;
  if (clientUid === '') return undefined;
  const ofDevice = all
    .filter((each) => each.clientUid === clientUid && each.revokedAt === null)
    .toSorted((a, b) => b.issuedAt.localeCompare(a.issuedAt));
  return clients.find(({ uid, since }) => {
    const latest = since === null ? Number.POSITIVE_INFINITY : Date.parse(since) + ROUNDED_MS;
    return uid === clientUid && ofDevice.find(({ issuedAt }) => Date.parse(issuedAt) <= latest)?.hash === hash;
  });
}
