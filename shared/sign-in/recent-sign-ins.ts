// What was found out a moment ago about who comes in, so that not every request costs a bind: passwords that were right,
// signed texts that are valid, groups of people. How long each is believed stands here, and nowhere else.

import { hash, randomBytes } from 'node:crypto';
import { AppError } from '@holdfast/kit/app-error';
import type { Directory, DirectoryEntry } from '@holdfast/kit/directory';
import { nameKey } from '@holdfast/kit/names';
import { withTimeout } from '@holdfast/kit/timeout';
import type { PasswordAttempt, SignedText, SignIns } from './port.ts';

/**
 * What is changed at the identity provider itself counts after this time: 30 seconds are promised, and the questions take
 * theirs.
 */
const BELIEVED_MS = 20_000;
/** What is changed through Holdfast, also by another process, counts after this time: one second is promised. */
const EPOCH_BELIEVED_MS = 500;
/** A database that hangs delays nobody's password for longer, and is not asked again for a while. */
const EPOCH_WITHIN_MS = 1_500;
const EPOCH_PAUSE_MS = 1_000;
const MOST_KEPT = 10_000;

export interface RecentOptions {
  directory: Pick<Directory, 'find'>;
  signIns: Pick<SignIns, 'recognise' | 'epoch'>;
  steadyMs: () => number;
  wallMs: () => number;
}

/** What was asked at some time; callers at the same moment share the answer. */
interface Asked<T> {
  answer: Promise<T>;
  askedMs: number;
}

interface KnownEpoch extends Asked<number | undefined> {
  /** The answer, once it is there. */
  epoch?: number;
}

interface Accepted {
  entry: DirectoryEntry;
  personKey: string;
  epoch: number;
  until: number;
}

interface Recognised extends Asked<SignedText | undefined> {
  /** The answer, once it is there. */
  signed?: SignedText;
}

interface Person {
  answer: Promise<DirectoryEntry | undefined>;
  /** The answer, once it is there. */
  entry?: DirectoryEntry;
  epoch: number;
  until: number;
}

type Password = Pick<PasswordAttempt, 'username' | 'password'>;

export interface RecentSignIns {
  /** The entry behind a password of the web base that was right a moment ago. */
  byPassword(password: Password): Promise<DirectoryEntry | undefined>;
  /** The same without waiting, by the second word of a Basic header. */
  byHeader(encoded: string): DirectoryEntry | undefined;
  /** To be called before a password is judged; what it resolves with is called when it was right. */
  beforePassword(password: Password): Promise<(entry: DirectoryEntry) => void>;
  signed(kind: SignedText['kind'], text: string): Promise<SignedText | undefined>;
  /** The same, with the entry of the person, without waiting. */
  knownSigned(kind: SignedText['kind'], text: string): { signed: SignedText; entry: DirectoryEntry } | undefined;
  /** The entry of a person, at most as old as is promised. */
  person(username: string): Promise<DirectoryEntry | undefined>;
  forget(username: string): void;
}

export function recentSignIns({ directory, signIns, steadyMs, wallMs }: RecentOptions): RecentSignIns {
  /** Keys are digests with a secret of this process: no password and no cookie is kept. An HMAC would cost twenty times as much. */
  const secret = randomBytes(32).toString('hex');
  const accepted = new Map<string, Accepted>();
  const recognised = new Map<string, Recognised>();
  const people = new Map<string, Person>();
  const epochs = new Map<string, KnownEpoch>();
  let epochsUnknownUntil = -Infinity;
  /** Counts what was forgotten: what was asked before must not be remembered after. */
  let generation = 0;

  const digest = (kind: string, text: string): string => hash('sha256', `${secret}:${kind}:${text}`, 'base64');

  const isFresh = ({ askedMs }: { askedMs: number }): boolean => steadyMs() - askedMs <= EPOCH_BELIEVED_MS;

  /**
   * At most half a second old, which is safe: what is remembered under an epoch that has changed since is dropped at the
   * next look. Undefined while our own database does not answer: then nothing can be believed.
   */
  async function epochOf(username: string): Promise<number | undefined> {
    const key = nameKey(username);
    const known = epochs.get(key);
    if (known !== undefined && isFresh(known)) return known.epoch ?? known.answer;
    if (steadyMs() < epochsUnknownUntil) return undefined;
    const asked: KnownEpoch = { answer: askEpoch(username), askedMs: steadyMs() };
    keep(epochs, key, asked);
    const dropped = (): void => {
      if (epochs.get(key) === asked) epochs.delete(key);
    };
    asked.answer.then((epoch) => (epoch === undefined ? dropped() : (asked.epoch = epoch)), dropped);
    return asked.answer;
  }

  async function askEpoch(username: string): Promise<number | undefined> {
    const late = (): AppError => new AppError('unavailable', 'Our own database did not answer in time.');
    try {
      return await withTimeout(EPOCH_WITHIN_MS, late, signIns.epoch(username));
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'unavailable') throw error;
      epochsUnknownUntil = steadyMs() + EPOCH_PAUSE_MS;
      return undefined;
    }
  }

  /** By what Basic sends, so that a header need not be read. A name with a colon could be read as a shorter name with a longer password. */
  function passwordKey({ username, password }: Password): string | undefined {
    if (username.includes(':')) return undefined;
    return digest('password', Buffer.from(`${username}:${password}`).toString('base64'));
  }

  function current(key: string): Accepted | undefined {
    const found = accepted.get(key);
    if (found === undefined || found.until > steadyMs()) return found;
    accepted.delete(key);
    return undefined;
  }

  /** What is known of a person under this epoch. */
  function believed(key: string, epoch: number): Person | undefined {
    const found = people.get(key);
    return found !== undefined && found.epoch === epoch && found.until > steadyMs() ? found : undefined;
  }

  const isRunning = ({ expiresAt }: SignedText): boolean => Date.parse(expiresAt) > wallMs();

  async function recognise(kind: SignedText['kind'], text: string): Promise<SignedText | undefined> {
    const key = digest(kind, text);
    const found = recognised.get(key);
    if (found !== undefined && isFresh(found)) return found.answer;
    const asked: Recognised = { answer: signIns.recognise(kind, text), askedMs: steadyMs() };
    keep(recognised, key, asked);
    const dropped = (): void => {
      if (recognised.get(key) === asked) recognised.delete(key);
    };
    asked.answer.then((signed) => (signed === undefined ? dropped() : (asked.signed = signed)), dropped);
    return asked.answer;
  }

  return {
    async byPassword(password) {
      const key = passwordKey(password);
      const found = key === undefined ? undefined : current(key);
      if (key === undefined || found === undefined) return undefined;
      const epoch = await epochOf(password.username);
      if (accepted.get(key) !== found) return undefined;
      if (epoch === found.epoch) return found.entry;
      if (epoch !== undefined) accepted.delete(key);
      return undefined;
    },

    byHeader(encoded) {
      const found = current(digest('password', encoded));
      const known = found && epochs.get(found.personKey);
      if (found === undefined || known === undefined) return undefined;
      return isFresh(known) && known.epoch === found.epoch ? found.entry : undefined;
    },

    async beforePassword(password) {
      const before = generation;
      const askedMs = steadyMs();
      const epoch = await epochOf(password.username);
      const key = passwordKey(password);
      return (entry) => {
        if (key === undefined || epoch === undefined || generation !== before) return;
        const personKey = nameKey(entry.username);
        keep(accepted, key, { entry, personKey, epoch, until: askedMs + BELIEVED_MS });
      };
    },

    async signed(kind, text) {
      const signed = await recognise(kind, text);
      return signed !== undefined && isRunning(signed) ? signed : undefined;
    },

    knownSigned(kind, text) {
      const found = recognised.get(digest(kind, text));
      const signed = found !== undefined && isFresh(found) ? found.signed : undefined;
      if (signed === undefined || !isRunning(signed)) return undefined;
      const key = nameKey(signed.username);
      const known = epochs.get(key);
      const epoch = known !== undefined && isFresh(known) ? known.epoch : undefined;
      const entry = epoch === undefined ? undefined : believed(key, epoch)?.entry;
      return entry && { signed, entry };
    },

    async person(username) {
      const key = nameKey(username);
      const epoch = await epochOf(username);
      if (epoch === undefined) return directory.find(username);
      const found = believed(key, epoch);
      if (found !== undefined) return found.answer;
      const asked: Person = { answer: directory.find(username), epoch, until: steadyMs() + BELIEVED_MS };
      keep(people, key, asked);
      asked.answer.then(
        (entry) => entry && (asked.entry = entry),
        () => {
          if (people.get(key) === asked) people.delete(key);
        },
      );
      return asked.answer;
    },

    forget(username) {
      generation += 1;
      const key = nameKey(username);
      people.delete(key);
      epochs.delete(key);
      for (const [each, { personKey }] of accepted) if (personKey === key) accepted.delete(each);
      for (const [each, { signed }] of recognised)
        if (signed === undefined || nameKey(signed.username) === key) recognised.delete(each);
    },
  };
}

/** The oldest goes when there are too many. */
function keep<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= MOST_KEPT) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}
