// Creates an API token for a program. It acts for the person who made it, and stops working when
// that person loses access.

import { AppError } from '@holdfast/kit/app-error';
import { lockoutAddress } from '@holdfast/kit/lockout';
import { audited } from '../audit/audited.ts';
import type { Actor, Audit } from '../audit/port.ts';
import type { ApiToken, Authenticator, SignIns } from './port.ts';
import type { Scope } from './rules.ts';

const MAX_YEARS = 5;

interface TokenContext {
  deps: {
    signIns: Pick<SignIns, 'createToken' | 'epoch' | 'token'>;
    audit: Pick<Audit, 'intend' | 'conclude'>;
    now: () => Date;
  };
  actor: Actor;
}

export interface WantedToken {
  /** The person whom it acts for. */
  owner: string;
  name: string;
  scope: Scope;
  /** ISO 8601. */
  expiresAt: string;
  /**
   * A uuid chosen in advance, so that a form that is sent twice makes one token. Default: random.
   */
  id?: string;
}

/**
 * `text` is never shown again. `invalid` for a bad expiry, `conflict` when a token of that id
 * already exists.
 */
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
  last.setUTCFullYear(last.getUTCFullYear() + MAX_YEARS);
  const expires = Date.parse(expiresAt);
  if (expires > now.getTime() && expires <= last.getTime()) return;
  const message = `must be in the future and at most ${MAX_YEARS} years ahead, not ${expiresAt}`;
  throw new AppError('invalid', `expires_at: ${message}`, { fields: [{ path: 'expires_at', message }] });
}

function madeAlready({ name }: ApiToken): AppError {
  return new AppError(
    'conflict',
    `This form was already sent and created the token ${name}. Its text was shown only then. If you don't have it, revoke ${name} and create another token.`,
  );
}

/** Revokes an API token, whoever made it. It stops working at once. */
interface RevokeContext {
  deps: {
    signIns: Pick<SignIns, 'token' | 'endToken'>;
    audit: Pick<Audit, 'intend' | 'conclude'>;
    authenticator: Pick<Authenticator, 'forget'>;
  };
  actor: Actor;
}

/** Resolves with the revoked token; `not_found` when there is none. */
export async function revokeToken({ deps, actor }: RevokeContext, { id }: { id: string }): Promise<ApiToken> {
  const token = await deps.signIns.token(id);
  if (token === undefined) throw unknown(id);
  const { name, scope, owner, expiresAt } = token;
  const detail = { id: token.id, scope, owner, expires_at: expiresAt };
  await audited(deps, { actor, action: 'token.revoke', target: name, detail }, async () => {
    const ended = await deps.signIns.endToken(token.id);
    await deps.authenticator.forget(owner);
    if (!ended) throw unknown(id);
  });
  return token;
}

function unknown(id: string): AppError {
  return new AppError('not_found', `There is no API token with the id "${id}"; GET /api/tokens lists them.`);
}

/** Ends sessions of a person, with a record in the audit log. In this process they end at once. */
interface EndSessionDeps {
  audit: Pick<Audit, 'intend' | 'conclude'>;
  authenticator: Pick<Authenticator, 'forget'>;
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
    await deps.authenticator.forget(username);
    if (!ended) throw new AppError('not_found', `You have no session with the id "${id}".`);
  });
}

/**
 * The same for a session that may already have ended, such as after a double click: then nothing
 * happens.
 */
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
    await deps.authenticator.forget(username);
    return ended;
  });
}

/** Clears the failures of an address, so that it can sign in again at once. */
export interface ReleaseLockoutDeps {
  authenticator: Pick<Authenticator, 'release'>;
  audit: Pick<Audit, 'intend' | 'conclude'>;
}

/**
 * `address` may be any address of a locked /64. Rejects with `not_found` when it has no failures.
 */
export async function releaseLockout(deps: ReleaseLockoutDeps, actor: Actor, address: string): Promise<void> {
  const target = lockoutAddress(address);
  await audited(deps, { actor, action: 'lockout.release', target }, async () => {
    if (await deps.authenticator.release(target)) return;
    throw new AppError(
      'not_found',
      `${address} has no failed sign-ins. GET /api/lockouts lists the addresses that are locked out.`,
    );
  });
}
