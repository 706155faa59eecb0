// Caches recent sign-ins so that not every request costs a bind: correct passwords, valid signed
// texts, groups of people. All cache lifetimes are defined here.

import { hash, randomBytes } from 'node:crypto';
import { AppError } from '@holdfast/kit/app-error';
import type { Directory, DirectoryEntry } from '@holdfast/kit/directory';
import { nameKey } from '@holdfast/kit/names';
import { withTimeout } from '@holdfast/kit/timeout';
import type { PasswordAttempt, SignedText, SignIns } from './port.ts';
import { mayExist } from './rules.ts';

/**
 * A change at the identity provider itself counts after this time: 30 seconds are promised, and the
 * queries take some of it.
 */
const BELIEVED_MS = 20_000;
/**
 * A change through Holdfast, also by another process, counts after this time: one second is
 * promised.
 */
const EPOCH_BELIEVED_MS = 500;
/**
 * A hanging database delays a password for at most this long, and is then not asked for a while.
 */
const EPOCH_WITHIN_MS = 1_500;
const EPOCH_PAUSE_MS = 1_000;
const MAX_KEPT = 10_000;

export interface RecentOptions {
  directory: Pick<Directory, 'find'>;
  signIns: Pick<SignIns, 'recognize' | 'epoch'>;
  steadyMs: () => number;
  wallMs: () => number;
}

/** A cached query with its time; concurrent callers share the result. */
interface Request<T> {
  answer: Promise<T>;
  requestedMs: number;
}

interface KnownEpoch extends Request<number | undefined> {
  /** The result, once it is there. */
  epoch?: number;
}

interface Accepted {
  entry: DirectoryEntry;
  personKey: string;
  epoch: number;
  until: number;
}

interface Recognized extends Request<SignedText | undefined> {
  /** The result, once it is there. */
  signed?: SignedText;
}

interface Person {
  answer: Promise<DirectoryEntry | undefined>;
  /** The result, once it is there. */
  entry?: DirectoryEntry;
  epoch: number;
  until: number;
}

type Password = Pick<PasswordAttempt, 'username' | 'password'>;

export class RecentSignIns {
  readonly #directory: RecentOptions['directory'];
  readonly #signIns: RecentOptions['signIns'];
  readonly #steadyMs: RecentOptions['steadyMs'];
  readonly #wallMs: RecentOptions['wallMs'];
  /**
   * Keys are digests with a secret of this process, so no password or cookie is stored. An HMAC
   * would cost twenty times as much.
   */
  readonly #secret = randomBytes(32).toString('hex');
  readonly #accepted = new Map<string, Accepted>();
  readonly #recognized = new Map<string, Recognized>();
  readonly #people = new Map<string, Person>();
  readonly #epochs = new Map<string, KnownEpoch>();
  #epochsUnknownUntil = -Infinity;
  /** Counts invalidations: a query that began before one must not be cached after it. */
  #generation = 0;

  constructor({ directory, signIns, steadyMs, wallMs }: RecentOptions) {
    this.#directory = directory;
    this.#signIns = signIns;
    this.#steadyMs = steadyMs;
    this.#wallMs = wallMs;
  }

  #digest(kind: string, text: string): string {
    return hash('sha256', `${this.#secret}:${kind}:${text}`, 'base64');
  }

  #isFresh({ requestedMs }: { requestedMs: number }): boolean {
    return this.#steadyMs() - requestedMs <= EPOCH_BELIEVED_MS;
  }

  /**
   * At most half a second old, which is safe: an entry cached under an epoch that has changed since
   * is dropped at the next lookup. Undefined while our own database does not answer: then nothing
   * cached counts.
   */
  async #epochOf(username: string): Promise<number | undefined> {
    const key = nameKey(username);
    const known = this.#epochs.get(key);
    if (known !== undefined && this.#isFresh(known)) return known.epoch ?? known.answer;
    if (this.#steadyMs() < this.#epochsUnknownUntil) return undefined;
    const requested: KnownEpoch = { answer: this.#askEpoch(username), requestedMs: this.#steadyMs() };
    keep(this.#epochs, key, requested);
    const dropped = (): void => {
      if (this.#epochs.get(key) === requested) this.#epochs.delete(key);
    };
    requested.answer.then((epoch) => (epoch === undefined ? dropped() : (requested.epoch = epoch)), dropped);
    return requested.answer;
  }

  async #askEpoch(username: string): Promise<number | undefined> {
    const late = (): AppError => new AppError('unavailable', 'Our own database did not answer in time.');
    try {
      return await withTimeout(EPOCH_WITHIN_MS, late, this.#signIns.epoch(username));
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'unavailable') throw error;
      this.#epochsUnknownUntil = this.#steadyMs() + EPOCH_PAUSE_MS;
      return undefined;
    }
  }

  /**
   * Keyed by the Basic credentials, so that a header need not be decoded. A name with a colon could
   * be read as a shorter name with a longer password.
   */
  #passwordKey({ username, password }: Password): string | undefined {
    if (username.includes(':')) return undefined;
    return this.#digest('password', Buffer.from(`${username}:${password}`).toString('base64'));
  }

  #current(key: string): Accepted | undefined {
    const found = this.#accepted.get(key);
    if (found === undefined || found.until > this.#steadyMs()) return found;
    this.#accepted.delete(key);
    return undefined;
  }

  /** The cached data of a person under this epoch. */
  #believed(key: string, epoch: number): Person | undefined {
    const found = this.#people.get(key);
    return found !== undefined && found.epoch === epoch && found.until > this.#steadyMs() ? found : undefined;
  }

  #isRunning({ expiresAt }: SignedText): boolean {
    return Date.parse(expiresAt) > this.#wallMs();
  }

  async #recognize(kind: SignedText['kind'], text: string): Promise<SignedText | undefined> {
    const key = this.#digest(kind, text);
    const found = this.#recognized.get(key);
    if (found !== undefined && this.#isFresh(found)) return found.answer;
    const query: Recognized = { answer: this.#signIns.recognize(kind, text), requestedMs: this.#steadyMs() };
    keep(this.#recognized, key, query);
    const dropped = (): void => {
      if (this.#recognized.get(key) === query) this.#recognized.delete(key);
    };
    query.answer.then((signed) => (signed === undefined ? dropped() : (query.signed = signed)), dropped);
    return query.answer;
  }

  /** Learns what the other methods need of our own database for this attempt. */
  async prepare({ username, base }: Pick<PasswordAttempt, 'username' | 'base'>): Promise<void> {
    if (base === 'web' && mayExist(username)) await this.#epochOf(username);
  }

  /** The entry behind a web-base password that was correct a moment ago. */
  async byPassword(password: Password): Promise<DirectoryEntry | undefined> {
    const key = this.#passwordKey(password);
    const found = key === undefined ? undefined : this.#current(key);
    if (key === undefined || found === undefined) return undefined;
    const epoch = await this.#epochOf(password.username);
    if (this.#accepted.get(key) !== found) return undefined;
    if (epoch === found.epoch) return found.entry;
    if (epoch !== undefined) this.#accepted.delete(key);
    return undefined;
  }

  /** The same without waiting, by the second word of a Basic header. */
  byHeader(encoded: string): DirectoryEntry | undefined {
    const found = this.#current(this.#digest('password', encoded));
    const known = found && this.#epochs.get(found.personKey);
    if (found === undefined || known === undefined) return undefined;
    return this.#isFresh(known) && known.epoch === found.epoch ? found.entry : undefined;
  }

  /** Call before a password is checked, and call the result when it was correct. */
  async beforePassword(password: Password): Promise<(entry: DirectoryEntry) => void> {
    const before = this.#generation;
    const requestedAtMs = this.#steadyMs();
    const epoch = await this.#epochOf(password.username);
    const key = this.#passwordKey(password);
    return (entry) => {
      if (key === undefined || epoch === undefined || this.#generation !== before) return;
      const personKey = nameKey(entry.username);
      keep(this.#accepted, key, { entry, personKey, epoch, until: requestedAtMs + BELIEVED_MS });
    };
  }

  async signed(kind: SignedText['kind'], text: string): Promise<SignedText | undefined> {
    const signed = await this.#recognize(kind, text);
    return signed !== undefined && this.#isRunning(signed) ? signed : undefined;
  }

  /** The same, with the entry of the person, without waiting. */
  knownSigned(kind: SignedText['kind'], text: string): { signed: SignedText; entry: DirectoryEntry } | undefined {
    const found = this.#recognized.get(this.#digest(kind, text));
    const signed = found !== undefined && this.#isFresh(found) ? found.signed : undefined;
    if (signed === undefined || !this.#isRunning(signed)) return undefined;
    const key = nameKey(signed.username);
    const known = this.#epochs.get(key);
    const epoch = known !== undefined && this.#isFresh(known) ? known.epoch : undefined;
    const entry = epoch === undefined ? undefined : this.#believed(key, epoch)?.entry;
    return entry && { signed, entry };
  }

  /** The entry of a person, at most as old as promised. */
  async person(username: string): Promise<DirectoryEntry | undefined> {
    const key = nameKey(username);
    const epoch = await this.#epochOf(username);
    if (epoch === undefined) return this.#directory.find(username);
    const found = this.#believed(key, epoch);
    if (found !== undefined) return found.answer;
    const wanted: Person = { answer: this.#directory.find(username), epoch, until: this.#steadyMs() + BELIEVED_MS };
    keep(this.#people, key, wanted);
    wanted.answer.then(
      (entry) => entry && (wanted.entry = entry),
      () => {
        if (this.#people.get(key) === wanted) this.#people.delete(key);
      },
    );
    return wanted.answer;
  }

  forget(username: string): void {
    this.#generation += 1;
    const key = nameKey(username);
    this.#people.delete(key);
    this.#epochs.delete(key);
    for (const [each, { personKey }] of this.#accepted) if (personKey === key) this.#accepted.delete(each);
    for (const [each, { signed }] of this.#recognized)
      if (signed === undefined || nameKey(signed.username) === key) this.#recognized.delete(each);
  }
}

/** Drops the oldest entry when there are too many. */
function keep<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= MAX_KEPT) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}
