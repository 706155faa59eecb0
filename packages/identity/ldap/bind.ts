// Handles simple binds: limits, order, and answers that reveal nothing.

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { limitAttempts } from '@holdfast/kit/concurrency';
import type { Place } from '@holdfast/kit/fair-queue';
import { createLockout, lockoutAddress } from '@holdfast/kit/lockout';
import { clientStatus, RefusalPace } from '@holdfast/kit/password-queue';
import type { Secret } from '@holdfast/kit/secret';
import { withFallback } from '@holdfast/kit/timeout';
import { nameKey } from '../model/names.ts';
import { MAX_PASSWORD_BYTES } from '../model/password-hash.ts';
import type { CheckPassword } from '../model/roster.ts';
import type { LdapEvents } from './events.ts';
import type { LdapLimits } from './limits.ts';
import type { BindRequest } from './message.ts';
import { RESULT, type Result } from './result.ts';
import { placeOf, readName, type Tree, treeOf } from './tree.ts';

/**
 * A shorter one is not recognized: who is locked out could find it by the time that answers take.
 */
const MIN_CHARACTERS = 20;

/**
 * True for exactly the password of the settings, without a hash. It lets nobody in: the password is
 * judged all the same.
 */
export function knownPassword(known: Secret | undefined): (password: string) => boolean {
  if (known === undefined || known.reveal().length < MIN_CHARACTERS) return () => false;
  const secret = randomBytes(32);
  const digestOf = (password: string): Buffer => createHmac('sha256', secret).update(password).digest();
  const digest = digestOf(known.reveal());
  return (password) => timingSafeEqual(digest, digestOf(password));
}

export interface Identity {
  tree: Tree;
  username: string;
  /** Of the account that has bound: another one may get its name. */
  pk: number;
}

/** What a connection is, as far as binds care. */
export interface Binder {
  readonly address: string;
  /** Nobody waits for the answer any more. */
  readonly gone: boolean;
  /**
   * The service account has bound on this connection: its binds are made for others, and neither
   * count nor are locked out.
   */
  vouched: boolean;
  /** Its answer is only held back. */
  heldBack: boolean;
  identity: Identity | undefined;
}

export interface BindDeps {
  trees: readonly Tree[];
  checkPassword: CheckPassword;
  searchAccount: string;
  /** Its password of the settings. */
  searchPassword: Secret | undefined;
  limits: Pick<LdapLimits, 'bindMs' | 'heldBackMs' | 'minRefusalMs'>;
  events: LdapEvents;
  now: () => number;
}

/**
 * So many that guesses at made-up names cannot push out the count of a real one within the five
 * minutes.
 */
const KEYS = 100_000;

const REFUSED: Result = { code: RESULT.invalidCredentials };
const LOCKED: Result = { ...REFUSED };
const BUSY: Result = { code: RESULT.busy, text: 'too many sign-ins at once' };
const CROWDED: Result = { ...BUSY };
/** They cost no hash: held back, so that asking again and again costs the machine nothing. */
const HELD_BACK: readonly Result[] = [LOCKED, CROWDED];
const OWN: { place: Place; ended: () => void } = { place: { status: 'own' }, ended: () => undefined };
const DENIED: Result = { code: RESULT.insufficientAccessRights };

/** The caller has made the connection anonymous before; a success gives it an identity. */
export type Bind = (binder: Binder, request: BindRequest) => Promise<Result>;

export function createBind(deps: BindDeps): Bind {
  const binds = new Binds(deps);
  return (binder, request) => binds.bind(binder, request);
}

interface Attempt {
  binder: Binder;
  address: string;
  username: string;
  key: string;
  isOwn: boolean;
}

class Binds {
  readonly #deps: BindDeps;
  readonly #lockout = createLockout({ keys: KEYS });
  readonly #status: ReturnType<typeof clientStatus>;
  readonly #pace: RefusalPace;
  readonly #inTurn: ReturnType<typeof limitAttempts>;
  readonly #isOfSettings: (password: string) => boolean;

  constructor(deps: BindDeps) {
    const { now } = deps;
    this.#deps = deps;
    this.#status = clientStatus(now);
    this.#pace = new RefusalPace(now, deps.limits.minRefusalMs);
    this.#inTurn = limitAttempts((key) => this.#lockout.left(key, now()));
    this.#isOfSettings = knownPassword(deps.searchPassword);
  }

  async bind(binder: Binder, { version, name, method, password }: BindRequest): Promise<Result> {
    const { trees, limits } = this.#deps;
    if (version !== 3) return { code: RESULT.protocolError, text: 'only version 3 of LDAP is spoken' };
    if (method !== 'simple') return { code: RESULT.authMethodNotSupported, text: 'only simple binds are taken' };
    const parts = readName(name);
    if (parts === undefined) return { code: RESULT.invalidDNSyntax };
    const tree = treeOf(trees, parts);
    if (tree === undefined) return DENIED;
    const place = placeOf(tree, parts);
    if (place?.at !== 'leaf' || place.container !== 'users') return REFUSED;
    // Neither can be anybody's. They do not count: without the price of a hash they would fill the
    // lock-out's table.
    if (password === undefined || password === '') return REFUSED;
    if (Buffer.byteLength(password) > MAX_PASSWORD_BYTES) return REFUSED;
    const key = keyOf(lockoutAddress(binder.address), tree, place.label);
    const identity = { tree, username: place.label };
    const run = (): Promise<Result> => this.#attempt(binder, identity, password, key);
    const result = binder.vouched ? await run() : ((await this.#inTurn(key, run)) ?? CROWDED);
    if (HELD_BACK.includes(result)) {
      binder.heldBack = true;
      await delay(limits.heldBackMs);
      binder.heldBack = false;
    }
    return result;
  }

  async #attempt(
    binder: Binder,
    { tree, username }: Omit<Identity, 'pk'>,
    password: string,
    key: string,
  ): Promise<Result> {
    const { checkPassword, events, limits, now, searchAccount } = this.#deps;
    const address = lockoutAddress(binder.address);
    const isService = nameKey(username) === nameKey(searchAccount);
    // Whoever shares our address could else shut out everybody by wrong passwords for the service
    // account.
    const known = isService && this.#isOfSettings(password);
    if (!binder.vouched && !known && this.#lockout.check(key, now()).lockedUntilMs !== undefined) {
      events.bindRefused({ username, address, door: tree.door, reason: 'locked' });
      return LOCKED;
    }
    const isOwn = known || (binder.vouched && isService);
    const { place, ended } = this.#placeFor({ binder, address, username, key, isOwn });
    const until = now() + limits.bindMs;
    const wanted = (): boolean => !binder.gone && now() < until;
    const begunMs = now();
    const judged = checkPassword({ username, password, appPasswords: tree.door === 'core', place, wanted });
    const verdict = await withFallback(limits.bindMs, 'busy' as const, judged).finally(ended);
    if (verdict === 'busy') return place.status === 'suspect' ? CROWDED : BUSY;
    if (verdict === 'refused') {
      events.bindRefused({ username, address, door: tree.door, reason: 'password' });
      if (!binder.vouched) {
        this.#status.failed(address);
        if (this.#lockout.failed(key, now()).lockedUntilMs !== undefined)
          events.locked({ username, address, door: tree.door });
        await this.#pace.hold(now() - begunMs);
      }
      return REFUSED;
    }
    this.#status.succeeded(key);
    binder.identity = { tree, username, pk: verdict.pk };
    if (isService) binder.vouched = true;
    return { code: RESULT.success };
  }

  /**
   * Whoever is vouched for has passed a door that orders its clients itself, and holds refusals
   * back. All of them together take turns with all who bind here, and by name with each other:
   * guesses at another door do not keep out who binds here.
   */
  #placeFor({ binder, address, username, key, isOwn }: Attempt): { place: Place; ended: () => void } {
    if (isOwn) return OWN;
    const name = nameKey(username);
    if (binder.vouched) return { ...OWN, place: { status: 'usual', group: 'vouched', key: name } };
    const { status: found, ended } = this.#status.begin(address, key);
    return { place: { status: found, group: 'direct', key: name }, ended };
  }
}

/**
 * The same for every spelling of a name that the store takes for one account, and short, however
 * long the name is.
 */
function keyOf(address: string, { door }: Tree, label: string): string {
  return createHash('sha256')
    .update(`${address} ${door} ${nameKey(label)}`)
    .digest('base64url');
}
