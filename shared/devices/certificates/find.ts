// Finds the certificate that a `{file}` in a path means, according to the records.

import { AppError } from '@holdfast/kit/app-error';
import { API_ACCOUNT, isSameUser } from '@holdfast/kit/names';
import type { Core, CoreCertificate } from '../../core/port.ts';
import type { Account, Identity } from '../../identity/port.ts';
import type { Revocation } from '../port.ts';
import { readCertificateReference } from '../rules.ts';
import { expiriesOf, showAll, type UserCertificatesDeps } from './of-user.ts';
import type { CertificateView } from './view.ts';
import { isUnavailable, orAsWritten } from './while-core-is-unavailable.ts';

export interface FindCertificateDeps extends UserCertificatesDeps {
  core: Pick<Core, 'certificates' | 'certificate'>;
  identity: { accounts: Pick<Identity['accounts'], 'named'> };
}

export interface FoundCertificate {
  certificate: CoreCertificate;
  shown: CertificateView;
}

/**
 * By its hash, the start of it, or the name that it was made under: of several of one name, the one
 * that is not revoked, else the newest. `not_found` when there is none.
 */
export async function findCertificate(deps: FindCertificateDeps, file: string): Promise<FoundCertificate> {
  const found = await bestOf(deps, await candidatesOf(deps, file));
  if (found !== undefined) return found;
  throw new AppError(
    'not_found',
    `There is no certificate with the file or hash ${JSON.stringify(file)}; GET /api/ops/certs lists them.`,
  );
}

/**
 * Only if it is that user's, by its record; else it is not there. Only the user's own are looked
 * at: nothing tells another's from one that nobody has, and nobody makes the core read its whole
 * list.
 */
export async function findCertificateOf(
  deps: FindCertificateDeps,
  file: string,
  username: string,
): Promise<FoundCertificate> {
  const found = await bestOf(deps, await candidatesAmong(deps, file, username));
  if (found !== undefined) return found;
  throw new AppError(
    'not_found',
    `You have no certificate with the file or hash ${JSON.stringify(file)}; GET /api/me/certs lists yours.`,
  );
}

export interface FoundOrRemembered extends FoundCertificate {
  /** Why it is what is written here, not what the core has. */
  problem: string | undefined;
}

/**
 * The same, of everybody's or of one user's, also while the core is away: then as it is written
 * here. What is not written here may be at the core all the same: then it is `unavailable`, not
 * `not_found`.
 */
export async function findOrRemembered(
  deps: FindCertificateDeps,
  file: string,
  username?: string,
): Promise<FoundOrRemembered> {
  const { deps: readable, problem } = orAsWritten(deps);
  try {
    const found =
      username === undefined
        ? await findCertificate(readable, file)
        : await findCertificateOf(readable, file, username);
    return { ...found, problem: problem() };
  } catch (error) {
    const why = problem();
    if (why === undefined || !isNotFound(error)) throw error;
    throw new AppError('unavailable', why, { cause: error });
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof AppError && error.code === 'not_found';
}

async function bestOf(
  deps: FindCertificateDeps,
  candidates: readonly CoreCertificate[],
): Promise<FoundCertificate | undefined> {
  const shown = await viewOf(deps, candidates);
  const best = shown.find(({ state }) => state === 'active' || state === 'expired') ?? shown[0];
  const certificate = candidates.find(({ hash }) => hash === best?.fingerprint);
  return best !== undefined && certificate !== undefined ? { certificate, shown: best } : undefined;
}

async function candidatesAmong(deps: FindCertificateDeps, file: string, of: string): Promise<CoreCertificate[]> {
  const reference = readCertificateReference(file);
  if (reference === undefined) return [];
  if (reference.kind === 'made') return isSameUser(reference.username, of) ? candidatesOf(deps, file) : [];
  const own = (await deps.core.certificates(of)).filter(({ username }) => isSameUser(username, of));
  if (reference.kind === 'hash') return own.filter(({ hash }) => hash === reference.hash);
  return own.filter(({ hash }) => bare(hash).startsWith(reference.hex));
}

/**
 * For revoking, which goes on without the provider (then nobody knows when the user expires) and
 * without the kept keys.
 */
export function anyUser({
  core,
  certificateStore,
  clientKeys,
  identity,
  now,
}: FindCertificateDeps): FindCertificateDeps {
  async function orElse<T>(ask: Promise<T>, without: T): Promise<T> {
    try {
      return await ask;
    } catch (error) {
      if (isUnavailable(error)) return without;
      throw error;
    }
  }
  const named = (username: string): Promise<Account | undefined> =>
    orElse(identity.accounts.named(username), undefined);
  const kept = (hashes: readonly string[]): Promise<string[]> => orElse(clientKeys.kept(hashes), []);
  return { core, certificateStore, clientKeys: { kept }, identity: { accounts: { named } }, now };
}

/**
 * Of one user in whatever case the name is given: a release finds it in the spelling of the account
 * alone.
 */
export async function certificatesNamed(
  { core, identity }: Pick<FindCertificateDeps, 'core' | 'identity'>,
  username: string,
): Promise<CoreCertificate[]> {
  const found = await core.certificates(username);
  if (found.length > 0) return found.filter((each) => isSameUser(each.username, username));
  const account = await identity.accounts.named(username);
  if (account === undefined || account.username === username) return [];
  return (await core.certificates(account.username)).filter((each) => isSameUser(each.username, username));
}

async function candidatesOf(deps: FindCertificateDeps, file: string): Promise<CoreCertificate[]> {
  const { core, certificateStore } = deps;
  const reference = readCertificateReference(file);
  if (reference === undefined) return [];
  if (reference.kind === 'hash') {
    const found = await core.certificate(reference.hash);
    return found === undefined ? [] : [found];
  }
  if (reference.kind === 'start')
    return (await core.certificates()).filter(({ hash }) => bare(hash).startsWith(reference.hex));
  const { username, name } = reference;
  const issued = await certificatesNamed(deps, username);
  if (username === API_ACCOUNT && name === '') return issued.filter(({ clientUid }) => clientUid === API_ACCOUNT);
  const made = await certificateStore.made([username]);
  const hashes = new Set(made.filter((each) => each.name === name).map(({ hash }) => hash));
  return issued.filter(({ hash }) => hashes.has(hash));
}

/** Newest first, as everybody sees them; all of one user, or few. */
async function viewOf(deps: FindCertificateDeps, certificates: readonly CoreCertificate[]): Promise<CertificateView[]> {
  const usernames = [...new Set(certificates.map(({ username }) => username))];
  const [made, revocations, accounts] = await Promise.all([
    deps.certificateStore.made(usernames),
    deps.certificateStore.revocations(usernames),
    Promise.all(usernames.map((username) => deps.identity.accounts.named(username))),
  ]);
  const expiries = expiriesOf(accounts.filter((account) => account !== undefined));
  return showAll(deps, certificates, { made, revocations, expiries });
}

function bare(hash: string): string {
  return hash.replaceAll(':', '').toLowerCase();
}

/**
 * How a certificate is shown right after it was revoked, also when the core has gone away since.
 */
export async function viewAfterRevocation(
  deps: FindCertificateDeps,
  before: CertificateView,
  { hash, state }: Revocation,
): Promise<CertificateView> {
  try {
    return (await findCertificate(deps, hash)).shown;
  } catch {
    return { ...before, state, downloadable: false };
  }
}
