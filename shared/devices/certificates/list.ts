// Lists a page of the core's certificates, by user and newest first. It asks the identity provider
// only for that page.

import type { Page, Paging } from '@holdfast/kit/json';
import { CANARY_ACCOUNT, isSameUser, nameKey } from '@holdfast/kit/names';
import type { Core, CoreCertificate } from '../../core/port.ts';
import type { Identity } from '../../identity/port.ts';
import type { Revocation } from '../port.ts';
import { certificatesNamed } from './find.ts';
import { expiriesOf, showAll, type UserCertificatesDeps } from './of-user.ts';
import { certificateState, type CertificateState, type CertificateView } from './view.ts';
import { orAsWritten, withProblem } from './while-core-is-unavailable.ts';

/** What one may ask for; the last of them also means what is on its way there. */
export type ListedState = 'active' | 'expired' | 'revoked';

export interface CertificateQuery extends Paging {
  /** Exactly this name, without regard to case. */
  username?: string | undefined;
  /** Default: all. */
  states?: ReadonlySet<ListedState> | undefined;
  /**
   * A part of the name of the user, of what the device calls itself, of the serial number or the
   * hash; in any case.
   */
  search?: string | undefined;
  /** Default: by user, newest first. `ends`: what ends first comes first. */
  order?: 'user' | 'ends' | undefined;
}

export interface ListCertificatesDeps extends UserCertificatesDeps {
  core: Pick<Core, 'certificates' | 'certificate'>;
  identity: { accounts: Pick<Identity['accounts'], 'named'> };
}

/** While the core is away, what is written here of them; `certs_error` says why. */
export async function listCertificates(
  deps: ListCertificatesDeps,
  query: CertificateQuery,
): Promise<Page<CertificateView> & { certs_error?: string }> {
  const { deps: readable, problem } = orAsWritten(deps);
  return withProblem(await listed(readable, query), problem());
}

async function listed(
  deps: ListCertificatesDeps,
  { username, states, search = '', order = 'user', page, pageSize }: CertificateQuery,
): Promise<Page<CertificateView>> {
  const usernames = username === undefined ? undefined : [username];
  const [found, revocations] = await Promise.all([
    username === undefined ? deps.core.certificates() : certificatesNamed(deps, username),
    deps.certificateStore.revocations(usernames),
  ]);
  const fitting = found.filter((each) => fits(each, search.toLowerCase()));
  const matching = matchingOf(fitting, { username, states, order, revocations, now: deps.now() });
  const part = matching.slice((page - 1) * pageSize, page * pageSize);
  return { results: await sortedView(deps, part, revocations), count: matching.length };
}

/** Of everybody, those of the canary come and go by themselves: they are for who asks. */
function matchingOf(
  found: readonly CoreCertificate[],
  {
    username,
    states,
    order,
    revocations,
    now,
  }: Pick<CertificateQuery, 'username' | 'states' | 'order'> & { revocations: Revocation[]; now: Date },
): CoreCertificate[] {
  const revocationOf = new Map(revocations.map((each) => [each.hash, each]));
  const keyed = found
    .filter((each) =>
      username === undefined ? !isSameUser(each.username, CANARY_ACCOUNT) : isSameUser(each.username, username),
    )
    .map((certificate) => ({ certificate, key: nameKey(certificate.username) }))
    .filter(({ certificate }) => {
      if (states === undefined) return true;
      return states.has(LISTED[certificateState({ certificate, revocation: revocationOf.get(certificate.hash) }, now)]);
    });
  return keyed
    .toSorted(
      (a, b) =>
        (order === 'ends' ? compared(a.certificate.expiresAt, b.certificate.expiresAt) : 0) ||
        compared(a.key, b.key) ||
        compared(b.certificate.issuedAt, a.certificate.issuedAt) ||
        compared(a.certificate.hash, b.certificate.hash),
    )
    .map(({ certificate }) => certificate);
}

function fits({ username, clientUid, serial, hash }: CoreCertificate, text: string): boolean {
  if (text === '') return true;
  return [username, clientUid, serial, hash].some((each) => each.toLowerCase().includes(text));
}

const LISTED: Record<CertificateState, ListedState> = {
  active: 'active',
  expired: 'expired',
  revoking: 'revoked',
  revoked: 'revoked',
  revocation_failed: 'revoked',
};

function compared(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

async function sortedView(
  deps: ListCertificatesDeps,
  certificates: readonly CoreCertificate[],
  revocations: readonly Revocation[],
): Promise<CertificateView[]> {
  if (certificates.length === 0) return [];
  const usernames = [...new Map(certificates.map(({ username }) => [nameKey(username), username])).values()];
  const [made, accounts] = await Promise.all([
    deps.certificateStore.made(usernames),
    Promise.all(usernames.map((username) => deps.identity.accounts.named(username))),
  ]);
  const expiries = expiriesOf(accounts.filter((account) => account !== undefined));
  const shown = await showAll(deps, certificates, { made, revocations, expiries });
  const byHash = new Map(shown.map((each) => [each.fingerprint, each]));
  return certificates.map(({ hash }) => byHash.get(hash)).filter((each) => each !== undefined);
}
