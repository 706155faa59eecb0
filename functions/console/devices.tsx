// GET /devices: lists the connected devices. Its forms disconnect a device or revoke its
// certificate.

import { AppError } from '@holdfast/kit/app-error';
import { deviceGroupName, FLOWS_ACCOUNT, nameKey } from '@holdfast/kit/names';
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
import { ErrorLogs, errorLogPages } from './error-logs.tsx';

interface DeviceListProps {
  clients: readonly ConnectedClient[];
  clock: Clock;
  /** Adds the actions of an administrator. */
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

/** One row per connected device. */
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
  const columns = mayEnd ? [...COLUMNS, { label: 'Actions', silent: true }] : COLUMNS;
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

function Program({ client: { device, address, framing, node } }: { client: ConnectedClient }) {
  return (
    <span>
      {device === '' ? 'unknown' : device}
      <br />
      <span class="fine">
        {address}
        {framing === 'protobuf' ? ', protobuf' : null}
        {node === undefined ? null : `, node ${node}`}
      </span>
    </span>
  );
}

/** How many use protobuf, if the core reports it. */
function Framings({ clients }: { clients: readonly ConnectedClient[] }) {
  const known = clients.filter(({ framing }) => framing !== null);
  if (known.length === 0) return null;
  const count = known.filter(({ framing }) => framing === 'protobuf').length;
  return (
    <p class="fine">
      {count} of {known.length} {known.length === 1 ? 'connection uses' : 'connections use'} protobuf, the others XML.
    </p>
  );
}

/** Of several core nodes, as last measured by the health module. */
function Nodes({ core = {} }: { core: Readonly<Record<string, unknown>> | undefined }) {
  const { nodes } = core as { nodes?: readonly { node: string; state: string; clients: number }[] };
  if (nodes === undefined) return null;
  const shown = nodes.map(({ node, state, clients }) => `${node} ${state === 'up' ? clients : `(${state})`}`);
  return (
    <p class="fine">
      Connections of each node: {shown.join(', ')}. <a href="/health/core">Core server</a>
    </p>
  );
}

/** As last measured by the health module. */
function Thinning({ core = {} }: { core: Readonly<Record<string, unknown>> | undefined }) {
  const { clients, thinning_seconds: seconds } = core;
  if (typeof clients !== 'number' || typeof seconds !== 'number' || seconds === 0) return null;
  return (
    <p>
      Positions are thinned: with {clients} connections, each device gets the newest position of another one at most
      every {seconds} s. Chat, emergencies and missions are not delayed. To change this, set{' '}
      <code>STREAM_THINNING</code>.
    </p>
  );
}

/** The groups by the names that devices show. */
function formatGroups(groups: readonly string[]): string {
  if (groups.length === 0) return 'none (receives nothing)';
  return groups.map(deviceGroupName).join(', ');
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
          label="Revoke…"
          of={name}
          action="/devices/shut-out"
          button={`Revoke ${name}`}
        >
          <ClientFields client={client} />
          <p>
            This revokes the device's certificate and disconnects it within seconds. It can't connect until {username}{' '}
            enrolls it again. Other devices of {username} stay connected.
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
        <ClientFields client={client} />
        <p>
          The connection ends now. The device reconnects by itself within seconds. To block it, revoke its certificate.
        </p>
      </Confirm>
    </div>
  );
}

function ClientFields({ client: { connection, uid, username } }: { client: ConnectedClient }) {
  return (
    <>
      <input type="hidden" name="connection" value={connection} />
      <input type="hidden" name="uid" value={uid} />
      <input type="hidden" name="username" value={username} />
    </>
  );
}

/** The empty state: no device is connected, or none matches the search. */
export function NoDevices({ search, mayEnd }: { search: string; mayEnd: boolean }) {
  if (search !== '')
    return (
      <Empty>
        <p>
          No devices match “{search}”. The search covers callsign, person, group, team, app and address.{' '}
          <a href="/devices">Show all devices</a>
        </p>
      </Empty>
    );
  return (
    <Empty>
      <p>No devices connected.</p>
      {mayEnd ? (
        <p>
          To add a device, <a href="/people">choose a person</a> or <a href="/people/new">add a person</a>. Then select
          “Add device” to get a code to scan.
        </p>
      ) : null}
    </Empty>
  );
}

const PAGE_SIZE = 50;

const NOTICES = {
  disconnected: 'Device disconnected. It can reconnect while its certificate is active.',
  'shutting-out': (
    <>
      The certificate is revoked, or will be as soon as the core responds. Confirmation is pending:{' '}
      <a href="/certificates?status=revoked">see its status</a>.
    </>
  ),
  'log-deleted': 'Error log deleted.',
  gone: 'That device is no longer connected. To block it, revoke its certificate.',
};

const USERNAME = /^[\w.-]{1,64}$/;

/**
 * Devices name themselves, so another device of the same person may have used the name of this one.
 */
function revokedNotice(person: string) {
  const known = USERNAME.test(person);
  const search = new URLSearchParams({ search: person });
  return (
    <>
      Device{known ? ` of ${person}` : ''} disconnected and its certificate revoked. If it reconnects, deactivate{' '}
      {known ? <a href={`/people?${search.toString()}`}>{person}</a> : 'the person'}. Another of their devices may have
      reported a wrong name.
    </>
  );
}

/** Adds the routes of this file. */
export function devicesPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);
  errorLogPages(app, deps);

  pages.get('/devices', { access: 'viewer' }, function showDevices(c) {
    return showPage(c, deps);
  });

  pages.post('/devices/disconnect', { access: 'admin' }, async function disconnect(c) {
    const form = await formOf(c);
    const result = await attempt(
      async () => disconnectClient(deps, actorOf(c), await connectionOf(form, deps)),
      'not_found',
    );
    return respond(c, result.refused, 'disconnected');
  });

  pages.post('/devices/shut-out', { access: 'admin', area: 'people' }, async function revokeDevice(c) {
    const form = await formOf(c);
    const result = await attempt(
      async () => shutOutDevice(actingIn(c, deps), await connectionOf(form, deps)),
      'not_found',
    );
    if (result.refused !== undefined) return respond(c, result.refused, '');
    const { client, revocations } = result.done;
    if (revocations.length === 0) return goTo(c, `/certificates?${chooseQuery(client)}`);
    const isProven = revocations.every(({ state }) => state === 'revoked');
    const done = { done: isProven ? 'shut-out' : 'shutting-out', person: client.username };
    return goTo(c, `/devices?${new URLSearchParams(done).toString()}`);
  });

  function respond(c: PageContext, refused: AppError | undefined, word: string): Response | Promise<Response> {
    if (refused === undefined) return goTo(c, `/devices?done=${word}`);
    if (refused.code === 'not_found') return goTo(c, '/devices?done=gone');
    return showPage(c, deps, refused);
  }
}

/**
 * The connection that the form showed. When it has ended: the current one of the same device and
 * person. Devices choose their uid, so the person must match too. Throws `not_found`.
 */
async function connectionOf(form: Form, deps: Deps): Promise<string> {
  const [connection, uid, username] = ['connection', 'uid', 'username'].map((name) => form.exact(name));
  const clients = await connectedClients(deps);
  const found =
    clients.find((each) => each.connection === connection) ??
    clients.find((each) => each.uid === uid && each.username === username);
  if (found === undefined) throw new AppError('not_found', 'That device is no longer connected.');
  return found.connection;
}

/**
 * The query of the certificates page that asks the administrator to choose the device's
 * certificate.
 */
function chooseQuery({ username }: ConnectedClient): string {
  return new URLSearchParams({ search: username, status: 'active', done: 'which' }).toString();
}

async function showPage(c: PageContext, deps: Deps, refused?: AppError): Promise<Response> {
  const search = (c.req.query('search') ?? '').trim().slice(0, 200);
  const page = pageNumber(c.req.query('page'));
  const [result, states, logs] = await Promise.all([
    attempt(() => deps.together('clients', () => connectedClients(deps))),
    deps.health.states(),
    attempt(() => deps.coreContents.errorLogs()),
  ]);
  const all = result.done ?? [];
  const core = states.find(({ module }) => module === 'core')?.measurement?.data;
  const found = all.filter((client) => matches(client, search.toLowerCase()));
  const mayEnd = isAdmin(c);
  const clock = clockOf(deps);
  const body = (
    <>
      <Notice c={c} sentences={{ ...NOTICES, 'shut-out': revokedNotice(c.req.query('person') ?? '') }} />
      <Problem error={refused} />
      <Search action="/devices" label="Search devices" value={search} placeholder="Callsign, person, group, address" />
      <section id="devices" {...(refused === undefined ? { 'data-live': 'self', 'data-every': '5' } : {})}>
        {result.refused === undefined ? null : (
          <Missing>
            Couldn't load the connected devices. {result.refused.message} This page retries automatically.
          </Missing>
        )}
        {result.refused !== undefined ? null : found.length === 0 ? (
          <NoDevices search={search} mayEnd={mayEnd} />
        ) : (
          <>
            <DeviceList clients={found.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE)} clock={clock} mayEnd={mayEnd} />
            <Pager url={new URL(c.req.url)} page={page} pageSize={PAGE_SIZE} count={found.length} />
            <Framings clients={found} />
            <Nodes core={core} />
            <Thinning core={core} />
          </>
        )}
      </section>
      <noscript>
        <p class="fine">Reload this page to see changes.</p>
      </noscript>
      <ErrorLogs logs={logs} clock={clock} isAdmin={mayEnd} />
    </>
  );
  const actions = mayEnd ? (
    <a class="button" href="/people">
      Add device
    </a>
  ) : undefined;
  return framed(c, deps, { title: 'Connected devices', current: 'devices', body, refused, actions });
}

function matches(
  { callsign, username, uid, groups, team, role, device, address, node = '' }: ConnectedClient,
  text: string,
): boolean {
  return [callsign, username, uid, team, role, device, address, node, ...groups].some((each) =>
    each.toLowerCase().includes(text),
  );
}
