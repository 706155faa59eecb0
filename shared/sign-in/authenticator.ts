// The doors, with their memory in this process: the lock-out, who came in a moment ago, and who is in which group. Node only;
// workerd asks its host.

import { AppError } from '@holdfast/kit/app-error';
import { limitAttempts } from '@holdfast/kit/concurrency';
import type { Directory, DirectoryEntry } from '@holdfast/kit/directory';
import { createLockout, lockoutAddress } from '@holdfast/kit/lockout';
import { nameKey, WEBADMIN } from '@holdfast/kit/names';
import { PasswordQueue } from '@holdfast/kit/password-queue';
import { sameText, type Secret } from '@holdfast/kit/secret';
import type { Audit } from '../audit/port.ts';
import type { Entrance, PasswordAttempt, QuickDoors, SignedText, SignIns } from './port.ts';
import { type Principal, type RoleGroups, roleOf, type SignedInBy } from './principal.ts';
import { recentSignIns } from './recent-sign-ins.ts';

export interface GuardedDoorsOptions {
  directory: Pick<Directory, 'signIn' | 'find'>;
  signIns: Pick<SignIns, 'recognise' | 'epoch'>;
  audit: Pick<Audit, 'note'>;
  roles: RoleGroups;
  /** Of the settings: for the emergency. */
  webadminPassword: Secret | undefined;
  metricsToken: Secret | undefined;
  /** Milliseconds that never go back, and the time of day. */
  steadyMs: () => number;
  wallMs: () => number;
  /** How long a refusal takes at least; 0 in tests. */
  leastRefusalMs?: number;
}

/** How all doors of this process are called together. */
const DOOR = 'http';
/** No directory has a longer name; what is longer, or has control characters, is wrong without asking. */
const LONGEST_USERNAME = 255;
const LONGEST_AUDITED = 100;
const USUAL = /^[\w.-]{1,64}$/;
const CONTROL = /\p{Cc}/u;
const EVERY_CONTROL = /\p{Cc}/gu;
const TOO_MANY_AT_ONCE = 'Too many sign-ins at once. Try again in a moment.';
const BASIC = 'Basic ';
const BEARER = 'Bearer ';
const METRICS: Principal = { username: 'metrics', role: 'viewer', groups: [], by: { kind: 'metrics' } };

export function guardedDoors(options: GuardedDoorsOptions): QuickDoors {
  const { directory, signIns, audit, roles, steadyMs, wallMs } = options;
  const lockout = createLockout();
  const queue = new PasswordQueue({ steadyMs, leastRefusalMs: options.leastRefusalMs });
  const inTurn = limitAttempts((address) => lockout.left(address, steadyMs()));
  const recent = recentSignIns({ directory, signIns, steadyMs, wallMs });
  const made = new WeakMap<SignedText | DirectoryEntry, Principal>();

  function lockedFor(address: string): number | undefined {
    if (lockout.isFree()) return undefined;
    const until = lockout.check(lockoutAddress(address), steadyMs()).lockedUntilMs;
    return until === undefined ? undefined : Math.max(1, Math.ceil((until - steadyMs()) / 1000));
  }

  function locked(attempt: PasswordAttempt): Entrance | undefined {
    const retryAfterSeconds = lockedFor(attempt.address);
    if (retryAfterSeconds === undefined) return undefined;
    noteLocked(attempt);
    return { kind: 'locked', retryAfterSeconds };
  }

  function noteLocked(attempt: PasswordAttempt): void {
    note(attempt, 'sign-in.locked', 'denied');
  }

  function note(attempt: PasswordAttempt, action: string, result: 'denied' | 'ok'): void {
    const { address, requestId } = attempt;
    const username = auditedName(attempt.username);
    void audit.note({ actor: { username, address, requestId }, action, target: username }, result);
  }

  async function password(attempt: PasswordAttempt): Promise<Entrance> {
    const refusal = locked(attempt);
    if (refusal !== undefined) return refusal;
    const entrance =
      (await remembered(attempt)) ??
      (await inTurn(
        lockoutAddress(attempt.address),
        async () => locked(attempt) ?? (await remembered(attempt)) ?? (await judge(attempt)),
      ));
    if (entrance === undefined) throw new AppError('unavailable', TOO_MANY_AT_ONCE);
    return entrance;
  }

  async function remembered(attempt: PasswordAttempt): Promise<Entrance | undefined> {
    const entry = attempt.base === 'web' ? await recent.byPassword(attempt) : undefined;
    return entry && (locked(attempt) ?? { kind: 'in', principal: byPassword(entry) });
  }

  async function judge(attempt: PasswordAttempt): Promise<Entrance> {
    if (!mayExist(attempt.username)) return refused(attempt);
    const remember = attempt.base === 'web' ? await recent.beforePassword(attempt) : undefined;
    let asked: { found: DirectoryEntry | undefined } | 'busy';
    try {
      const { base, username, address } = attempt;
      asked = await queue.ask({ address: lockoutAddress(address), username }, () =>
        directory.signIn(base, username, attempt.password),
      );
    } catch (error) {
      if (error instanceof AppError && error.code === 'unavailable') return emergency(attempt, error);
      throw error;
    }
    if (asked === 'busy') throw new AppError('unavailable', TOO_MANY_AT_ONCE, { retryAfterSeconds: 5 });
    const { found: entry } = asked;
    if (entry === undefined) return refused(attempt);
    remember?.(entry);
    return { kind: 'in', principal: attempt.base === 'web' ? byPassword(entry) : withoutRights(entry) };
  }

  function refused(attempt: PasswordAttempt): Entrance {
    failed(attempt);
    return { kind: 'refused' };
  }

  function failed(attempt: PasswordAttempt): void {
    lockout.failed(lockoutAddress(attempt.address), steadyMs());
    note(attempt, 'sign-in', 'denied');
  }

  /** A wrong password is still a guess, and counts; the answer says what is wrong with the directory. */
  function emergency(attempt: PasswordAttempt, error: AppError): Entrance {
    const { webadminPassword: password } = options;
    if (password === undefined || attempt.base !== 'web' || nameKey(attempt.username) !== WEBADMIN) throw error;
    if (!sameText(attempt.password, password.reveal())) {
      failed(attempt);
      throw error;
    }
    note(attempt, 'sign-in.break-glass', 'ok');
    const by = { kind: 'break-glass' } as const;
    return { kind: 'in', principal: { username: WEBADMIN, role: 'viewer', groups: [], by } };
  }

  function principalOf({ username, groups }: DirectoryEntry, by: SignedInBy): Principal {
    return { username, role: roleOf(groups, roles), groups, by };
  }

  const byPassword = (entry: DirectoryEntry): Principal => principalOf(entry, { kind: 'password' });

  /** Made once for what is remembered. */
  function madeOf(remembered: SignedText | DirectoryEntry, entry: DirectoryEntry, by: SignedInBy): Principal {
    const known = made.get(remembered);
    if (known !== undefined && known.groups === entry.groups) return known;
    const principal = principalOf(entry, by);
    made.set(remembered, principal);
    return principal;
  }

  async function bySigned(kind: SignedText['kind'], text: string): Promise<Principal | undefined> {
    const signed = await recent.signed(kind, text);
    const entry = signed && (await recent.person(signed.username));
    if (signed === undefined || entry?.isActive !== true) return undefined;
    const { id, scope = 'read' } = signed;
    return principalOf(entry, kind === 'session' ? { kind, id } : { kind, id, scope });
  }

  function isMetricsToken(token: string): boolean {
    return options.metricsToken !== undefined && sameText(token, options.metricsToken.reveal());
  }

  return {
    password,
    lockedFor,
    noteLocked,
    session: (cookie) => bySigned('session', cookie),
    bearer: async (token) => (isMetricsToken(token) ? METRICS : bySigned('token', token)),
    forget: (username) => recent.forget(username),

    known(authorization, address) {
      if (authorization.startsWith(BEARER))
        return isMetricsToken(authorization.slice(BEARER.length)) ? METRICS : undefined;
      if (!authorization.startsWith(BASIC) || lockedFor(address) !== undefined) return undefined;
      const entry = recent.byHeader(authorization.slice(BASIC.length));
      return entry && madeOf(entry, entry, { kind: 'password' });
    },

    knownSession(cookie) {
      const { signed, entry } = recent.knownSigned('session', cookie) ?? {};
      if (signed === undefined || entry?.isActive !== true) return undefined;
      return madeOf(signed, entry, { kind: 'session', id: signed.id });
    },

    lockouts() {
      const now = steadyMs();
      return lockout.list(now).map(({ key, lockedUntilMs, failures }) => ({
        address: key,
        door: DOOR,
        failures,
        locked_until: new Date(wallMs() + lockedUntilMs - now).toISOString(),
      }));
    },

    release: (address) => lockout.release(lockoutAddress(address)),
  };
}

/** An app password opens nothing of ours. */
function withoutRights({ username }: DirectoryEntry): Principal {
  return { username, role: 'none', groups: [], by: { kind: 'password' } };
}

function mayExist(username: string): boolean {
  return username.length <= LONGEST_USERNAME && !CONTROL.test(username);
}

/** What somebody wrote where a name belongs, fit to be kept. */
function auditedName(username: string): string {
  if (USUAL.test(username)) return username;
  return username.slice(0, LONGEST_AUDITED).replaceAll(EVERY_CONTROL, '\uFFFD').toWellFormed();
}
