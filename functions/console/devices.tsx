// /devices: who is connected to the stream now, and how somebody is thrown out in two taps.

import { AppError } from '@holdfast/kit/app-error';
import { CHANNEL_PREFIX, FLOWS_ACCOUNT, nameKey } from '@holdfast/kit/names';
import {
  type ConnectedClient,
  connectedClients,
  disconnectClient,
  shutOutDevice,
} from '../../shared/devices/connections/clients.ts';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { goTo } from '../../shared/http/page.tsx';
import { actingIn, actorOf } from '../../shared/http/sign-in.ts';
import { OwnerLink } from '../pages/certificates/list.tsx';
import { attempt, type Form, formOf } from '../pages/form.ts';
import { framed } from '../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Confirm, Search } from '../pages/parts/card.tsx';
import { Missing, Notice, Problem } from '../pages/parts/notice.tsx';
import { Empty, pageNumber, Pager, Table } from '../pages/parts/table.tsx';
import { type Clock, clockOf, Distance } from '../pages/parts/time.tsx';

interface DeviceListProps {
  clients: readonly ConnectedClient[];
  clock: Clock;
  /** May end connections. */
  mayEnd: boolean;
}

const COLUMNS = [
  { label: 'Callsign' },
  { label: 'Person' },
  { label: 'Groups' },
  { label: 'Team, role' },
  { label: 'App, address' },
  { label: 'Connected' },
  { label: 'Last report' },
] as const;

/** The devices on the stream, one row each: who it is, what with, from where, and how it is ended. */
export function DeviceList({ clients, clock, mayEnd }: DeviceListProps) {
  const rows = clients.map((client) => [
    <Name client={client} />,
    <OwnerLink username={client.username} />,
    formatGroups(client.groups),
    [client.team, client.role].filter((each) => each !== '').join(', '),
    <Program client={client} />,
    client.since === null ? '' : <Distance at={client.since} clock={clock} />,
    client.lastReport === null ? 'none yet' : <Distance at={client.lastReport} clock={clock} />,
    ...(mayEnd ? [<Ends client={client} />] : []),
  ]);
  const columns = mayEnd ? [...COLUMNS, { label: 'End it', silent: true }] : COLUMNS;
  return (
    <div class="pairs terse">
      <Table caption="Connected devices by callsign" columns={columns} rows={rows} />
    </div>
  );
}

function Name({ client: { callsign, uid } }: { client: ConnectedClient }) {
  return (
    <>
      {callsign === '' ? 'No callsign yet' : callsign}
      <br /> <span class="fine uid">{uid}</span>
    </>
  );
}

function Program({ client: { device, address } }: { client: ConnectedClient }) {
  return (
    <span>
      {device === '' ? 'not told yet' : device}
      <br />
      <span class="fine">{address}</span>
    </span>
  );
}

/** As devices show them. */
function formatGroups(groups: readonly string[]): string {
  if (groups.length === 0) return 'none: this device receives nothing';
  const names = groups.map((name) => (name.startsWith(CHANNEL_PREFIX) ? name.slice(CHANNEL_PREFIX.length) : name));
  return names.join(', ');
}

function Ends({ client }: { client: ConnectedClient }) {
  const { uid, connection, username, callsign } = client;
  const name = callsign === '' ? uid : callsign;
  const isOurs = nameKey(username) === FLOWS_ACCOUNT;
  return (
    <div class="row ends">
      {isOurs ? null : (
        <Confirm
          id={`out-${connection}`}
          label="Shut out…"
          of={name}
          action="/devices/shut-out"
          button={`Shut ${name} out`}
        >
          <Which client={client} />
          <p>
            The certificate of this device is revoked, and its connection ends within seconds. It cannot come back until{' '}
            {username} enrolls it anew. Other devices of {username} stay.
          </p>
        </Confirm>
      )}
      <Confirm
        id={`end-${connection}`}
        label="Disconnect…"
        of={name}
        action="/devices/disconnect"
        button={`Disconnect ${name}`}
        danger={false}
      >
        <Which client={client} />
        <p>The connection ends now. The device comes back by itself within seconds: to keep it out, shut it out.</p>
      </Confirm>
    </div>
  );
}

function Which({ client: { connection, uid, username } }: { client: ConnectedClient }) {
  return (
    <>
      <input type="hidden" name="connection" value={connection} />
      <input type="hidden" name="uid" value={uid} />
      <input type="hidden" name="username" value={username} />
    </>
  );
}

/** Nobody is connected, or nobody fits. */
export function NoDevices({ search, mayEnd }: { search: string; mayEnd: boolean }) {
  if (search !== '')
    return (
      <Empty>
        <p>
          No connected device has “{search}” in its callsign, person, group, team, app or address.{' '}
          <a href="/devices">Show all devices</a>
        </p>
      </Empty>
    );
  return (
    <Empty>
      <p>No device is connected now.</p>
      {mayEnd ? (
        <p>
          To let one in: <a href="/people">choose a person</a>, or <a href="/people/new">add one</a>, then “Enroll a
          device” shows a code to scan.
        </p>
      ) : null}
    </Empty>
  );
}

const ON_A_PAGE = 50;

const SENTENCES = {
  disconnected: 'The connection is ended. The device may come back as long as its certificate is good.',
  'shutting-out': (
    <>
      The certificate is revoked at the core, or will be as soon as the core answers. The proof is still to come:{' '}
      <a href="/certificates?status=revoked">see how far it is</a>.
    </>
  ),
  gone: 'That device is not connected any more. To keep it out, revoke its certificate.',
};

const USERNAME = /^[\w.-]{1,64}$/;

/** A device names itself: another one of the same person may have taken the name of this one. */
function shutOutSentence(person: string) {
  const known = USERNAME.test(person);
  const search = new URLSearchParams({ search: person });
  return (
    <>
      The device{known ? ` of ${person}` : ''} is shut out: its certificate is revoked and its connection ended. If it
      comes back, deactivate {known ? <a href={`/people?${search.toString()}`}>{person}</a> : 'the person'}: another
      device of theirs may have told a wrong name.
    </>
  );
}

/** Adds the routes of this file. */
export function devicesPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);

  pages.get('/devices', { access: 'viewer' }, function showDevices(c) {
    return showPage(c, deps);
  });

  pages.post('/devices/disconnect', { access: 'admin' }, async function disconnect(c) {
    const form = await formOf(c);
    const tried = await attempt(async () => disconnectClient(deps, actorOf(c), await meantBy(form, deps)), 'not_found');
    return afterwards(c, tried.refused, 'disconnected');
  });

  pages.post('/devices/shut-out', { access: 'admin', area: 'people' }, async function shutOut(c) {
    const form = await formOf(c);
    const tried = await attempt(async () => shutOutDevice(actingIn(c, deps), await meantBy(form, deps)), 'not_found');
    if (tried.refused !== undefined) return afterwards(c, tried.refused, '');
    const { client, revocations } = tried.done;
    if (revocations.length === 0) return goTo(c, `/certificates?${which(client)}`);
    const isProven = revocations.every(({ state }) => state === 'revoked');
    const done = { done: isProven ? 'shut-out' : 'shutting-out', person: client.username };
    return goTo(c, `/devices?${new URLSearchParams(done).toString()}`);
  });

  function afterwards(c: PageContext, refused: AppError | undefined, word: string): Response | Promise<Response> {
    if (refused === undefined) return goTo(c, `/devices?done=${word}`);
    if (refused.code === 'not_found') return goTo(c, '/devices?done=gone');
    return showPage(c, deps, refused);
  }
}

/**
 * The name of the connection that was shown; where that has ended, of the one that the same device of the same person has now.
 * Devices choose their uid: nobody is taken for somebody else who has chosen the same.
 */
async function meantBy(form: Form, deps: Deps): Promise<string> {
  const [connection, uid, username] = ['connection', 'uid', 'username'].map((name) => form.exact(name));
  const clients = await connectedClients(deps);
  const found =
    clients.find((each) => each.connection === connection) ??
    clients.find((each) => each.uid === uid && each.username === username);
  if (found === undefined) throw new AppError('not_found', 'That device is not connected any more.');
  return found.connection;
}

/** Which certificate it has come with nobody can tell: a person can. */
function which({ username }: ConnectedClient): string {
  return new URLSearchParams({ search: username, status: 'active', done: 'which' }).toString();
}

async function showPage(c: PageContext, deps: Deps, refused?: AppError): Promise<Response> {
  const search = (c.req.query('search') ?? '').trim().slice(0, 200);
  const page = pageNumber(c.req.query('page'));
  const result = await attempt(() => deps.together('clients', () => connectedClients(deps)));
  const all = result.done ?? [];
  const found = all.filter((client) => fits(client, search.toLowerCase()));
  const mayEnd = isAdmin(c);
  const clock = clockOf(deps);
  const body = (
    <>
      <Notice c={c} sentences={{ ...SENTENCES, 'shut-out': shutOutSentence(c.req.query('person') ?? '') }} />
      <Problem error={refused} />
      <Search action="/devices" label="Search devices" value={search} placeholder="Callsign, person, group, address" />
      <section id="devices" {...(refused === undefined ? { 'data-live': 'self', 'data-every': '5' } : {})}>
        {result.refused === undefined ? null : (
          <Missing>
            Who is connected cannot be seen now: {result.refused.message} This page tries again by itself.
          </Missing>
        )}
        {result.refused !== undefined ? null : found.length === 0 ? (
          <NoDevices search={search} mayEnd={mayEnd} />
        ) : (
          <>
            <DeviceList clients={found.slice((page - 1) * ON_A_PAGE, page * ON_A_PAGE)} clock={clock} mayEnd={mayEnd} />
            <Pager url={new URL(c.req.url)} page={page} pageSize={ON_A_PAGE} count={found.length} />
          </>
        )}
      </section>
      <noscript>
        <p class="fine">Reload the page to see who has come and gone.</p>
      </noscript>
    </>
  );
  const actions = mayEnd ? (
    <a class="button" href="/people">
      Enroll a device
    </a>
  ) : undefined;
  return framed(c, deps, { title: 'Connected devices', current: 'devices', body, refused, actions });
}

function fits(
  { callsign, username, uid, groups, team, role, device, address }: ConnectedClient,
  text: string,
): boolean {
  return [callsign, username, uid, team, role, device, address, ...groups].some((each) =>
    each.toLowerCase().includes(text),
  );
}
