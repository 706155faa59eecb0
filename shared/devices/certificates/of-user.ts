// Lists the certificates of one user, even while the core is unavailable.

import { isSameUser, nameKey } from '@holdfast/kit/names';
import type { ClientKeys } from '../../core/devices/port.ts';
import type { Core, CoreCertificate } from '../../core/port.ts';
import type { Account } from '../../identity/port.ts';
import { appExpiresOf } from '../../identity/rules.ts';
import type { CertificateStore, MadeCertificate, Revocation } from '../port.ts';
import { type CertificateView, toCertificateView } from './view.ts';
import { isUnavailable, orAsWritten, withProblem } from './while-core-is-unavailable.ts';

/**
 * The certificates of people: asked of the core one user at a time, over connections that it keeps,
 * as many at once as it has.
 */
export interface UserCertificatesDeps {
  core: Pick<Core, 'certificates'>;
  certificateStore: Pick<CertificateStore, 'made' | 'revocations'>;
  clientKeys: Pick<ClientKeys, 'kept'>;
  now: () => Date;
}

type Owner = Pick<Account, 'username' | 'attributes'>;

/** Newest first, for each of these accounts by its name. Rejects as the core does. */
export async function certificatesOf(
  deps: UserCertificatesDeps,
  owners: readonly Owner[],
): Promise<Map<string, CertificateView[]>> {
  const usernames = owners.map(({ username }) => username);
  const [found, made, revocations] = await Promise.all([
    Promise.all(usernames.map((username) => deps.core.certificates(username))),
    deps.certificateStore.made(usernames),
    deps.certificateStore.revocations(usernames),
  ]);
  const own = found.map((certificates, at) =>
    certificates.filter(({ username }) => isSameUser(username, usernames[at] ?? '')),
  );
  const shown = await showAll(deps, own.flat(), { made, revocations, expiries: expiriesOf(owners) });
  const perName = Map.groupBy(shown, ({ username }) => nameKey(username));
  return new Map(usernames.map((username) => [username, perName.get(nameKey(username)) ?? []]));
}

export interface Known {
  made: readonly MadeCertificate[];
  revocations: readonly Revocation[];
  /** When users expire, in seconds of Unix time, by `nameKey`. */
  expiries: ReadonlyMap<string, number | null>;
}

/** Puts together what core, book and keys know; newest first. */
export async function showAll(
  { clientKeys, now }: Pick<UserCertificatesDeps, 'clientKeys' | 'now'>,
  certificates: readonly Omit<CoreCertificate, 'pem'>[],
  { made, revocations, expiries }: Known,
): Promise<CertificateView[]> {
  const madeByHash = new Map(made.map((each) => [each.hash, each]));
  const revocationByHash = new Map(revocations.map((each) => [each.hash, each]));
  const withKey = certificates.map(({ hash }) => hash).filter((hash) => madeByHash.has(hash));
  const kept = new Set(withKey.length === 0 ? [] : await clientKeys.kept(withKey));
  const at = now();
  return certificates
    .map((certificate) =>
      toCertificateView(
        {
          certificate,
          made: madeByHash.get(certificate.hash),
          revocation: revocationByHash.get(certificate.hash),
          userExpires: expiries.get(nameKey(certificate.username)) ?? null,
          kept: kept.has(certificate.hash),
        },
        at,
      ),
    )
    .toSorted((a, b) => b.issued_at.localeCompare(a.issued_at) || a.fingerprint.localeCompare(b.fingerprint));
}

export function expiriesOf(owners: readonly Owner[]): Map<string, number | null> {
  return new Map(owners.map(({ username, attributes }) => [nameKey(username), appExpiresOf(attributes)]));
}

export interface CertificatesOfUser {
  certs: CertificateView[];
  /** Why these are not all, or not as the core has them. */
  certs_error?: string;
}

type Deps = UserCertificatesDeps & { core: Pick<Core, 'certificates' | 'certificate'> };

/**
 * None, with the reason, when what is written cannot be read either: a user can be read all the
 * same.
 */
export async function certificatesOfUser(
  deps: Deps,
  owner: Pick<Account, 'username' | 'attributes'>,
): Promise<CertificatesOfUser> {
  const { deps: readable, problem } = orAsWritten(deps);
  try {
    const certs = (await certificatesOf(readable, [owner])).get(owner.username) ?? [];
    return withProblem({ certs }, problem());
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return { certs: [], certs_error: problem() ?? error.message };
  }
}
