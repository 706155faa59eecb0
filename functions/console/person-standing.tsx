// Whether a person may come in, and the two deeds that decide it: enroll a device, or put the person out.

import type { ShownUser } from '../../shared/verbs/people.ts';
import type { Clock } from '../pages/clock.ts';
import { faultOf } from '../pages/form.ts';
import type { PageContext } from '../pages/page-routes.ts';
import { Card } from '../pages/parts/card.tsx';
import { Confirm } from '../pages/parts/confirm.tsx';
import { AccessEnds, endShown } from './access-ends.tsx';
import type { Refusal } from './person-refusal.ts';
import { StandingBadge, StandingInWords, standingOf } from './person-words.tsx';

interface PersonStandingProps {
  c: PageContext;
  user: ShownUser;
  clock: Clock;
  refusal: Refusal | undefined;
  /** webadmin stays. */
  isFirst: boolean;
  canChange: boolean;
  /** In force. */
  certificates: number;
}

export function PersonStanding(props: PersonStandingProps) {
  const { user, clock, canChange, isFirst } = props;
  const isIn = user.is_active && standingOf(user, clock.now) !== 'expired';
  return (
    <Card>
      <div class="standing">
        <StandingBadge user={user} clock={clock} />
        <p>
          <StandingInWords user={user} clock={clock} />
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

function Deactivation({ c, user, certificates }: PersonStandingProps) {
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

function Reactivation({ user, clock, refusal }: PersonStandingProps) {
  const { id, username, expires_at: end } = user;
  const isExpired = standingOf(user, clock.now) === 'expired';
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
