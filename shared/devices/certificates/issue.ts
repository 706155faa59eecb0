// Issues a named certificate to a person, with a key of ours that the core signs. After a failure
// there is nothing, a complete certificate, or one that is being revoked; a crash is found by its
// intent.

import { AppError, invalid } from '@holdfast/kit/app-error';
import { nameKey } from '@holdfast/kit/names';
import { audited, mayBeDone, type Progress } from '../../audit/audited.ts';
import type { Core } from '../../core/port.ts';
import type { Account } from '../../identity/port.ts';
import { appExpiresOf, isoOfSeconds } from '../../identity/rules.ts';
import { isHidden, mustBeAllowed, type PeopleContext, type PeopleDeps } from '../accounts.ts';
import type { Bundles } from '../port.ts';
import { certificateFile, readCertificateReference } from '../rules.ts';
import {
  abandonCertificate,
  type CertificateOrder,
  type FreshCertificate,
  makeCertificate,
  type MakeCertificateDeps,
  recordedCertificate,
} from './make.ts';
import { certificatesOf, type UserCertificatesDeps } from './of-user.ts';
import { type CertificateFacts, type CertificateView, toCertificateView } from './view.ts';

export type IssueDeps = PeopleDeps &
  MakeCertificateDeps &
  UserCertificatesDeps & {
    core: Pick<Core, 'certificate'>;
    bundles: Pick<Bundles, 'withKey'>;
    settings: { KEEP_CLIENT_KEYS: boolean };
  };

export interface IssueContext extends PeopleContext {
  deps: IssueDeps;
}

export interface WantedCertificate {
  username: string;
  name: string;
  /** It is whoever asks: a hidden account, too. */
  own?: boolean;
}

export interface IssuedCertificate extends CertificateView {
  /** Only where keys are not kept: the bundle, which nobody can make again. */
  p12_base64?: string;
}

/**
 * `invalid` for whoever cannot have one, `conflict` for a name that is taken, for an account that
 * is closed, and for whoever has issued enough to oneself; `forbidden` as for every change of a
 * person.
 */
export async function issueCertificate(context: IssueContext, wanted: WantedCertificate): Promise<IssuedCertificate> {
  const { deps } = context;
  mustFit(wanted);
  const found = await personNamed(deps, wanted);
  mustBeAllowed(context, found);
  return deps.deviceLock(`certificates:${nameKey(found.username)}`, async () => {
    await context.mustStillBeIn?.();
    const account = await personNamed(deps, wanted);
    mustBeAllowed(context, account);
    mustBeOpen(deps, account);
    const active = await activeOf(deps, account);
    mustBeFree(account, active, wanted.name);
    if (wanted.own === true && context.principal?.role !== 'admin') mustHaveRoom(account, active);
    return issue(context, account, wanted.name);
  });
}

/** Of a certificate that a person has under that name. */
export function clientUidOf(name: string): string {
  return `holdfast-${name}`;
}

async function issue({ deps, actor }: IssueContext, account: Account, name: string): Promise<IssuedCertificate> {
  const { username } = account;
  const clientUid = clientUidOf(name);
  const detail = { username, name, client_uid: clientUid };
  const keep = deps.settings.KEEP_CLIENT_KEYS;
  return audited(deps, { actor, action: 'certificate.issue', target: username, detail }, async (progress) => {
    const fresh = await makeOrBegin(deps, account, { name, clientUid, keep }, progress);
    return orAbandoned(deps, fresh, progress, async () => {
      const certificate = await recordedCertificate(deps, fresh.made);
      const owner = await deps.identity.accounts.get(account.id);
      mustBeOpen(deps, owner);
      const shown = freshView(deps, { certificate, made: fresh.made, kept: keep }, owner);
      if (keep) return shown;
      return { ...shown, p12_base64: await deps.bundles.withKey(fresh.key, { friendlyName: username }) };
    });
  });
}

/** What may have been signed without its key being kept is left to whoever finishes the intent. */
export async function makeOrBegin(
  deps: MakeCertificateDeps,
  account: Account,
  order: CertificateOrder,
  progress: Progress,
): Promise<FreshCertificate> {
  try {
    return await makeCertificate(deps, account, order);
  } catch (error) {
    if (mayBeDone(error)) progress.begun(MAYBE_SIGNED);
    throw error;
  }
}

const MAYBE_SIGNED =
  'The core may still have signed it. A certificate without a stored key is revoked within minutes; the audit log shows the result.';

/** It is nobody's until all of this is right. */
async function orAbandoned<T>(
  deps: IssueDeps,
  { made: certificate }: FreshCertificate,
  progress: Progress,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(await abandonCertificate(deps, certificate))) progress.begun(MAYBE_SIGNED);
    throw error;
  }
}

const NAME = /^[A-Za-z0-9._-]{1,64}$/;
const OF_SERVICES = 'svc_';
/** In force at once. */
const MAX_OWN = 20;

function mustFit(wanted: WantedCertificate): void {
  const { username, name } = wanted;
  if (!NAME.test(name)) throw invalid('name', 'must be 1 to 64 letters, digits, dots, underscores or hyphens');
  if (nameKey(username).startsWith(OF_SERVICES))
    throw misfit(wanted, 'is a service account: use /api/service-accounts, which issues its only certificate');
}

function misfit({ username, own = false }: WantedCertificate, fault: string): AppError {
  return own ? new AppError('conflict', `${username} ${fault}.`) : invalid('username', fault);
}

async function personNamed(deps: IssueDeps, wanted: WantedCertificate): Promise<Account> {
  const { own = false } = wanted;
  const found = await deps.identity.accounts.named(wanted.username);
  const isFound = found !== undefined && (own ? found.kind === 'person' : !isHidden(found, deps));
  if (!isFound) throw misfit(wanted, 'is not a user; GET /api/users lists them');
  const { username } = found;
  const file = certificateFile({ hash: '', username, clientUid: '' }, { username, name: 'x' });
  if (readCertificateReference(file) !== undefined) return found;
  throw misfit(
    wanted,
    'contains characters other than letters, digits, dots, underscores and hyphens, so no file can be named after it; a device can still enroll',
  );
}

function mustBeOpen({ now }: IssueDeps, account: Account | undefined): asserts account is Account {
  if (account === undefined) throw new AppError('conflict', 'The user was just deleted.');
  const { username, isActive, attributes } = account;
  if (!isActive)
    throw new AppError('conflict', `${username} is inactive. Reactivate the user before you issue a certificate.`);
  const expires = appExpiresOf(attributes);
  if (expires === null || expires * 1000 > now().getTime()) return;
  throw new AppError(
    'conflict',
    `${username} has expired (${isoOfSeconds(expires)}). Give the user another expires_at, or null for never.`,
  );
}

/** One that is revoked, on its way there, or over, leaves its name and its place to the next. */
async function activeOf(deps: IssueDeps, account: Account): Promise<CertificateView[]> {
  const certificates = (await certificatesOf(deps, [account])).get(account.username) ?? [];
  return certificates.filter(({ state }) => state === 'active');
}

function mustBeFree({ username }: Account, active: readonly CertificateView[], name: string): void {
  const taken = active.find((each) => each.name === name);
  if (taken === undefined) return;
  throw new AppError(
    'conflict',
    `${username} already has a certificate ${name} (${taken.file}). Choose another name, or revoke that one.`,
  );
}

/** What devices have enrolled takes no place: a key of it lies nowhere here. */
function mustHaveRoom({ username }: Account, active: readonly CertificateView[]): void {
  const { length: count } = active.filter(({ name }) => name !== null);
  if (count < MAX_OWN) return;
  throw new AppError(
    'conflict',
    `${username} has ${count} valid certificates made here, and the limit for issuing to yourself is ${MAX_OWN}. Revoke one (POST /api/me/certs/{file}/revoke), or ask an administrator to issue it.`,
  );
}

function freshView(
  { now }: IssueDeps,
  fresh: Pick<CertificateFacts, 'certificate' | 'made' | 'kept'>,
  { attributes }: Account,
): CertificateView {
  return toCertificateView({ ...fresh, revocation: undefined, userExpires: appExpiresOf(attributes) }, now());
}
