// The last attempts to enroll, in memory, so that somebody can be told why a phone was refused. A restart forgets them; what failed
// before a name was said (the TLS handshake, a request without credentials) is not among them.

import type { EnrollmentAttempt } from '@holdfast/kit/core-wire';
import { nameKey } from '@holdfast/kit/names';
import { oneLine, shortened } from '@holdfast/kit/text';

const MOST = 2_000;
const MOST_OF_ONE = 20;
const LONGEST = { username: 150, clientUid: 80, address: 64, reason: 300 } as const;

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
    const name = shown(username, 'username');
    if (name === '') return;
    this.#makeRoom(nameKey(name));
    const attempt: EnrollmentAttempt = {
      at: this.#now().toISOString(),
      address: shown(address, 'address'),
      username: name,
      clientUid: shown(clientUid, 'clientUid'),
      result,
      reason: shown(reason, 'reason'),
    };
    this.#kept.push({ owner: nameKey(name), expendable, attempt });
  }

  /** Newest first; of this name, in any case, or of everybody. */
  list(username?: string): EnrollmentAttempt[] {
    const owner = username === undefined ? undefined : nameKey(shown(username, 'username'));
    return this.#kept
      .filter((each) => owner === undefined || each.owner === owner)
      .map(({ attempt }) => ({ ...attempt }))
      .toReversed();
  }

  #makeRoom(owner: string): void {
    const own = this.#kept.filter((each) => each.owner === owner);
    const [oldest] = own;
    if (oldest !== undefined && own.length >= MOST_OF_ONE) this.#kept.splice(this.#kept.indexOf(oldest), 1);
    if (this.#kept.length < MOST) return;
    const expendable = this.#kept.findIndex((each) => each.expendable);
    this.#kept.splice(Math.max(0, expendable), 1);
  }
}

function shown(text: string, what: keyof typeof LONGEST): string {
  return shortened(oneLine(text), LONGEST[what]);
}
