// What concerns the account itself, above everything else in the portal: that it ends soon, or that it is no person's.

import type { Clock } from '../pages/clock.ts';
import { distanceInWords } from '../pages/clock.ts';
import { Missing, Warning } from '../pages/parts/notice.tsx';
import { When } from '../pages/parts/time.tsx';
import { appExpiresOf, isoOfSeconds } from '../../shared/domain/people.ts';
import type { Owner } from './own-account.ts';

const DAY_MS = 86_400_000;
/** So early it is said: an administrator has to be reached. */
const SAID_DAYS_BEFORE = 14;

interface StandingProps {
  owner: Owner;
  username: string;
  clock: Clock;
}

export function Standing({ owner, username, clock }: StandingProps) {
  if (owner.kind === 'unknown')
    return <Missing>Your account cannot be looked up now, so its end is not shown: {owner.why}</Missing>;
  if (owner.kind === 'hidden')
    return (
      <Warning>
        <p>
          <strong>{username} is an account of the stack, not of a person.</strong> It enrolls no devices. Sign in with
          an account of your own, which an administrator creates under People.
        </p>
      </Warning>
    );
  const seconds = appExpiresOf(owner.account.attributes);
  if (seconds === null) return null;
  const at = isoOfSeconds(seconds);
  if (Date.parse(at) - clock.now.getTime() > SAID_DAYS_BEFORE * DAY_MS) return null;
  return (
    <Warning>
      <p>
        <strong>Your access ends {distanceInWords(at, clock.now)}</strong>, <When at={at} clock={clock} />. After that
        you cannot sign in, and your devices are shut out. If you need it longer, ask an administrator before then.
      </p>
    </Warning>
  );
}
