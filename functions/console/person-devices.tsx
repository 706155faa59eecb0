// The devices of a person: what is connected now, and the certificates that let devices in. While core or database is away it is
// said what is missing.

import { nameKey } from '../../shared/domain/names.ts';
import type { Deps } from '../../shared/http/deps.ts';
import type { Account } from '../../shared/ports/identity.ts';
import { certificatesOfUser } from '../../shared/verbs/certificates-of-user.ts';
import { type ConnectedClient, connectedClients } from '../../shared/verbs/connected-clients.ts';
import type { ShownCertificate } from '../../shared/verbs/shown-certificate.ts';
import { CertificateList } from '../pages/certificates/certificate-list.tsx';
import { isOnItsWay } from '../pages/certificates/certificate-words.tsx';
import type { Clock } from '../pages/clock.ts';
import { attempt } from '../pages/form.ts';
import { faceOf, type PageContext } from '../pages/page-routes.ts';
import { Card } from '../pages/parts/card.tsx';
import { Missing } from '../pages/parts/notice.tsx';
import { StatusBadge } from '../pages/parts/status.tsx';
import { Distance } from '../pages/parts/time.tsx';

export interface Devices {
  certificates: ShownCertificate[];
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
