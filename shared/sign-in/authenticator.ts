// Authenticates with state in this process: lockouts, which all processes count together, recent
// sign-ins and group memberships. Node only; workerd calls its host.

import { AppError } from '@holdfast/kit/app-error';
import { limitAttempts } from '@holdfast/kit/concurrency';
import type { Directory, DirectoryEntry } from '@holdfast/kit/directory';
import { lockoutAddress } from '@holdfast/kit/lockout';
import { nameKey, WEBADMIN } from '@holdfast/kit/names';
import { PasswordQueue } from '@holdfast/kit/password-queue';
import { sameText, type Secret } from '@holdfast/kit/secret';
import type { Audit } from '../audit/port.ts';
import { type FailureTable, Lockouts } from './lockouts.ts';
import type { Entrance, LockedAddress, PasswordAttempt, FastAuthenticator, SignedText, SignIns } from './port.ts';
import { RecentSignIns } from './recent-sign-ins.ts';
import {
  auditedName,
  BREAK_GLASS,
  mayExist,
  METRICS,
  principalOf,
  type Principal,
  type RoleGroups,
  type SignedInBy,
  withoutRights,
} from './rules.ts';

export interface AuthenticatorOptions {
  directory: Pick<Directory, 'signIn' | 'find'>;
  signIns: Pick<SignIns, 'recognize' | 'epoch'>;
  audit: Pick<Audit, 'note'>;
  /** Undefined: this process counts failures alone. */
  failures: FailureTable | undefined;
  roles: RoleGroups;
  /** From the settings, for emergencies. */
  webadminPassword: Secret | undefined;
  metricsToken: Secret | undefined;
  /** A monotonic clock in milliseconds, and the time of day. */
  steadyMs: () => number;
  wallMs: () => number;
  /** The minimum duration of a refusal; 0 in tests. */
  minRefusalMs?: number;
}

/** The resource that the lockouts protect, as displayed to people. */
const DOOR = 'http';
const TOO_MANY_AT_ONCE = 'Too many sign-ins at once. Try again in a moment.';
const BASIC = 'Basic ';
const BEARER = 'Bearer ';

export class GuardedAuthenticator implements FastAuthenticator {
  readonly #options: AuthenticatorOptions;
  readonly #lockouts: Lockouts;
  readonly #queue: PasswordQueue;
  readonly #inTurn = limitAttempts((address) => this.#lockouts.left(address));
  readonly #recent: RecentSignIns;
  readonly #made = new WeakMap<SignedText | DirectoryEntry, Principal>();

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
    this.#lockouts = new Lockouts({ table: options.failures, steadyMs: options.steadyMs });
    this.#queue = new PasswordQueue(options);
    this.#recent = new RecentSignIns(options);
  }

  lockedFor(address: string): number | undefined {
    if (this.#lockouts.isFree()) return undefined;
    const until = this.#lockouts.check(lockoutAddress(address)).lockedUntilMs;
    if (until === undefined) return undefined;
    // Another process may have released it.
    void this.#lockouts.current();
    return Math.max(1, Math.ceil((until - this.#options.steadyMs()) / 1000));
  }

  #locked(attempt: PasswordAttempt): Entrance | undefined {
    const retryAfterSeconds = this.lockedFor(attempt.address);
    if (retryAfterSeconds === undefined) return undefined;
    this.noteLocked(attempt);
    return { kind: 'locked', retryAfterSeconds };
  }

  noteLocked(attempt: PasswordAttempt): void {
    this.#note(attempt, 'sign-in.locked', 'denied');
  }

  #note(attempt: PasswordAttempt, action: string, result: 'denied' | 'ok'): void {
    const { address, requestId } = attempt;
    const username = auditedName(attempt.username);
    void this.#options.audit.note({ actor: { username, address, requestId }, action, target: username }, result);
  }

  async password(attempt: PasswordAttempt): Promise<Entrance> {
    // Together, so that a database that hangs delays it once.
    await Promise.all([this.#lockouts.current(), this.#recent.prepare(attempt)]);
    const refusal = this.#locked(attempt);
    if (refusal !== undefined) return refusal;
    const entrance =
      (await this.#remembered(attempt)) ??
      (await this.#inTurn(
        lockoutAddress(attempt.address),
        async () => this.#locked(attempt) ?? (await this.#remembered(attempt)) ?? (await this.#judge(attempt)),
      ));
    if (entrance === undefined) throw new AppError('unavailable', TOO_MANY_AT_ONCE);
    return entrance;
  }

  async #remembered(attempt: PasswordAttempt): Promise<Entrance | undefined> {
    const entry = attempt.base === 'web' ? await this.#recent.byPassword(attempt) : undefined;
    return entry && (this.#locked(attempt) ?? { kind: 'in', principal: this.#byPassword(entry) });
  }

  async #judge(attempt: PasswordAttempt): Promise<Entrance> {
    if (!mayExist(attempt.username)) return this.#refused(attempt);
    const remember = attempt.base === 'web' ? await this.#recent.beforePassword(attempt) : undefined;
    let requested: { found: DirectoryEntry | undefined } | 'busy';
    try {
      const { base, username, address } = attempt;
      requested = await this.#queue.ask({ address: lockoutAddress(address), username }, () =>
        this.#options.directory.signIn(base, username, attempt.password),
      );
    } catch (error) {
      if (error instanceof AppError && error.code === 'unavailable') return this.#emergency(attempt, error);
      throw error;
    }
    if (requested === 'busy') throw new AppError('unavailable', TOO_MANY_AT_ONCE, { retryAfterSeconds: 5 });
    const { found: entry } = requested;
    if (entry === undefined) return this.#refused(attempt);
    await this.#lockouts.current();
    const locked = this.#locked(attempt);
    if (locked !== undefined) return locked;
    remember?.(entry);
    return { kind: 'in', principal: attempt.base === 'web' ? this.#byPassword(entry) : withoutRights(entry) };
  }

  async #refused(attempt: PasswordAttempt): Promise<Entrance> {
    return (await this.#failed(attempt)) ?? { kind: 'refused' };
  }

  /** The answer if the address was locked elsewhere while this password was checked. */
  async #failed(attempt: PasswordAttempt): Promise<Entrance | undefined> {
    const counted = await this.#lockouts.failed(lockoutAddress(attempt.address));
    const locked = counted ? undefined : this.#locked(attempt);
    if (locked === undefined) this.#note(attempt, 'sign-in', 'denied');
    return locked;
  }

  /**
   * A wrong password is still a guess and counts; the response explains the problem with the
   * directory.
   */
  async #emergency(attempt: PasswordAttempt, error: AppError): Promise<Entrance> {
    const { webadminPassword: password } = this.#options;
    if (password === undefined || attempt.base !== 'web' || nameKey(attempt.username) !== WEBADMIN) throw error;
    if (!sameText(attempt.password, password.reveal())) {
      const locked = await this.#failed(attempt);
      if (locked !== undefined) return locked;
      throw error;
    }
    this.#note(attempt, 'sign-in.break-glass', 'ok');
    return { kind: 'in', principal: BREAK_GLASS };
  }

  #byPassword(entry: DirectoryEntry): Principal {
    return principalOf(entry, this.#options.roles, { kind: 'password' });
  }

  /** Created once per cached entry. */
  #madeOf(remembered: SignedText | DirectoryEntry, entry: DirectoryEntry, by: SignedInBy): Principal {
    const known = this.#made.get(remembered);
    if (known !== undefined && known.groups === entry.groups) return known;
    const principal = principalOf(entry, this.#options.roles, by);
    this.#made.set(remembered, principal);
    return principal;
  }

  async #bySigned(kind: SignedText['kind'], text: string): Promise<Principal | undefined> {
    const signed = await this.#recent.signed(kind, text);
    const entry = signed && (await this.#recent.person(signed.username));
    if (signed === undefined || entry?.isActive !== true) return undefined;
    const { id, scope = 'read' } = signed;
    return principalOf(entry, this.#options.roles, kind === 'session' ? { kind, id } : { kind, id, scope });
  }

  #isMetricsToken(token: string): boolean {
    return this.#options.metricsToken !== undefined && sameText(token, this.#options.metricsToken.reveal());
  }

  async session(cookie: string): Promise<Principal | undefined> {
    return this.#bySigned('session', cookie);
  }

  async bearer(token: string): Promise<Principal | undefined> {
    return this.#isMetricsToken(token) ? METRICS : this.#bySigned('token', token);
  }

  forget(username: string): void {
    this.#recent.forget(username);
  }

  known(authorization: string, address: string): Principal | undefined {
    if (authorization.startsWith(BEARER))
      return this.#isMetricsToken(authorization.slice(BEARER.length)) ? METRICS : undefined;
    if (!authorization.startsWith(BASIC) || !this.#lockouts.isCurrent()) return undefined;
    if (this.lockedFor(address) !== undefined) return undefined;
    const entry = this.#recent.byHeader(authorization.slice(BASIC.length));
    return entry && this.#madeOf(entry, entry, { kind: 'password' });
  }

  knownSession(cookie: string): Principal | undefined {
    const { signed, entry } = this.#recent.knownSigned('session', cookie) ?? {};
    if (signed === undefined || entry?.isActive !== true) return undefined;
    return this.#madeOf(signed, entry, { kind: 'session', id: signed.id });
  }

  async lockouts(): Promise<LockedAddress[]> {
    await this.#lockouts.current();
    const now = this.#options.steadyMs();
    return this.#lockouts.list().map(({ key, lockedUntilMs, failures }) => ({
      address: key,
      door: DOOR,
      failures,
      locked_until: new Date(this.#options.wallMs() + lockedUntilMs - now).toISOString(),
    }));
  }

  async release(address: string): Promise<boolean> {
    return this.#lockouts.release(lockoutAddress(address));
  }
}
