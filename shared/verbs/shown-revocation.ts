// How a certificate is shown right after it was revoked, also when the core has gone away since.

import type { Revocation } from '../ports/certificate-book.ts';
import { findCertificate, type FindCertificateDeps } from './find-certificate.ts';
import type { ShownCertificate } from './shown-certificate.ts';

export async function shownAfterRevocation(
  deps: FindCertificateDeps,
  before: ShownCertificate,
  { hash, state }: Revocation,
): Promise<ShownCertificate> {
  try {
    return (await findCertificate(deps, hash)).shown;
  } catch {
    return { ...before, state, downloadable: false };
  }
}
