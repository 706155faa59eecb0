// The last attempts to enroll, in memory, so that somebody can be told why a phone was refused. A restart forgets them; what failed
// before a name was said (the TLS handshake, a request without credentials) is not among them.

import type { EnrollmentAttempt } from '@holdfast/kit/core-wire';
import { nameKey } from '@holdfast/kit/names';
import { oneLine, shortened } from '@holdfast/kit/text';

export interface EnrollmentAttempts {
  /** `expendable`: the first to go when there are too many. */
  add(attempt: Omit<EnrollmentAttempt, 'at'>, options?: { expendable?: boolean }): void;
  /** Newest first; of this name, in any case, or of everybody. */
  list(username?: string): EnrollmentAttempt[];
}

const MOST = 2_000;
const MOST_OF_ONE = 20;
const LONGEST = { username: 150, clientUid: 80, address: 64, reason: 300 } as const;

export function createAttempts(now: () => Date): EnrollmentAttempts {
  /** The oldest first. */
  const kept: { owner: string; expendable: boolean; attempt: EnrollmentAttempt }[] = [];

  function makeRoom(owner: string): void {
    const own = kept.filter((each) => each.owner === owner);
    const [oldest] = own;
    if (oldest !== undefined && own.length >= MOST_OF_ONE) kept.splice(kept.indexOf(oldest), 1);
    if (kept.length < MOST) return;
    const expendable = kept.findIndex((each) => each.expendable);
    kept.splice(Math.max(0, expendable), 1);
  }

  return {
    add({ username, clientUid, address, result, reason }, { expendable = false } = {}) {
      const name = shown(username, 'username');
      if (name === '') return;
      makeRoom(nameKey(name));
      const attempt: EnrollmentAttempt = {
        at: now().toISOString(),
        address: shown(address, 'address'),
        username: name,
        clientUid: shown(clientUid, 'clientUid'),
        result,
        reason: shown(reason, 'reason'),
      };
      kept.push({ owner: nameKey(name), expendable, attempt });
    },

    list(username) {
      const owner = username === undefined ? undefined : nameKey(shown(username, 'username'));
      return kept
        .filter((each) => owner === undefined || each.owner === owner)
        .map(({ attempt }) => ({ ...attempt }))
        .toReversed();
    },
  };
}

function shown(text: string, what: keyof typeof LONGEST): string {
  return shortened(oneLine(text), LONGEST[what]);
}
