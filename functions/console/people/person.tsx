// GET /people/{id}: shows one person: status, devices, and the forms that change the account. A
// refused form comes back open, with the values that were entered.

import { nameKey, WEBADMIN } from '@holdfast/kit/names';
import { isHidden, type UserView, toUserView } from '../../../shared/devices/accounts.ts';
import { certificatesOfUser } from '../../../shared/devices/certificates/of-user.ts';
import type { CertificateView } from '../../../shared/devices/certificates/view.ts';
import { type ConnectedClient, connectedClients } from '../../../shared/devices/connections/clients.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import type { Account } from '../../../shared/identity/port.ts';
import { channelNames } from '../../../shared/people/groups.ts';
import { CertificateList, isPending, REVOCATION_NOTICES } from '../../pages/certificates/list.tsx';
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

/** A person's connections and certificates, with the reason where either is incomplete. */
export interface Devices {
  certificates: CertificateView[];
  /** Why the certificates are incomplete. */
  problem: string | undefined;
  connected: ConnectedClient[];
  /** Why the connections are unknown. */
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
    <div id="devices" {...(certificates.some(isPending) ? { 'data-live': 'self', 'data-every': '5' } : {})}>
      <Card title="Devices">
        {unknown === undefined ? (
          <Connected connected={connected} clock={clock} />
        ) : (
          <Missing>Couldn't load connections. {unknown}</Missing>
        )}
        {connected.length > 0 && faceOf(c) === 'console' ? (
          <p class="onward">
            <a href="/devices">All connected devices</a>
          </p>
        ) : null}
        {problem === undefined ? null : (
          <Missing>This list may be incomplete: it shows only certificates that Holdfast issued. {problem}</Missing>
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
          problem === undefined && <p class="fine">No certificates yet. Add a device to issue one.</p>
        )}
      </Card>
    </div>
  );
}

function Connected({ connected, clock }: { connected: ConnectedClient[]; clock: Clock }) {
  if (connected.length === 0) return <p class="fine">No devices connected.</p>;
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
  created: 'Person added. Next, add a device.',
  details: 'Changes saved.',
  expiry: 'Expiry saved.',
  groups: 'Groups saved. Connected devices apply them within 75 seconds.',
  role: 'Role saved. It applies now.',
  password: 'Password set. All earlier sessions have ended.',
  deactivated: 'Account deactivated: sessions ended, certificates revoked, enrollment canceled.',
  reactivated: 'Account reactivated. Its certificates stay revoked, so add a device.',
  ...REVOCATION_NOTICES,
} as const;

/** Adds the route of this file. */
export function personPage(app: App, deps: Deps): void {
  peoplePages(app, deps).get('/people/:id', 'viewer', async function showOne(c) {
    return showPerson(c, deps, await personOf(c, deps, { hidden: true }));
  });
}

/** `message` is shown above everything. */
export async function showPerson(
  c: PageContext,
  deps: Deps,
  account: Account,
  { refusal, message }: { refusal?: Refusal; message?: ReturnType<typeof Warning> } = {},
): Promise<Response> {
  const isPerson = !isHidden(account, deps);
  const canChange = isPerson && isAdmin(c);
  const [devices, channels] = await Promise.all([devicesOf(deps, account), canChange ? channelNames(deps) : []]);
  const user = toUserView(account, deps);
  const clock = clockOf(deps);
  const activeCertificates = devices.certificates.filter(({ state }) => state === 'active').length;
  const { id, username, name } = user;
  const shown = { c, user, clock, refusal, isFirst: nameKey(username) === WEBADMIN };
  const body = (
    <>
      <Notice c={c} sentences={DONE} />
      {message}
      <Problem error={refusal?.error} />
      {isPerson ? null : (
        <Warning>
          This account belongs to a program or the stack and can't be changed here. For programs, open{' '}
          <a href="/service-accounts">Service accounts</a>.
        </Warning>
      )}
      <PersonStatus {...shown} canChange={canChange} certificates={activeCertificates} />
      <PersonDevices c={c} devices={devices} clock={clock} canChange={canChange} id={id} />
      <Card title="Account">
        {canChange ? <PersonForms {...shown} channels={channels} /> : <About user={user} clock={clock} />}
        <Facts
          of={{
            Username: <code>{username}</code>,
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
        Email: email === '' ? undefined : email,
        Groups: groups.length === 0 ? 'none' : groups.join(', '),
        Access: formatEnd(end, clock),
        Role: `${ROLE_NAMES[role]}: ${ROLE_MEANINGS[role]}`,
      }}
    />
  );
}
