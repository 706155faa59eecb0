// The devices of a person: what is connected now, and the certificates that let devices in. While core or database is away it is
// said what is missing.

import { nameKey } from '../../shared/domain/names.ts';
import type { Deps } from '../../shared/http/deps.ts';
import type { Status } from '../../shared/domain/status.ts';
import type { CoreClient } from '../../shared/ports/core.ts';
import type { Account } from '../../shared/ports/identity.ts';
import { certificatesOfUser } from '../../shared/verbs/certificates-of-user.ts';
import type { CertificateState, ShownCertificate } from '../../shared/verbs/shown-certificate.ts';
import type { Clock } from '../pages/clock.ts';
import { attempt } from '../pages/form.ts';
import { faceOf, type PageContext } from '../pages/page-routes.ts';
import { Card } from '../pages/parts/card.tsx';
import { Confirm } from '../pages/parts/confirm.tsx';
import { Missing } from '../pages/parts/notice.tsx';
import { StatusBadge } from '../pages/parts/status.tsx';
import { Table } from '../pages/parts/table.tsx';
import { Distance, When } from '../pages/parts/time.tsx';

export interface Devices {
  certificates: ShownCertificate[];
  /** Why these are not all. */
  problem: string | undefined;
  connected: CoreClient[];
  /** Why nobody knows who is connected. */
  unknown: string | undefined;
}

export async function devicesOf(deps: Deps, account: Account): Promise<Devices> {
  const [{ certs, certs_error: problem }, clients] = await Promise.all([
    certificatesOfUser(deps, account),
    attempt(() => deps.core.clients()),
  ]);
  const connected = clients.done?.filter(({ username }) => nameKey(username) === nameKey(account.username)) ?? [];
  return { certificates: certs, problem, connected, unknown: clients.refused?.message };
}

const STATES: Record<CertificateState, [status: Status, words: string]> = {
  active: ['ok', 'In force'],
  expired: ['note', 'Expired'],
  revoking: ['warning', 'Being revoked'],
  revoked: ['note', 'Revoked'],
  revocation_failed: ['critical', 'Not revoked'],
};

interface PersonDevicesProps {
  c: PageContext;
  id: number;
  devices: Devices;
  clock: Clock;
  canChange: boolean;
}

export function PersonDevices({ c, id, devices, clock, canChange }: PersonDevicesProps) {
  const { certificates, problem, connected, unknown } = devices;
  const changes = certificates.some(({ state }) => state === 'revoking');
  return (
    <div id="devices" {...(changes ? { 'data-live': 'self', 'data-every': '5' } : {})}>
      <Card title="Devices">
        {unknown === undefined ? <Connected c={c} connected={connected} clock={clock} /> : null}
        {unknown === undefined ? null : <Missing>Who is connected is not known now: {unknown}</Missing>}
        {problem === undefined ? null : (
          <Missing>These are the certificates that Holdfast itself has made, perhaps not all: {problem}</Missing>
        )}
        {certificates.length === 0 ? (
          problem === undefined && <p class="fine">No device has a certificate.</p>
        ) : (
          <Table
            caption="Certificates, newest first"
            columns={[
              { label: 'Certificate' },
              { label: 'State' },
              { label: 'Good until' },
              { label: 'Issued' },
              ...(canChange ? [{ label: 'Revoke', silent: true }] : []),
            ]}
            rows={certificates.map((each) => rowOf(each, { clock, canChange, id }))}
          />
        )}
      </Card>
    </div>
  );
}

function Connected({ c, connected, clock }: { c: PageContext; connected: CoreClient[]; clock: Clock }) {
  if (connected.length === 0) return <p class="fine">None is connected now.</p>;
  return (
    <ul class="plain">
      {connected.map(({ uid, connection, callsign, device, address, since }) => (
        <li>
          <StatusBadge status="ok">Connected</StatusBadge> <strong>{callsign || uid || connection}</strong> {device}{' '}
          from {address}
          {since === null ? null : (
            <>
              , <Distance at={since} clock={clock} />
            </>
          )}
          {faceOf(c) === 'console' ? (
            <>
              {' '}
              <a href="/devices">All connected devices</a>
            </>
          ) : null}
        </li>
      ))}
    </ul>
  );
}

function rowOf(
  certificate: ShownCertificate,
  { clock, canChange, id }: { clock: Clock; canChange: boolean; id: number },
) {
  const {
    file,
    fingerprint,
    name,
    client_uid: clientUid,
    state,
    effective_until: until,
    issued_at: issued,
  } = certificate;
  const [status, words] = STATES[state];
  const label = name ?? (clientUid || file);
  const address = `/certificates/${fingerprint.replaceAll(':', '').toLowerCase()}`;
  const isLive = state === 'active' || state === 'revocation_failed';
  return [
    <a href={address}>{label}</a>,
    <StatusBadge status={status}>{words}</StatusBadge>,
    <When at={until} clock={clock} />,
    <When at={issued} clock={clock} />,
    ...(canChange ? [isLive ? <Revocation action={`${address}/revoke`} label={label} id={id} /> : null] : []),
  ];
}

/** The page of the certificates does it, and leads back here. */
function Revocation({ action, label, id }: { action: string; label: string; id: number }) {
  return (
    <Confirm label="Revoke…" action={action} button={`Revoke ${label}`}>
      <input type="hidden" name="from" value={`/people/${id}`} />
      <p>The device that has it falls off and does not come back with it. The person may enroll it anew.</p>
    </Confirm>
  );
}
