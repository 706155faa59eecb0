// The door of 8446 for passwords and app passwords: a bind at the directory's core base behind a lock-out of its own. Nothing is
// remembered of who came in.

import { attemptsAtOnce } from '../../../../shared/domain/attempts-at-once.ts';
import { createLockout, lockoutAddress } from '../../../../shared/domain/lockout.ts';
import { PasswordQueue } from '../../../../shared/domain/password-queue.ts';
import type { DirectoryEntry } from '../../../../shared/ports/directory.ts';
import type { CoreDirectory } from '../parts.ts';
import type { EnrollmentEvents } from './events.ts';

export interface PasswordAttempt {
  username: string;
  password: string;
  /** Of the client. */
  address: string;
}

export interface Locked {
  kind: 'locked';
  retryAfterSeconds: number;
}

export type Entrance =
  | { kind: 'in'; entry: DirectoryEntry }
  | { kind: 'refused' }
  | Locked
  /** Too many attempts wait already. */
  | { kind: 'busy' };

export interface PasswordDoor {
  /** What a locked address hears without asking; undefined while it may try. */
  locked(attempt: PasswordAttempt): Locked | undefined;
  /** Rejects with an AppError when the directory does not answer; that is no failure. */
  enter(attempt: PasswordAttempt): Promise<Entrance>;
}

/** No directory has a longer name; what is longer, or has control characters, is wrong without asking. */
const LONGEST_USERNAME = 255;
const CONTROL = /\p{Cc}/u;

export function passwordDoor(
  directory: Pick<CoreDirectory, 'signIn'>,
  steadyMs: () => number,
  events: EnrollmentEvents,
): PasswordDoor {
  const lockout = createLockout();
  const queue = new PasswordQueue({ steadyMs });
  const inTurn = attemptsAtOnce((address) => lockout.left(address, steadyMs()));

  function locked({ address, username }: PasswordAttempt): Locked | undefined {
    if (lockout.isFree()) return undefined;
    const until = lockout.check(lockoutAddress(address), steadyMs()).lockedUntilMs;
    if (until === undefined) return undefined;
    const retryAfterSeconds = Math.max(1, Math.ceil((until - steadyMs()) / 1000));
    events.failed('locked', { address, user: username, reason: 'too many wrong passwords came from this address' });
    return { kind: 'locked', retryAfterSeconds };
  }

  async function judge(attempt: PasswordAttempt): Promise<Entrance> {
    const { username, password, address } = attempt;
    const source = lockoutAddress(address);
    const asked = mayExist(username)
      ? await queue.ask({ address: source, username }, () => directory.signIn('core', username, password))
      : { found: undefined };
    if (asked === 'busy') return { kind: 'busy' };
    if (asked.found !== undefined) return { kind: 'in', entry: asked.found };
    lockout.failed(source, steadyMs());
    events.failed('password', { address, user: username, reason: 'the directory refuses the name or the password' });
    return { kind: 'refused' };
  }

  return {
    locked,

    async enter(attempt) {
      const turn = async (): Promise<Entrance> => locked(attempt) ?? judge(attempt);
      return locked(attempt) ?? (await inTurn(lockoutAddress(attempt.address), turn)) ?? { kind: 'busy' };
    },
  };
}

function mayExist(username: string): boolean {
  return username.length <= LONGEST_USERNAME && !CONTROL.test(username);
}
