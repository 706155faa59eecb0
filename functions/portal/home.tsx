// GET / of the portal: lists the person's own devices with their connections. They can revoke and
// download each.

import type { AppError } from '@holdfast/kit/app-error';
import { DAY_MS } from '@holdfast/kit/time';
import { downloadCertificate } from '../../shared/devices/certificates/download.ts';
import { findOrRemembered, anyUser } from '../../shared/devices/certificates/find.ts';
import { revokeCertificate } from '../../shared/devices/revocation/revoke.ts';
import { attachmentAnswer } from '../../shared/http/answers.ts';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { goTo } from '../../shared/http/page.tsx';
import { certificateParams, downloadQuery } from '../../shared/http/schemas/certificates.ts';
import { actingIn } from '../../shared/http/sign-in.ts';
import { appExpiresOf, isoOfSeconds } from '../../shared/identity/rules.ts';
import { roleInForce } from '../../shared/sign-in/rules.ts';
import { attempt, parsed } from '../pages/form.ts';
import { framed } from '../pages/frame.tsx';
import { type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Card } from '../pages/parts/card.tsx';
import { Missing, Notice, Problem, Warning } from '../pages/parts/notice.tsx';
import { Empty, pageNumber, Pager, Table } from '../pages/parts/table.tsx';
import { type Clock, clockOf, formatDistance, When } from '../pages/parts/time.tsx';
import { DeviceCard, formatPastState } from './devices.tsx';
import { deviceName, DEVICES_ON_PAGE, ownDevices, type OwnDevices, type Owner, ownerOf } from './own.ts';

/** Warns this early, so that there is time to reach an administrator. */
const WARN_DAYS_BEFORE = 14;

interface StatusProps {
  owner: Owner;
  username: string;
  clock: Clock;
}

/**
 * Warns at the top of the portal when the account expires soon, is hidden, or can't be looked up.
 */
export function AccountStatus({ owner, username, clock }: StatusProps) {
  if (owner.kind === 'unknown')
    return <Missing>Couldn't look up your account, so its expiry date isn't shown. {owner.reason}</Missing>;
  if (owner.kind === 'hidden')
    return (
      <Warning>
        <p>
          <strong>{username} is a system account.</strong> It can't enroll devices. Sign in with your own account. An
          administrator adds it under People.
        </p>
      </Warning>
    );
  const seconds = appExpiresOf(owner.account.attributes);
  if (seconds === null) return null;
  const at = isoOfSeconds(seconds);
  if (Date.parse(at) - clock.now.getTime() > WARN_DAYS_BEFORE * DAY_MS) return null;
  return (
    <Warning>
      <p>
        <strong>Your access expires {formatDistance(at, clock.now)}</strong> (<When at={at} clock={clock} />
        ). After that you can't sign in and your devices can't connect. If you need it longer, ask an administrator
        before then.
      </p>
    </Warning>
  );
}

const NOTICES = {
  revoked: 'Access revoked. The device can no longer connect.',
  revoking: 'Access is being revoked. The server confirms it within seconds.',
};

/** Adds the routes of this file. */
export function homePage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['portal']);
  pages.get('/', { access: 'own' }, (c) => showHome(c, deps));

  pages.post('/my-devices/:file/revoke', { access: 'own' }, async function revokeOwn(c) {
    const { file } = parsed(certificateParams, { file: c.req.param('file') });
    const result = await attempt(async () => {
      const { certificate } = await findOrRemembered(anyUser(deps), file, c.get('principal').username);
      return revokeCertificate(actingIn(c, deps), certificate);
    });
    if (result.refused !== undefined) return showHome(c, deps, result.refused);
    return goTo(c, result.done.state === 'revoked' ? '/?done=revoked' : '/?done=revoking');
  });

  pages.get('/my-devices/:file/download', { access: 'own' }, async function downloadOwn(c) {
    const { file } = parsed(certificateParams, { file: c.req.param('file') });
    const { format, app: target, compat } = parsed(downloadQuery, c.req.query());
    const wanted = { file, of: c.get('principal').username, format, app: target, legacy: compat === 'legacy' };
    return attachmentAnswer(c, await downloadCertificate(actingIn(c, deps), wanted));
  });
}

async function showHome(c: PageContext, deps: Deps, refused?: AppError): Promise<Response> {
  const { username } = c.get('principal');
  const page = pageNumber(c.req.query('page'));
  const clock = clockOf(deps);
  const [owner, devices] = await Promise.all([ownerOf(c, deps), ownDevices(deps, username, page)]);
  const body = (
    <>
      <Notice c={c} sentences={NOTICES} />
      <Problem error={refused} />
      <AccountStatus owner={owner} username={username} clock={clock} />
      <div id="devices" data-live="self" data-every="5">
        <Devices devices={devices} clock={clock} owner={owner} />
      </div>
      {devices.count > DEVICES_ON_PAGE ? (
        <Pager url={new URL(c.req.url)} page={page} pageSize={DEVICES_ON_PAGE} count={devices.count} />
      ) : null}
      <Past devices={devices} clock={clock} />
      <noscript>
        <p class="fine">Reload this page to see changes.</p>
      </noscript>
      <ToConsole c={c} deps={deps} />
    </>
  );
  const actions = owner.kind === 'hidden' ? undefined : <AddDevice />;
  return framed(c, deps, { title: 'My devices', current: 'home', body, refused, ...(actions && { actions }) });
}

function AddDevice() {
  return (
    <a class="button primary" href="/add-device">
      Add device
    </a>
  );
}

interface DevicesProps {
  devices: OwnDevices;
  clock: Clock;
  owner: Owner;
}

function Devices({ devices, clock, owner }: DevicesProps) {
  const { current, unmatched, problem, clientsProblem } = devices;
  const seen = clientsProblem === undefined;
  return (
    <>
      {problem === undefined ? null : <Missing>This list may be incomplete. {problem}</Missing>}
      {seen || problem !== undefined ? null : (
        <Missing>Couldn't check which devices are connected. {clientsProblem}</Missing>
      )}
      {current.length > 0 || owner.kind === 'hidden' || problem !== undefined ? null : <NoDevices />}
      <div class="cards">
        {current.map((device) => (
          <DeviceCard device={device} clock={clock} seen={seen} />
        ))}
      </div>
      {unmatched.length === 0 ? null : <Unmatched devices={devices} clock={clock} />}
    </>
  );
}

function NoDevices() {
  return (
    <Empty>
      <p>No devices yet.</p>
      <p>
        <AddDevice />
      </p>
      <p>
        It takes a minute: choose the app and scan the code. The <a href="/guides">guides</a> show each step.
      </p>
    </Empty>
  );
}

/**
 * Connections that the core doesn't assign to a certificate, for example of certificates that were
 * issued by hand.
 */
function Unmatched({ devices: { unmatched }, clock }: { devices: OwnDevices; clock: Clock }) {
  return (
    <Card title="Other connections">
      <p class="fine">
        These devices are connected under your name. The server doesn't report which of your certificates they use. If
        one isn't yours, revoke your certificates and tell an administrator.
      </p>
      <Table
        caption="Connected devices"
        columns={[{ label: 'Device' }, { label: 'App' }, { label: 'Since' }]}
        rows={unmatched.map(({ callsign, uid, connection, device, since }) => [
          callsign || uid || connection,
          device,
          <When at={since} clock={clock} relative never="" />,
        ])}
      />
    </Card>
  );
}

function Past({ devices: { past }, clock }: { devices: OwnDevices; clock: Clock }) {
  if (past.length === 0) return null;
  return (
    <details class="card" id="past">
      <summary>Revoked or expired: {past.length}</summary>
      <Table
        caption="Devices that can no longer connect"
        columns={[{ label: 'Device' }, { label: 'Status' }, { label: 'Since' }]}
        rows={past.map((certificate) => [
          deviceName({ certificate, client: undefined }),
          formatPastState(certificate),
          <When at={certificate.effective_until} clock={clock} />,
        ])}
      />
    </details>
  );
}

/** Links viewers and administrators to the console. */
function ToConsole({ c, deps }: { c: PageContext; deps: Deps }) {
  const role = roleInForce(c.get('principal'));
  if (role === 'none') return null;
  return (
    <p class="fine">
      You also have access to this server's console: <a href={`${deps.addresses.console}/`}>open the console</a>.
      {role === 'admin' ? ' People and groups are available here too.' : ''}
    </p>
  );
}
