// The certificates of one user, also while the core is away.

import type { Core } from '../ports/core.ts';
import type { Account } from '../ports/identity.ts';
import type { ShownCertificate } from './shown-certificate.ts';
import { certificatesOf, type UserCertificatesDeps } from './user-certificates.ts';
import { isAway, orAsWritten, withProblem } from './while-core-is-away.ts';

export interface CertificatesOfUser {
  certs: ShownCertificate[];
  /** Why these are not all, or not as the core has them. */
  certs_error?: string;
}

type Deps = UserCertificatesDeps & { core: Pick<Core, 'certificates' | 'certificate'> };

/** None, with the reason, when what is written cannot be read either: a user can be read all the same. */
export async function certificatesOfUser(
  deps: Deps,
  owner: Pick<Account, 'username' | 'attributes'>,
): Promise<CertificatesOfUser> {
  const { deps: readable, problem } = orAsWritten(deps);
  try {
    const certs = (await certificatesOf(readable, [owner])).get(owner.username) ?? [];
    return withProblem({ certs }, problem());
  } catch (error) {
    if (!isAway(error)) throw error;
    return { certs: [], certs_error: problem() ?? error.message };
  }
}
