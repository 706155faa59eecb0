// Shows one of the person's own devices: status, dates, files and revocation. Adds the page that
// enrolls another.

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
  revoking: ['warning', 'Revoking'],
  revocation_failed: ['critical', 'Revocation not confirmed'],
  revoked: ['note', 'Revoked'],
  expired: ['note', 'Expired'],
};

interface DeviceCardProps {
  device: OwnDevice;
  clock: Clock;
  /** True when the connections are known. */
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
          Expires: active ? <When at={certificate.effective_until} clock={clock} relative /> : undefined,
          'Device ID': certificate.client_uid === '' ? undefined : certificate.client_uid,
        }}
      />
      {certificate.state === 'revocation_failed' ? (
        <p class="notice bad">
          The server has not confirmed that this device is revoked. It retries automatically. If this doesn't change,
          tell an administrator.
        </p>
      ) : null}
      {active ? (
        <div class="row">
          {certificate.downloadable ? <Files certificate={certificate} id={id} /> : null}
          <Confirm
            id={`shut-${id}`}
            label="Revoke access…"
            of={name}
            action={`/my-devices/${encodeURIComponent(certificate.file)}/revoke`}
            button={`Revoke ${name}`}
          >
            <p>
              The server disconnects <strong>{name}</strong> within seconds and refuses it from then on. Do this when
              the device is lost, sold or broken. You can't undo this. To use it again, add it as a new device.
            </p>
          </Confirm>
        </div>
      ) : null}
    </Card>
  );
}

function State({ device: { certificate, client }, seen }: { device: OwnDevice; seen: boolean }) {
  if (client !== undefined) return <StatusBadge status="ok">Connected</StatusBadge>;
  if (certificate.state === 'active' && !seen) return <StatusBadge status="note">Active</StatusBadge>;
  const [status, words] = STATES[certificate.state];
  return <StatusBadge status={status}>{words}</StatusBadge>;
}

/** The status of a former device. */
export function formatPastState({ state }: CertificateView): string {
  return STATES[state][1];
}

function Files({ certificate, id }: { certificate: CertificateView; id: string }) {
  const file = `/my-devices/${encodeURIComponent(certificate.file)}/download`;
  return (
    <details class="confirm" id={`files-${id}`}>
      <summary class="button">Files…</summary>
      <div class="files">
        <p>
          Anyone with one of these files can connect as you. Put it only on your own device, then delete it. The
          password is <code>{BUNDLE_PASSWORD}</code>.
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

/** The id of the element, by fingerprint: file names hold characters that ids can't. */
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
    ownerOf: (c) => accountOf(c, deps),
    pathOf: () => PATH,
    titleOf: () => 'Add device',
    backOf: () => ({ path: '/', label: 'Back to my devices' }),
  });
}

async function accountOf(c: PageContext, deps: Deps): Promise<Account> {
  const owner = await ownerOf(c, deps);
  if (owner.kind === 'person') return owner.account;
  if (owner.kind === 'unknown') throw new AppError('unavailable', `Couldn't add a device. ${owner.reason}`);
  const { username } = c.get('principal');
  throw new AppError(
    'not_found',
    `${username} is a system account and can't enroll devices. Sign in with your own account. An administrator adds it under People.`,
  );
}
