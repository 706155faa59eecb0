// Shows whether a person's account is active, with the actions that add a device, deactivate or
// reactivate.

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

type AccountStatus = 'active' | 'expiring' | 'expired' | 'deactivated';
type AccessFields = Pick<UserView, 'is_active' | 'expires_at'>;

/** `expiring`: within a day. */
function statusOf({ is_active: isActive, expires_at: end }: AccessFields, now: Date): AccountStatus {
  const left = end === null ? Infinity : Date.parse(end) - now.getTime();
  if (left <= 0) return 'expired';
  if (!isActive) return 'deactivated';
  return left <= SOON_MS ? 'expiring' : 'active';
}

export function AccountStatusBadge({ user, clock }: { user: AccessFields; clock: Clock }) {
  const status = statusOf(user, clock.now);
  if (status === 'expired') return <StatusBadge status="warning">Expired</StatusBadge>;
  if (status === 'deactivated') return <StatusBadge status="note">Deactivated</StatusBadge>;
  return (
    <StatusBadge status={status === 'active' ? 'ok' : 'warning'}>
      {status === 'active' ? 'Active' : 'Expires soon'}
    </StatusBadge>
  );
}

const DEACTIVATED = "Deactivated. This person can't sign in or connect.";

/** The sentence at the top of the person's page. */
export function StatusText({ user, clock }: { user: AccessFields; clock: Clock }) {
  const { expires_at: end, is_active: isActive } = user;
  if (end === null) return <>{isActive ? 'Active, with no expiry date.' : DEACTIVATED}</>;
  const when = <When at={end} clock={clock} relative />;
  const status = statusOf(user, clock.now);
  if (status === 'deactivated')
    return (
      <>
        {DEACTIVATED} Access would expire {when}.
      </>
    );
  if (status !== 'expired')
    return (
      <>
        Active until <When at={end} clock={clock} />: <Countdown until={end} clock={clock} over="expired" />.
      </>
    );
  return isActive ? (
    <>Expired {when}. The account is deactivated within a minute.</>
  ) : (
    <>Expired {when}. This person can't sign in or connect.</>
  );
}

/** `until 2026-01-31 14:05`, `no expiry`. */
export function formatEnd(end: string | null, { timeZone }: Clock): string {
  return end === null ? 'no expiry' : `until ${timeInZone(end, timeZone)}`;
}

export const ROLE_NAMES: Record<Role, string> = { none: 'Member', viewer: 'Viewer', admin: 'Administrator' };

export const ROLE_MEANINGS: Record<Role, string> = {
  none: 'manages own devices and password in the portal, no console access',
  viewer: 'views the console, changes nothing',
  admin: 'manages people, changes everything',
};

interface PersonStatusProps {
  c: PageContext;
  user: UserView;
  clock: Clock;
  refusal: Refusal | undefined;
  /** `webadmin` can't be deactivated. */
  isFirst: boolean;
  canChange: boolean;
  /** How many are active. */
  certificates: number;
}

export function PersonStatus(props: PersonStatusProps) {
  const { user, clock, canChange, isFirst } = props;
  const isActive = user.is_active && statusOf(user, clock.now) !== 'expired';
  return (
    <Card>
      <div class="account-status">
        <AccountStatusBadge user={user} clock={clock} />
        <p>
          <StatusText user={user} clock={clock} />
        </p>
      </div>
      {canChange && user.is_active ? (
        <div class="status-actions">
          {isActive ? (
            <a class="button primary" href={`/people/${user.id}/enrollment`}>
              Add device
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
  const isOwnAccount = c.get('principal').username.toLowerCase() === username.toLowerCase();
  return (
    <Confirm
      id="deactivation"
      label="Deactivate…"
      action={`/people/${id}/deactivate`}
      button={`Deactivate ${username}`}
    >
      <p>This takes effect immediately:</p>
      <ul>
        <li>
          {username} is signed out everywhere
          {isOwnAccount ? '. This is your own account, so you are signed out too' : ''}
        </li>
        <li>
          Every certificate is revoked{certificates === 0 ? '' : ` (${certificates} active)`} and connected devices are
          disconnected
        </li>
        <li>An open enrollment is canceled</li>
      </ul>
      <p>The account is kept. You can reactivate it later, but every device must enroll again.</p>
    </Confirm>
  );
}

function Reactivation({ user, clock, refusal }: PersonStatusProps) {
  const { id, username, expires_at: end } = user;
  const isExpired = statusOf(user, clock.now) === 'expired';
  const refused = refusal?.at === 'reactivate' ? refusal : undefined;
  const first = isExpired ? { choice: 'days-2', on: '' } : endShown(end, clock);
  return (
    <form method="post" action={`/people/${id}/reactivate`} class="narrow status-actions">
      <div>
        <AccessEnds
          id="again"
          clock={clock}
          choice={refused?.form.text('ends') ?? first.choice}
          on={refused?.form.text('on') ?? first.on}
          error={faultOf(refused?.error, 'ends')}
          hint="Access starts now. Every device must enroll again."
        />
        <button type="submit">Reactivate {username}</button>
      </div>
    </form>
  );
}
