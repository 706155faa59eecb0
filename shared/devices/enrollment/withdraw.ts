// Takes an enrollment back, and finishes one that was begun by a process that died: afterwards no app password for enrollment is
// left of it. What devices have enrolled already stays theirs.

import { z } from 'zod';
import { audited } from '../../audit/audited.ts';
import { concluding, type InterruptedWork } from '../../audit/interrupted-work.ts';
import type { Conclusion } from '../../audit/port.ts';
import type { Account } from '../../identity/port.ts';
import { mustBeAllowed, type PeopleContext, type PeopleDeps, userOf } from '../accounts.ts';
import { dropEnrollment, type EnrollmentDeps, enrollmentKey, keptEnrollment } from './kept.ts';

/** All of them go, and it is no error when there is none. */
export async function withdrawEnrollment(
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
    const deed = { actor, action: 'enrollment.withdraw', target: account.username, detail: { id, identifiers } };
    await audited(deps, deed, () => dropEnrollment(deps, kept));
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
    return { result: 'failed', detail: { error: 'it was broken off; what was made of it is deleted' } };
  });
}
