// Logs enrollments and failures, and remembers the last attempts that have a name. Logs a few
// failures of a kind per minute and only counts the others, so that no client can fill the log.

import type { EnrollmentAttempt } from '@holdfast/kit/core-wire';
import { type Log, MinuteLimit } from '@holdfast/kit/log';
import { nameKey } from '@holdfast/kit/names';
import { oneLine, shortened } from '@holdfast/kit/text';
import type { RefusedConnection } from '../model/parts.ts';

export type FailureKind = 'password' | 'locked' | 'request' | 'unavailable' | 'internal';

export interface Failure {
  address: string;
  user?: string | undefined;
  clientUid?: string | undefined;
  reason: string;
}

const LINES_PER_MINUTE = 20;
const SHOWN_CHARACTERS = 80;
const SHOWN_REASON_CHARACTERS = 300;
const LEVELS = { password: 'info', locked: 'info', request: 'warn', unavailable: 'warn', internal: 'error' } as const;

/** `steadyMs` never goes back. */
export class EnrollmentEvents {
  readonly #log: Log;
  readonly #minute: MinuteLimit<FailureKind>;
  readonly #attempts: Pick<EnrollmentAttempts, 'add'>;

  constructor(log: Log, steadyMs: () => number, attempts: Pick<EnrollmentAttempts, 'add'>) {
    this.#log = log;
    this.#minute = new MinuteLimit(steadyMs);
    this.#attempts = attempts;
  }

  /** With hash and serial number: whoever loses the table can still tell whom to revoke. */
  signed({
    user,
    clientUid,
    hash,
    serial,
    address,
  }: {
    user: string;
    clientUid: string;
    hash: string;
    serial: string;
    address: string;
  }): void {
    this.#beginMinute();
    this.#log.info('enrollment.signed', { user, client_uid: shown(clientUid), hash, serial, address });
    this.#attempts.add({ address, username: user, clientUid, result: 'signed', reason: '' });
  }

  failed(kind: FailureKind, { address, user, clientUid, reason }: Failure): void {
    // A locked address may go on asking for names that nobody has: it must not push out what others
    // have tried.
    const attempt = { address, username: user ?? '', clientUid: clientUid ?? '', result: 'refused', reason } as const;
    this.#attempts.add(attempt, { expendable: kind === 'locked' });
    this.#beginMinute();
    if (this.#minute.count(kind) > LINES_PER_MINUTE) return;
    this.#log[LEVELS[kind]]('enrollment.failed', {
      kind,
      reason: shortened(oneLine(reason), SHOWN_REASON_CHARACTERS),
      address,
      user: shown(user),
      client_uid: shown(clientUid),
    });
  }

  #beginMinute(): void {
    const more = Object.entries(this.#minute.nextMinute() ?? {})
      .filter(([, count]) => count > LINES_PER_MINUTE)
      .map(([kind, count]) => [kind, count - LINES_PER_MINUTE]);
    if (more.length > 0) this.#log.warn('enrollment.failed_more', Object.fromEntries(more));
  }
}

function shown(text: string | undefined): string | undefined {
  return text === undefined ? undefined : shortened(oneLine(text), SHOWN_CHARACTERS);
}

const MOST = 2_000;
const MAX_PER_ONE = 20;
const MAX_LENGTH = { username: 150, clientUid: 80, address: 64, reason: 300 } as const;

/**
 * The last attempts to enroll and refused connections, in memory, so that somebody can be told why
 * a phone was refused. A restart forgets them; what failed before a name was known (the TLS
 * handshake, a request without credentials) is not among them.
 */
export class EnrollmentAttempts {
  readonly #now: () => Date;
  /** The oldest first. */
  readonly #kept: { owner: string; expendable: boolean; attempt: EnrollmentAttempt }[] = [];

  constructor(now: () => Date) {
    this.#now = now;
  }

  /** `expendable`: the first to go when there are too many. */
  add(
    { username, clientUid, address, result, reason }: Omit<EnrollmentAttempt, 'at'>,
    { expendable = false }: { expendable?: boolean } = {},
  ): void {
    const name = shortenedAttempt(username, 'username');
    if (name === '') return;
    this.#makeRoom(nameKey(name));
    const attempt: EnrollmentAttempt = {
      at: this.#now().toISOString(),
      address: shortenedAttempt(address, 'address'),
      username: name,
      clientUid: shortenedAttempt(clientUid, 'clientUid'),
      result,
      reason: shortenedAttempt(reason, 'reason'),
    };
    this.#kept.push({ owner: nameKey(name), expendable, attempt });
  }

  /** A refused device retries for ever: equal refusals are one, with the time of the last. */
  addRefusedConnection(refused: RefusedConnection): void {
    const [owner, address, reason] = [nameKey(refused.username), refused.address, refused.reason];
    const before = this.#kept.findIndex(
      ({ owner: other, attempt }) =>
        other === owner &&
        attempt.result === 'not connected' &&
        attempt.address === address &&
        attempt.reason === reason,
    );
    if (before >= 0) this.#kept.splice(before, 1);
    this.add({ ...refused, clientUid: '', result: 'not connected' }, { expendable: true });
  }

  /** Newest first; of this name, in any case, or of everybody. */
  list(username?: string): EnrollmentAttempt[] {
    const owner = username === undefined ? undefined : nameKey(shortenedAttempt(username, 'username'));
    return this.#kept
      .filter((each) => owner === undefined || each.owner === owner)
      .map(({ attempt }) => ({ ...attempt }))
      .toReversed();
  }

  #makeRoom(owner: string): void {
    const own = this.#kept.filter((each) => each.owner === owner);
    const [oldest] = own;
    if (oldest !== undefined && own.length >= MAX_PER_ONE) this.#kept.splice(this.#kept.indexOf(oldest), 1);
    if (this.#kept.length < MOST) return;
    const expendable = this.#kept.findIndex((each) => each.expendable);
    this.#kept.splice(Math.max(0, expendable), 1);
  }
}

function shortenedAttempt(text: string, what: keyof typeof MAX_LENGTH): string {
  return shortened(oneLine(text), MAX_LENGTH[what]);
}
