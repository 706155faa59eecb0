// How somebody stands, in words: whether the person may come in, and what the role is good for.

import type { Role } from '../../shared/domain/principal.ts';
import type { ShownUser } from '../../shared/verbs/people.ts';
import { type Clock, timeInZone } from '../pages/clock.ts';
import { StatusBadge } from '../pages/parts/status.tsx';
import { Countdown, When } from '../pages/parts/time.tsx';

const SOON_MS = 24 * 3_600_000;

export type Standing = 'in' | 'ending' | 'expired' | 'deactivated';
type Stands = Pick<ShownUser, 'is_active' | 'expires_at'>;

/** `ending`: within a day. */
export function standingOf({ is_active: isActive, expires_at: end }: Stands, now: Date): Standing {
  const left = end === null ? Infinity : Date.parse(end) - now.getTime();
  if (left <= 0) return 'expired';
  if (!isActive) return 'deactivated';
  return left <= SOON_MS ? 'ending' : 'in';
}

export function StandingBadge({ user, clock }: { user: Stands; clock: Clock }) {
  const standing = standingOf(user, clock.now);
  if (standing === 'expired') return <StatusBadge status="warning">Expired</StatusBadge>;
  if (standing === 'deactivated') return <StatusBadge status="note">Deactivated</StatusBadge>;
  return (
    <StatusBadge status={standing === 'in' ? 'ok' : 'warning'}>
      {standing === 'in' ? 'May come in' : 'Ends soon'}
    </StatusBadge>
  );
}

/** The sentence at the top of the person's page. */
export function StandingInWords({ user, clock }: { user: Stands; clock: Clock }) {
  const { expires_at: end, is_active: isActive } = user;
  if (end === null)
    return <>{isActive ? 'May come in, without an end.' : 'Deactivated: nothing lets this person in.'}</>;
  const when = <When at={end} clock={clock} relative />;
  const standing = standingOf(user, clock.now);
  if (standing === 'deactivated') return <>Deactivated: nothing lets this person in. Access would end {when}.</>;
  if (standing !== 'expired')
    return (
      <>
        May come in until <When at={end} clock={clock} />: <Countdown until={end} clock={clock} over="over now" />.
      </>
    );
  return isActive ? (
    <>Expired {when}: is put out within a minute.</>
  ) : (
    <>Expired {when}: nothing lets this person in.</>
  );
}

/** `until 2026-01-31 14:05`, `no end`. */
export function endInWords(end: string | null, { timeZone }: Clock): string {
  return end === null ? 'no end' : `until ${timeInZone(end, timeZone)}`;
}

export const ROLE_NAMES: Record<Role, string> = { none: 'Member', viewer: 'Viewer', admin: 'Administrator' };

export const ROLE_MEANINGS: Record<Role, string> = {
  none: 'own devices and password in the portal; nothing of the console',
  viewer: 'sees the console, changes nothing there',
  admin: 'lets people in and out, changes everything',
};
