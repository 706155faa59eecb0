// Revokes an API token, whoever made it: it is dead at once.

import { AppError } from '../domain/app-error.ts';
import type { Actor, Audit } from '../ports/audit.ts';
import type { Doors } from '../ports/doors.ts';
import type { ApiToken, SignIns } from '../ports/sign-ins.ts';
import { audited } from './audited.ts';

interface RevokeContext {
  deps: {
    signIns: Pick<SignIns, 'token' | 'endToken'>;
    audit: Pick<Audit, 'intend' | 'conclude'>;
    doors: Pick<Doors, 'forget'>;
  };
  actor: Actor;
}

/** Resolves with what it was; `not_found` for none. */
export async function revokeToken({ deps, actor }: RevokeContext, { id }: { id: string }): Promise<ApiToken> {
  const token = await deps.signIns.token(id);
  if (token === undefined) throw unknown(id);
  const { name, scope, owner, expiresAt } = token;
  const detail = { id: token.id, scope, owner, expires_at: expiresAt };
  await audited(deps, { actor, action: 'token.revoke', target: name, detail }, async () => {
    const ended = await deps.signIns.endToken(token.id);
    await deps.doors.forget(owner);
    if (!ended) throw unknown(id);
  });
  return token;
}

function unknown(id: string): AppError {
  return new AppError('not_found', `There is no API token with the id "${id}"; GET /api/tokens lists them.`);
}
