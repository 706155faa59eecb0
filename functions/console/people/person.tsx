// GET /people/{id}: everything about one person, in the order in which it is needed: may they come in, with which devices, and
// what can be changed. Each change is a form of its own; one that is refused comes back open, as it was filled in.

import { nameKey, WEBADMIN } from '@holdfast/kit/names';
import { isHidden, type UserView, toUserView } from '../../../shared/devices/accounts.ts';
import { certificatesOfUser } from '../../../shared/devices/certificates/of-user.ts';
import type { CertificateView } from '../../../shared/devices/certificates/view.ts';
import { type ConnectedClient, connectedClients } from '../../../shared/devices/connections/clients.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import type { Account } from '../../../shared/identity/port.ts';
import { channelNames } from '../../../shared/people/groups.ts';
import { CertificateList, isOnItsWay, REVOCATION_SENTENCES } from '../../pages/certificates/list.tsx';
import { attempt } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { faceOf, isAdmin, type PageContext } from '../../pages/page-routes.ts';
import { Card, Facts } from '../../pages/parts/card.tsx';
import { Missing, Notice, Problem, StatusBadge, Warning } from '../../pages/parts/notice.tsx';
import { type Clock, clockOf, Distance, When } from '../../pages/parts/time.tsx';
import type { Refusal } from './fields.tsx';
import { PersonForms } from './forms.tsx';
import { peoplePages, personOf } from './routes.ts';
import { formatEnd, PersonStatus, ROLE_MEANINGS, ROLE_NAMES } from './account-status.tsx';

/**
 * The devices of a person: what is connected now, and the certificates that let devices in. While core or database is away it is
 * said what is missing.
 */
export interface Devices {
  certificates: CertificateView[];
  /** Why these are not all. */
  problem: string | undefined;
  connected: ConnectedClient[];
  /** Why nobody knows who is connected. */
  unknown: string | undefined;
}

export async function devicesOf(deps: Deps, account: Account): Promise<Devices> {
  const [{ certs, certs_error: problem }, clients] = await Promise.all([
    certificatesOfUser(deps, account),
    attempt(() => deps.together('clients', () => connectedClients(deps))),
  ]);
  const connected = clients.done?.filter(({ username }) => nameKey(username) === nameKey(account.username)) ?? [];
  return { certificates: certs, problem, connected, unknown: clients.refused?.message };
}

interface PersonDevicesProps {
  c: PageContext;
  id: number;
  devices: Devices;
  clock: Clock;
  canChange: boolean;
}

export function PersonDevices({ c, id, devices, clock, canChange }: PersonDevicesProps) {
  const { certificates, problem, connected, unknown } = devices;
  return (
    <div id="devices" {...(certificates.some(isOnItsWay) ? { 'data-live': 'self', 'data-every': '5' } : {})}>
      <Card title="Devices">
        {unknown === undefined ? (
          <Connected connected={connected} clock={clock} />
        ) : (
          <Missing>Who is connected is not known now: {unknown}</Missing>
        )}
        {connected.length > 0 && faceOf(c) === 'console' ? (
          <p class="onward">
            <a href="/devices">All connected devices</a>
          </p>
        ) : null}
        {problem === undefined ? null : (
          <Missing>These are the certificates that Holdfast itself has made, perhaps not all: {problem}</Missing>
        )}
        {certificates.length > 0 ? (
          <CertificateList
            certificates={certificates}
            clock={clock}
            from={`/people/${id}`}
            mayRevoke={canChange}
            caption="Certificates, newest first"
          />
        ) : (
          problem === undefined && <p class="fine">No device has a certificate.</p>
        )}
      </Card>
    </div>
  );
}

function Connected({ connected, clock }: { connected: ConnectedClient[]; clock: Clock }) {
  if (connected.length === 0) return <p class="fine">None is connected now.</p>;
  return (
    <ul class="connected">
      {connected.map(({ uid, callsign, device, address, since }) => (
        <li>
          <StatusBadge status="ok">Connected</StatusBadge> <strong>{callsign === '' ? uid : callsign}</strong>{' '}
          <span class="fine">
            {device} from {address}
            {since === null ? null : (
              <>
                , <Distance at={since} clock={clock} />
              </>
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}

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
  { refusal, reported }: { refusal?: Refusal; reported?: ReturnType<typeof Warning> } = {},
): Promise<Response> {
  const isForPeople = !isHidden(account, deps);
  const canChange = isForPeople && isAdmin(c);
  const [devices, channels] = await Promise.all([devicesOf(deps, account), canChange ? channelNames(deps) : []]);
  const user = toUserView(account, deps);
  const clock = clockOf(deps);
  const inForce = devices.certificates.filter(({ state }) => state === 'active').length;
  const { id, username, name } = user;
  const shown = { c, user, clock, refusal, isFirst: nameKey(username) === WEBADMIN };
  const body = (
    <>
      <Notice c={c} sentences={DONE} />
      {reported}
      <Problem error={refusal?.error} />
      {isForPeople ? null : (
        <Warning>
          This account belongs to a program or to administration: it is not changed here. Programs are under{' '}
          <a href="/service-accounts">Service accounts</a>.
        </Warning>
      )}
      <PersonStatus {...shown} canChange={canChange} certificates={inForce} />
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

function About({ user, clock }: { user: UserView; clock: ReturnType<typeof clockOf> }) {
  const { name, email, groups, role, expires_at: end } = user;
  return (
    <Facts
      of={{
        Name: name === '' ? undefined : name,
        'E-mail': email === '' ? undefined : email,
        Groups: groups.length === 0 ? 'none' : groups.join(', '),
        Access: formatEnd(end, clock),
        Role: `${ROLE_NAMES[role]}: ${ROLE_MEANINGS[role]}`,
      }}
    />
  );
}
