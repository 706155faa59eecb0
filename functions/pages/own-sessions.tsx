// Where somebody is signed in: one row per session, which of them this one is, and the end of one or of all.

import type { Page } from '../../shared/ports/identity.ts';
import type { Session } from '../../shared/ports/sign-ins.ts';
import { browserName } from './browser-name.ts';
import type { Clock } from './clock.ts';
import { Card } from './parts/card.tsx';
import { Confirm } from './parts/confirm.tsx';
import { Pager, Table } from './parts/table.tsx';
import { When } from './parts/time.tsx';

export const SESSIONS_ON_PAGE = 50;

interface OwnSessionsProps {
  url: URL;
  page: number;
  sessions: Page<Session>;
  /** The id of the one that asks. */
  current: string;
  clock: Clock;
}

export function OwnSessions({ url, page, sessions: { results, count }, current, clock }: OwnSessionsProps) {
  return (
    <Card title="Where you are signed in" id="sessions">
      <Table
        caption="Your sessions"
        columns={[
          { label: 'Browser' },
          { label: 'Address' },
          { label: 'Signed in' },
          { label: 'Ends' },
          { label: 'End it', silent: true },
        ]}
        rows={results.map((session) => [
          session.id === current ? (
            <>
              {browserName(session.userAgent)} <strong>(this one)</strong>
            </>
          ) : (
            browserName(session.userAgent)
          ),
          session.address,
          <When at={session.createdAt} clock={clock} relative />,
          <When at={session.expiresAt} clock={clock} />,
          <EndOne session={session} current={current} />,
        ])}
      />
      <Pager url={url} page={page} pageSize={SESSIONS_ON_PAGE} count={count} />
      <Confirm id="end-all" label="Sign out everywhere…" action="/account/sessions/end" button="End all of my sessions">
        <p>
          Every browser that you are signed in with is signed out, this one too. Devices and API tokens go on. If you do
          not know one of the sessions, change your password as well.
        </p>
      </Confirm>
    </Card>
  );
}

/** No question: whoever it was signs in again. */
function EndOne({ session: { id, userAgent, address }, current }: { session: Session; current: string }) {
  if (id === current) return null;
  return (
    <form method="post" action={`/account/sessions/${encodeURIComponent(id)}/end`}>
      <button
        type="submit"
        class="quiet small"
        aria-label={`End it: the session of ${browserName(userAgent)} at ${address}`}
      >
        End it
      </button>
    </form>
  );
}
