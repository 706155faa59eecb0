// A device of one's own: since when, until when, whether it is connected, its files, and how it is shut out.

import { AppError } from '@holdfast/kit/app-error';
import { BUNDLE_PASSWORD } from '../../shared/devices/certificates/data-package.ts';
import type { CertificateState, CertificateView } from '../../shared/devices/certificates/view.ts';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import type { Account } from '../../shared/identity/port.ts';
import type { Status } from '../../shared/settings/status.ts';
import { enrollmentPages } from '../pages/enrollment/page.tsx';
import { type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Card, Confirm, Facts } from '../pages/parts/card.tsx';
import { StatusBadge } from '../pages/parts/notice.tsx';
import { type Clock, Distance, When } from '../pages/parts/time.tsx';
import { deviceName, type OwnDevice, ownerOf } from './own.ts';

const STATES: Record<CertificateState, readonly [Status, string]> = {
  active: ['note', 'Not connected'],
  revoking: ['warning', 'Being shut out'],
  revocation_failed: ['critical', 'Not shut out yet'],
  revoked: ['note', 'Shut out'],
  expired: ['note', 'Ended'],
};

interface DeviceCardProps {
  device: OwnDevice;
  clock: Clock;
  /** Whether it is known who is connected. */
  seen: boolean;
}

export function DeviceCard({ device, clock, seen }: DeviceCardProps) {
  const { certificate, client } = device;
  const name = deviceName(device);
  const id = idOf(certificate);
  const active = certificate.state === 'active';
  return (
    <Card title={name} aside={<State device={device} seen={seen} />} class="device">
      <Facts
        of={{
          Connected:
            client === undefined ? undefined : client.since === null ? (
              'now'
            ) : (
              <Distance at={client.since} clock={clock} />
            ),
          App: client === undefined || client.device === '' ? undefined : client.device,
          Added: <When at={certificate.issued_at} clock={clock} />,
          'Good until': active ? <When at={certificate.effective_until} clock={clock} relative /> : undefined,
          'Device ID': certificate.client_uid === '' ? undefined : certificate.client_uid,
        }}
      />
      {certificate.state === 'revocation_failed' ? (
        <p class="notice bad">
          The server has not confirmed yet that this device is shut out. It tries again by itself; tell an administrator
          if this stays.
        </p>
      ) : null}
      {active ? (
        <div class="row">
          {certificate.downloadable ? <Files certificate={certificate} id={id} /> : null}
          <Confirm
            id={`shut-${id}`}
            label="Shut out…"
            of={name}
            action={`/my-devices/${encodeURIComponent(certificate.file)}/revoke`}
            button={`Shut out ${name}`}
          >
            <p>
              The server lets <strong>{name}</strong> in no more, and ends its connection within seconds. Do this when
              it is lost, sold or broken. It cannot be taken back: to use it again, add it as a new device.
            </p>
          </Confirm>
        </div>
      ) : null}
    </Card>
  );
}

function State({ device: { certificate, client }, seen }: { device: OwnDevice; seen: boolean }) {
  if (client !== undefined) return <StatusBadge status="ok">Connected</StatusBadge>;
  if (certificate.state === 'active' && !seen) return <StatusBadge status="note">Good</StatusBadge>;
  const [status, words] = STATES[certificate.state];
  return <StatusBadge status={status}>{words}</StatusBadge>;
}

/** Words for what is no current device any more. */
export function pastWords({ state }: CertificateView): string {
  return STATES[state][1];
}

function Files({ certificate, id }: { certificate: CertificateView; id: string }) {
  const file = `/my-devices/${encodeURIComponent(certificate.file)}/download`;
  return (
    <details class="confirm" id={`files-${id}`}>
      <summary class="button">Files…</summary>
      <div class="files">
        <p>
          Whoever has one of these files comes in as you. Put it on your own device only, then delete it. Its password
          is <code>{BUNDLE_PASSWORD}</code>.
        </p>
        <ul class="links">
          <li>
            <a href={`${file}?format=data-package&app=atak`}>Package for ATAK and WinTAK</a>
          </li>
          <li>
            <a href={`${file}?format=data-package&app=itak`}>Package for iTAK</a>
          </li>
          <li>
            <a href={`${file}?format=p12`}>Certificate with key (.p12)</a>
          </li>
        </ul>
      </div>
    </details>
  );
}

/** Of elements: the hash, for files have characters that ids have not. */
function idOf({ fingerprint }: CertificateView): string {
  return fingerprint.replaceAll(':', '').slice(0, 12).toLowerCase();
}

const PATH = '/add-device';

/** Adds the routes of this file. */
export function addDevicePage(app: App, deps: Deps): void {
  enrollmentPages(pagesOf(app, deps, ['portal']), deps, {
    route: PATH,
    access: 'own',
    current: 'add-device',
    ownerOf: (c) => enrolling(c, deps),
    pathOf: () => PATH,
    titleOf: () => 'Add a device',
    backOf: () => ({ path: '/', label: 'Back to my devices' }),
  });
}

async function enrolling(c: PageContext, deps: Deps): Promise<Account> {
  const owner = await ownerOf(c, deps);
  if (owner.kind === 'person') return owner.account;
  if (owner.kind === 'unknown') throw new AppError('unavailable', `Nobody can be let in now: ${owner.why}`);
  const { username } = c.get('principal');
  throw new AppError(
    'not_found',
    `${username} is an account of the stack, not of a person: it enrolls no devices. Sign in with an account of your own, which an administrator creates under People.`,
  );
}
