// Ends sessions of a person, told in the audit log; in this process they are dead at once.

import { AppError } from '../domain/app-error.ts';
import type { Actor, Audit } from '../ports/audit.ts';
import type { Doors } from '../ports/doors.ts';
import type { SignIns } from '../ports/sign-ins.ts';
import { audited } from './audited.ts';

interface EndSessionDeps {
  audit: Pick<Audit, 'intend' | 'conclude'>;
  doors: Pick<Doors, 'forget'>;
  signIns: Pick<SignIns, 'endSession' | 'endSessions'>;
}

/** Rejects with `not_found` when the person has no such session. */
export async function endSession(
  deps: EndSessionDeps,
  actor: Actor,
  { username, id }: { username: string; id: string },
): Promise<void> {
  await audited(deps, { actor, action: 'session.end', target: username, detail: { id } }, async () => {
    const ended = await deps.signIns.endSession(username, id);
    await deps.doors.forget(username);
    if (!ended) throw new AppError('not_found', `You have no session with the id "${id}".`);
  });
}

/** The same for a session that may have ended meanwhile, such as by a second click: then there is nothing to do. */
export async function endSessionUnlessEnded(...what: Parameters<typeof endSession>): Promise<void> {
  try {
    await endSession(...what);
  } catch (error) {
    if (!(error instanceof AppError && error.code === 'not_found')) throw error;
  }
}

/** Ends all of them; resolves with their number. */
export async function endSessions(deps: EndSessionDeps, actor: Actor, username: string): Promise<number> {
  return audited(deps, { actor, action: 'session.end', target: username, detail: { all: true } }, async () => {
    const ended = await deps.signIns.endSessions(username);
    await deps.doors.forget(username);
    return ended;
  });
}
