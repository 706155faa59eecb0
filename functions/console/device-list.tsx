// The devices on the stream, one row each: who it is, what with, from where, and how it is ended.

import { CHANNEL_PREFIX, FLOWS_ACCOUNT, nameKey } from '../../shared/domain/names.ts';
import type { ConnectedClient } from '../../shared/verbs/connected-clients.ts';
import { OwnerLink } from '../pages/certificates/owner-link.tsx';
import type { Clock } from '../pages/clock.ts';
import { Confirm } from '../pages/parts/confirm.tsx';
import { Empty, Table } from '../pages/parts/table.tsx';
import { Distance } from '../pages/parts/time.tsx';

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

export function DeviceList({ clients, clock, mayEnd }: DeviceListProps) {
  const rows = clients.map((client) => [
    <Name client={client} />,
    <OwnerLink username={client.username} />,
    groupsInWords(client.groups),
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
function groupsInWords(groups: readonly string[]): string {
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
