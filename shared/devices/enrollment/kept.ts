// Reads the current enrollment of an account from our own rows and the provider's app passwords,
// and cancels it: then no app password for enrollment is left. Enrolled devices keep their
// certificates.

import { z } from 'zod';
import { audited } from '../../audit/audited.ts';
import { concluding, type InterruptedWork } from '../../audit/interrupted-work.ts';
import type { Conclusion } from '../../audit/port.ts';
import type { CoreAuthority } from '../../core/port.ts';
import type { Account, AppPassword } from '../../identity/port.ts';
import { mustBeAllowed, type PeopleContext, type PeopleDeps, userOf } from '../accounts.ts';
import type { EnrollmentToken, EnrollmentTokens } from '../port.ts';

export interface EnrollmentDeps extends PeopleDeps {
  enrollmentTokens: EnrollmentTokens;
  coreAuthority: CoreAuthority;
}

export interface KeptEnrollment {
  /**
   * Those whose app password is at the provider, newest first, ending when the first of both says
   * so.
   */
  tokens: EnrollmentToken[];
  /** Whose app password is gone, or was never made. */
  rowsAlone: EnrollmentToken[];
  /** App passwords of ours that have no row. */
  passwordsAlone: AppPassword[];
}

/** One at a time makes and deletes the app passwords for the enrollment of an account. */
export function enrollmentKey(accountId: number): string {
  return `enrollment:${accountId}`;
}

export function newIdentifier(accountId: number): string {
  return `${prefixOf(accountId)}${crypto.randomUUID()}`;
}

/** The uuid in an identifier: the same token gives the same text. */
export function registrationIdOf(identifier: string): string {
  return identifier.slice(-36);
}

export async function keptEnrollment(
  { enrollmentTokens, identity }: Pick<EnrollmentDeps, 'enrollmentTokens' | 'identity'>,
  { id, username }: Pick<Account, 'id' | 'username'>,
): Promise<KeptEnrollment> {
  // A row is older than its password: read after it, none can seem to be missing.
  const passwords = await identity.appPasswords.list(username);
  const rows = await enrollmentTokens.of(id);
  const byIdentifier = new Map(passwords.map((each) => [each.identifier, each]));
  const known = new Set(rows.map(({ identifier }) => identifier));
  return {
    tokens: rows.flatMap((row) => {
      const password = byIdentifier.get(row.identifier);
      return password === undefined ? [] : [{ ...row, expiresAt: earlier(row.expiresAt, password.expiresAt) }];
    }),
    rowsAlone: rows.filter(({ identifier }) => !byIdentifier.has(identifier)),
    passwordsAlone: passwords.filter(({ identifier }) => identifier.startsWith(prefixOf(id)) && !known.has(identifier)),
  };
}

/** Everything of it goes, app passwords first. To be called with the key. */
export async function dropEnrollment(
  { enrollmentTokens, identity }: Pick<EnrollmentDeps, 'enrollmentTokens' | 'identity'>,
  { tokens, rowsAlone, passwordsAlone }: KeptEnrollment,
): Promise<void> {
  for (const { identifier } of [...tokens, ...passwordsAlone]) await identity.appPasswords.delete(identifier);
  for (const { identifier } of [...tokens, ...rowsAlone]) await enrollmentTokens.remove(identifier);
}

function prefixOf(accountId: number): string {
  return `enroll-${accountId}-`;
}

function earlier(one: string, other: string | null): string {
  return other !== null && Date.parse(other) < Date.parse(one) ? other : one;
}

/** All of them go, and it is no error when there is none. */
export async function cancelEnrollment(
  context: PeopleContext & { deps: EnrollmentDeps },
  { id }: Pick<Account, 'id'>,
): Promise<void> {
  const { deps, actor } = context;
  mustBeAllowed(context, await userOf(deps, id));
  await deps.deviceLock(enrollmentKey(id), async () => {
    await context.mustStillBeIn?.();
    const account = await userOf(deps, id);
    mustBeAllowed(context, account);
    const kept = await keptEnrollment(deps, account);
    const identifiers = [...kept.tokens, ...kept.passwordsAlone].map(({ identifier }) => identifier);
    const auditedAction = {
      actor,
      action: 'enrollment.withdraw',
      target: account.username,
      detail: { id, identifiers },
    };
    await audited(deps, auditedAction, () => dropEnrollment(deps, kept));
  });
}

const issueSchema = z.object({ id: z.int(), identifier: z.string() });

/** Nobody may have seen the password of an enrollment without outcome, so it goes. */
export const INTERRUPTED_ENROLLMENT: InterruptedWork<EnrollmentDeps & Pick<PeopleDeps, 'now'>> = {
  actions: ['enrollment.issue'],
  finish: concluding((deps, _intent, detail) => finishEnrollment(deps, detail)),
};

async function finishEnrollment(deps: EnrollmentDeps, detail: unknown): Promise<Conclusion> {
  const { id, identifier } = issueSchema.parse(detail);
  return deps.deviceLock(enrollmentKey(id), async () => {
    await deps.identity.appPasswords.delete(identifier);
    await deps.enrollmentTokens.remove(identifier);
    return { result: 'failed', detail: { error: 'it was interrupted; its remains are deleted' } };
  });
}
