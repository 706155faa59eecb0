// Renews the certificates of the stack's own service accounts before they expire, after a new CA,
// and after a revocation.

import type { Deps } from '../shared/http/deps.ts';
import { keepServiceCertificates } from '../shared/people/service-accounts/keep-certificates.ts';

export async function run(deps: Deps): Promise<{ made: string[] }> {
  const { made } = await keepServiceCertificates(deps);
  if (made.length > 0) for (const module of ['certificates', 'probe']) await deps.health.forget(module);
  return { made };
}
