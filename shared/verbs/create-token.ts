// Makes an API token for a program. It acts for the person who made it, and ends with that person's right to come in.

import { AppError } from '../domain/app-error.ts';
import type { Scope } from '../domain/principal.ts';
import type { Actor, Audit } from '../ports/audit.ts';
import type { ApiToken, SignIns } from '../ports/sign-ins.ts';
import { audited } from './audited.ts';

const MOST_YEARS = 5;

interface TokenContext {
  deps: {
    signIns: Pick<SignIns, 'createToken' | 'epoch' | 'token'>;
    audit: Pick<Audit, 'intend' | 'conclude'>;
    now: () => Date;
  };
  actor: Actor;
}

export interface WantedToken {
  /** Whom it acts for. */
  owner: string;
  name: string;
  scope: Scope;
  /** ISO 8601. */
  expiresAt: string;
  /** A uuid that was chosen before, so that what is sent twice makes one. Default: any. */
  id?: string;
}

/** `text` is shown nowhere again. `invalid` for a bad expiry, `conflict` where a token of that id is there already. */
export async function createToken(
  { deps, actor }: TokenContext,
  { owner, name, scope, expiresAt, id = crypto.randomUUID() }: WantedToken,
): Promise<ApiToken & { text: string }> {
  requireLifetime(expiresAt, deps.now());
  const [epoch, former] = await Promise.all([deps.signIns.epoch(owner), deps.signIns.token(id)]);
  if (former !== undefined) throw madeAlready(former);
  const detail = { id, scope, owner, expires_at: expiresAt };
  return audited(deps, { actor, action: 'token.create', target: name, detail }, () =>
    deps.signIns.createToken({ id, epoch, name, scope, owner, expiresAt }),
  );
}

function requireLifetime(expiresAt: string, now: Date): void {
  const last = new Date(now);
  last.setUTCFullYear(last.getUTCFullYear() + MOST_YEARS);
  const expires = Date.parse(expiresAt);
  if (expires > now.getTime() && expires <= last.getTime()) return;
  const message = `must be in the future and at most ${MOST_YEARS} years ahead, not ${expiresAt}`;
  throw new AppError('invalid', `expires_at: ${message}`, { fields: [{ path: 'expires_at', message }] });
}

function madeAlready({ name }: ApiToken): AppError {
  return new AppError(
    'conflict',
    `This form was sent already, and has made the token ${name}. Its text was shown then and is not shown again: if you have not got it, revoke ${name} and make another one.`,
  );
}
