// Issues a password to enroll devices with: an app password of the provider that expires. A valid
// one is returned again, so there are never two. Its row is written before it is made, so no
// working password is unknown.

import { AppError } from '@holdfast/kit/app-error';
import { MINUTE_MS } from '@holdfast/kit/time';
import { audited, mayBeDone, type Progress } from '../../audit/audited.ts';
import type { Audit } from '../../audit/port.ts';
import type { AuthorityCertificate } from '../../core/port.ts';
import type { Account } from '../../identity/port.ts';
import { appExpiresOf, isoOfSeconds } from '../../identity/rules.ts';
import { mustBeAllowed, type PeopleContext, userOf } from '../accounts.ts';
import type { EnrollmentToken } from '../port.ts';
import { dropEnrollment, type EnrollmentDeps, enrollmentKey, keptEnrollment, newIdentifier } from './kept.ts';

export interface EnrollmentContext extends PeopleContext {
  deps: EnrollmentDeps & {
    audit: Pick<Audit, 'intend' | 'conclude' | 'note'>;
    settings: { ENROLLMENT_TTL_MINUTES: number };
  };
}

export interface IssuedEnrollment {
  token: EnrollmentToken;
  /** The app password itself. */
  key: string;
  authority: AuthorityCertificate;
}

/** What is about to end is made anew: somebody has to scan it first. */
const MIN_LEFT_MS = 60_000;

/**
 * `conflict` for somebody who may not sign in, `unavailable` while the CA of the core cannot be
 * read.
 */
export async function issueEnrollment(context: EnrollmentContext, account: Account): Promise<IssuedEnrollment> {
  const { deps } = context;
  const { id } = account;
  mustBeFit(context, account);
  return deps.deviceLock(enrollmentKey(id), async () => {
    await context.mustStillBeIn?.();
    const latest = await userOf(deps, id);
    mustBeFit(context, latest);
    const authority = await deps.coreAuthority.certificate();
    return (await givenAgain(context, latest, authority)) ?? reissue(context, latest, authority);
  });
}

/**
 * The one that is valid, to be shown again; undefined when there is none. Nothing is made, and that
 * it was shown is audited.
 */
export async function readEnrollment(
  context: EnrollmentContext,
  account: Account,
): Promise<IssuedEnrollment | undefined> {
  mustBeAllowed(context, account);
  return givenAgain(context, account, await context.deps.coreAuthority.certificate(), 0);
}

function mustBeFit(context: EnrollmentContext, account: Account): void {
  mustBeAllowed(context, account);
  const { username, isActive, attributes } = account;
  if (!isActive)
    throw new AppError('conflict', `${username} is not active, so nothing was issued. Reactivate the user first.`);
  const expires = appExpiresOf(attributes);
  if (expires === null || expires * 1000 > context.deps.now().getTime()) return;
  throw new AppError(
    'conflict',
    `${username} has expired (${isoOfSeconds(expires)}), so nothing was issued. Give a new expires_at, or null for never.`,
  );
}

/** When an enrollment of this account that begins now ends. */
function endOf({ deps }: EnrollmentContext, { attributes }: Account): number {
  const expires = appExpiresOf(attributes);
  const end = deps.now().getTime() + deps.settings.ENROLLMENT_TTL_MINUTES * MINUTE_MS;
  return expires === null ? end : Math.min(end, expires * 1000);
}

async function givenAgain(
  context: EnrollmentContext,
  account: Account,
  authority: AuthorityCertificate,
  minLeftMs = MIN_LEFT_MS,
): Promise<IssuedEnrollment | undefined> {
  const { deps, actor } = context;
  const { tokens } = await keptEnrollment(deps, account);
  const token = tokens.find((each) => isGood(each, account, authority, { now: deps.now(), minLeftMs }));
  if (token === undefined) return undefined;
  const key = await deps.identity.appPasswords.reveal(token.identifier);
  if (key === undefined) return undefined;
  const { identifier } = token;
  await deps.audit.note({ actor, action: 'enrollment.show', target: account.username }, 'ok', { identifier });
  return { token, key, authority };
}

function isGood(
  token: EnrollmentToken,
  account: Account,
  authority: AuthorityCertificate,
  { now, minLeftMs }: { now: Date; minLeftMs: number },
): boolean {
  const [begin, end] = [Date.parse(token.createdAt), Date.parse(token.expiresAt)];
  const userEnd = appExpiresOf(account.attributes);
  return (
    token.caFingerprint === authority.fingerprint &&
    end - now.getTime() >= Math.min(minLeftMs, (end - begin) / 5) &&
    end > now.getTime() &&
    (userEnd === null || end <= userEnd * 1000)
  );
}

async function reissue(
  context: EnrollmentContext,
  account: Account,
  authority: AuthorityCertificate,
): Promise<IssuedEnrollment> {
  const { deps, actor } = context;
  const { id, username } = account;
  const token: EnrollmentToken = {
    identifier: newIdentifier(id),
    accountId: id,
    username,
    caFingerprint: authority.fingerprint,
    createdAt: deps.now().toISOString(),
    expiresAt: new Date(endOf(context, account)).toISOString(),
  };
  const { identifier, expiresAt } = token;
  const detail = { id, identifier, expires_at: expiresAt, ca_fingerprint: authority.fingerprint };
  return audited(deps, { actor, action: 'enrollment.issue', target: username, detail }, async (progress) => {
    await dropEnrollment(deps, await keptEnrollment(deps, account));
    await deps.enrollmentTokens.add(token);
    const key = await orNothing(deps, token, progress, () => madeFor(context, token));
    return { token, key, authority };
  });
}

/** Looks again afterwards: whoever is closed before that has taken no password of this one away. */
async function madeFor(context: EnrollmentContext, token: EnrollmentToken): Promise<string> {
  const { deps } = context;
  const { identifier, accountId, username, expiresAt } = token;
  const { key } = await deps.identity.appPasswords.create({
    identifier,
    accountId,
    description: `Holdfast: ${username} enrolls devices`,
    expiresAt: new Date(expiresAt),
  });
  const account = await deps.identity.accounts.get(accountId);
  if (account === undefined) throw new AppError('not_found', 'The user was just deleted.');
  mustBeFit(context, account);
  return key;
}

const MAYBE_THERE =
  'An app password may still have been created. It was never shown, and is deleted within minutes once the provider answers. Then issue a new one.';

/**
 * When `work` fails, no app password and no row is left; a job sees to it where the provider may
 * still be making one.
 */
async function orNothing<T>(
  deps: EnrollmentDeps,
  { identifier }: EnrollmentToken,
  progress: Progress,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (mayBeDone(error)) progress.begun(MAYBE_THERE);
    try {
      // The row first: without it nobody is given this password again.
      await deps.enrollmentTokens.remove(identifier);
      await deps.identity.appPasswords.delete(identifier);
    } catch {
      progress.begun(MAYBE_THERE);
    }
    throw error;
  }
}
