// GET /people/{id}: everything about one person, in the order in which it is needed: may they come in, with which devices, and
// what can be changed. Each change is a form of its own; one that is refused comes back open, as it was filled in.

import { nameKey, WEBADMIN } from '../../shared/domain/names.ts';
import type { Deps } from '../../shared/http/deps.ts';
import type { App } from '../../shared/http/env.ts';
import type { Account } from '../../shared/ports/identity.ts';
import { isHidden, type ShownUser, shownUser } from '../../shared/verbs/people.ts';
import { REVOCATION_SENTENCES } from '../pages/certificates/certificate-words.tsx';
import { clockOf } from '../pages/clock.ts';
import { framed } from '../pages/frame.tsx';
import { isAdmin, type PageContext } from '../pages/page-routes.ts';
import { Card, Facts } from '../pages/parts/card.tsx';
import { Notice, Problem, Warning } from '../pages/parts/notice.tsx';
import { When } from '../pages/parts/time.tsx';
import { peoplePages, personOf } from './people-pages.ts';
import { devicesOf, PersonDevices } from './person-devices.tsx';
import { PersonForms } from './person-forms.tsx';
import type { Refusal } from './person-refusal.ts';
import { PersonStanding } from './person-standing.tsx';
import { endInWords, ROLE_MEANINGS, ROLE_NAMES } from './person-words.tsx';
import { channelNames } from '../../shared/verbs/list-channels.ts';

const DONE = {
  created: 'Created. Next: enroll a device.',
  details: 'Saved.',
  expiry: 'Saved: access ends as it stands below.',
  groups: 'Saved. Connected devices take the new groups now, at the latest within 75 seconds.',
  role: 'Saved: the role is in force now.',
  password: 'The password is set. Whoever was signed in with the old one is signed out.',
  deactivated: 'Deactivated: signed out everywhere, certificates revoked, enrollment withdrawn.',
  reactivated: 'May come in again. Certificates do not come back: enroll a device.',
  ...REVOCATION_SENTENCES,
} as const;

/** Adds the route of this file. */
export function personPage(app: App, deps: Deps): void {
  peoplePages(app, deps).get('/people/:id', 'viewer', async function showOne(c) {
    return showPerson(c, deps, await personOf(c, deps, { hidden: true }));
  });
}

/** `said`: more than a sentence to say, above everything. */
export async function showPerson(
  c: PageContext,
  deps: Deps,
  account: Account,
  { refusal, said }: { refusal?: Refusal; said?: ReturnType<typeof Warning> } = {},
): Promise<Response> {
  const isForPeople = !isHidden(account, deps);
  const canChange = isForPeople && isAdmin(c);
  const [devices, channels] = await Promise.all([devicesOf(deps, account), canChange ? channelNames(deps) : []]);
  const user = shownUser(account, deps);
  const clock = clockOf(deps);
  const inForce = devices.certificates.filter(({ state }) => state === 'active').length;
  const { id, username, name } = user;
  const shown = { c, user, clock, refusal, isFirst: nameKey(username) === WEBADMIN };
  const body = (
    <>
      <Notice c={c} sentences={DONE} />
      {said}
      <Problem error={refusal?.error} />
      {isForPeople ? null : (
        <Warning>
          This account belongs to a program or to administration: it is not changed here. Programs are under{' '}
          <a href="/service-accounts">Service accounts</a>.
        </Warning>
      )}
      <PersonStanding {...shown} canChange={canChange} certificates={inForce} />
      <PersonDevices c={c} devices={devices} clock={clock} canChange={canChange} id={id} />
      <Card title="About">
        {canChange ? <PersonForms {...shown} channels={channels} /> : <About user={user} clock={clock} />}
        <Facts
          of={{
            'User name': <code>{username}</code>,
            'Last sign-in': <When at={user.last_login} clock={clock} relative />,
            Created: user.created_at === null ? undefined : <When at={user.created_at} clock={clock} />,
          }}
        />
      </Card>
      <p class="onward">
        <a href="/people">All people</a>
      </p>
    </>
  );
  const title = name.trim() === '' ? username : name;
  const heading = (
    <>
      {title}
      {title === username ? null : <span class="fine user"> {username}</span>}
    </>
  );
  return framed(c, deps, { title, heading, current: 'people', body, refused: refusal?.error });
}

function About({ user, clock }: { user: ShownUser; clock: ReturnType<typeof clockOf> }) {
  const { name, email, groups, role, expires_at: end } = user;
  return (
    <Facts
      of={{
        Name: name === '' ? undefined : name,
        'E-mail': email === '' ? undefined : email,
        Groups: groups.length === 0 ? 'none' : groups.join(', '),
        Access: endInWords(end, clock),
        Role: `${ROLE_NAMES[role]}: ${ROLE_MEANINGS[role]}`,
      }}
    />
  );
}
