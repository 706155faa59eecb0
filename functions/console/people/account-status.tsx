// Whether a person may come in, and the two deeds that decide it: enroll a device, or put the person out.

import { DAY_MS } from '@holdfast/kit/time';
import type { UserView } from '../../../shared/devices/accounts.ts';
import type { Role } from '../../../shared/sign-in/rules.ts';
import { faultOf } from '../../pages/form.ts';
import type { PageContext } from '../../pages/page-routes.ts';
import { Card, Confirm } from '../../pages/parts/card.tsx';
import { StatusBadge } from '../../pages/parts/notice.tsx';
import { type Clock, Countdown, timeInZone, When } from '../../pages/parts/time.tsx';
import { AccessEnds, endShown, type Refusal } from './fields.tsx';

const SOON_MS = DAY_MS;

/** How somebody stands, in words: whether the person may come in, and what the role is good for. */
export type AccountStatus = 'in' | 'ending' | 'expired' | 'deactivated';
type Stands = Pick<UserView, 'is_active' | 'expires_at'>;

/** `ending`: within a day. */
export function statusOf({ is_active: isActive, expires_at: end }: Stands, now: Date): AccountStatus {
  const left = end === null ? Infinity : Date.parse(end) - now.getTime();
  if (left <= 0) return 'expired';
  if (!isActive) return 'deactivated';
  return left <= SOON_MS ? 'ending' : 'in';
}

export function AccountStatusBadge({ user, clock }: { user: Stands; clock: Clock }) {
  const accountStatus = statusOf(user, clock.now);
  if (accountStatus === 'expired') return <StatusBadge status="warning">Expired</StatusBadge>;
  if (accountStatus === 'deactivated') return <StatusBadge status="note">Deactivated</StatusBadge>;
  return (
    <StatusBadge status={accountStatus === 'in' ? 'ok' : 'warning'}>
      {accountStatus === 'in' ? 'May come in' : 'Ends soon'}
    </StatusBadge>
  );
}

/** The sentence at the top of the person's page. */
export function StatusText({ user, clock }: { user: Stands; clock: Clock }) {
  const { expires_at: end, is_active: isActive } = user;
  if (end === null)
    return <>{isActive ? 'May come in, without an end.' : 'Deactivated: nothing lets this person in.'}</>;
  const when = <When at={end} clock={clock} relative />;
  const status = statusOf(user, clock.now);
  if (status === 'deactivated') return <>Deactivated: nothing lets this person in. Access would end {when}.</>;
  if (status !== 'expired')
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
export function formatEnd(end: string | null, { timeZone }: Clock): string {
  return end === null ? 'no end' : `until ${timeInZone(end, timeZone)}`;
}

export const ROLE_NAMES: Record<Role, string> = { none: 'Member', viewer: 'Viewer', admin: 'Administrator' };

export const ROLE_MEANINGS: Record<Role, string> = {
  none: 'own devices and password in the portal; nothing of the console',
  viewer: 'sees the console, changes nothing there',
  admin: 'lets people in and out, changes everything',
};

interface PersonStatusProps {
  c: PageContext;
  user: UserView;
  clock: Clock;
  refusal: Refusal | undefined;
  /** webadmin stays. */
  isFirst: boolean;
  canChange: boolean;
  /** In force. */
  certificates: number;
}

export function PersonStatus(props: PersonStatusProps) {
  const { user, clock, canChange, isFirst } = props;
  const isIn = user.is_active && statusOf(user, clock.now) !== 'expired';
  return (
    <Card>
      <div class="standing">
        <AccountStatusBadge user={user} clock={clock} />
        <p>
          <StatusText user={user} clock={clock} />
        </p>
      </div>
      {canChange && user.is_active ? (
        <div class="deeds">
          {isIn ? (
            <a class="button primary" href={`/people/${user.id}/enrollment`}>
              Enroll a device
            </a>
          ) : null}
          {isFirst ? null : <Deactivation {...props} />}
        </div>
      ) : null}
      {canChange && !user.is_active ? <Reactivation {...props} /> : null}
    </Card>
  );
}

function Deactivation({ c, user, certificates }: PersonStatusProps) {
  const { id, username } = user;
  const isOneself = c.get('principal').username.toLowerCase() === username.toLowerCase();
  return (
    <Confirm
      id="deactivation"
      label="Deactivate…"
      action={`/people/${id}/deactivate`}
      button={`Deactivate ${username}`}
    >
      <p>This puts {username} out, now:</p>
      <ul>
        <li>signed out everywhere{isOneself ? ': you yourself, at once' : ''};</li>
        <li>
          every certificate is revoked{certificates === 0 ? '' : ` (${certificates} in force)`}: connected devices fall
          off;
        </li>
        <li>an enrollment that is open is withdrawn.</li>
      </ul>
      <p>The record is kept: the person can be let in again, with newly enrolled devices.</p>
    </Confirm>
  );
}

function Reactivation({ user, clock, refusal }: PersonStatusProps) {
  const { id, username, expires_at: end } = user;
  const isExpired = statusOf(user, clock.now) === 'expired';
  const refused = refusal?.at === 'reactivate' ? refusal : undefined;
  const first = isExpired ? { choice: 'days-2', on: '' } : endShown(end, clock);
  return (
    <form method="post" action={`/people/${id}/reactivate`} class="narrow deeds">
      <div>
        <AccessEnds
          id="again"
          clock={clock}
          choice={refused?.form.text('ends') ?? first.choice}
          on={refused?.form.text('on') ?? first.on}
          error={faultOf(refused?.error, 'ends')}
          hint="From now until then this person may come in again; devices are enrolled anew."
        />
        <button type="submit">Let {username} in again</button>
      </div>
    </form>
  );
}
