// GET / of the portal: one's own devices, which of them is connected, and how one of them is shut out.

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
import { DeviceCard, pastWords } from './devices.tsx';
import { deviceName, DEVICES_ON_PAGE, ownDevices, type OwnDevices, type Owner, ownerOf } from './own.ts';

/** So early it is said: an administrator has to be reached. */
const REPORTED_DAYS_BEFORE = 14;

interface StatusProps {
  owner: Owner;
  username: string;
  clock: Clock;
}

/**
 * What concerns the account itself, above everything else in the portal: that it ends soon, or that it is no person's.
 */
export function AccountStatus({ owner, username, clock }: StatusProps) {
  if (owner.kind === 'unknown')
    return <Missing>Your account cannot be looked up now, so its end is not shown: {owner.why}</Missing>;
  if (owner.kind === 'hidden')
    return (
      <Warning>
        <p>
          <strong>{username} is an account of the stack, not of a person.</strong> It enrolls no devices. Sign in with
          an account of your own, which an administrator creates under People.
        </p>
      </Warning>
    );
  const seconds = appExpiresOf(owner.account.attributes);
  if (seconds === null) return null;
  const at = isoOfSeconds(seconds);
  if (Date.parse(at) - clock.now.getTime() > REPORTED_DAYS_BEFORE * DAY_MS) return null;
  return (
    <Warning>
      <p>
        <strong>Your access ends {formatDistance(at, clock.now)}</strong>, <When at={at} clock={clock} />. After that
        you cannot sign in, and your devices are shut out. If you need it longer, ask an administrator before then.
      </p>
    </Warning>
  );
}

const SENTENCES = {
  revoked: 'The device is shut out: the server lets it in no more.',
  revoking: 'The device is being shut out; the server confirms that within seconds.',
};

/** Adds the routes of this file. */
export function homePage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['portal']);
  pages.get('/', { access: 'own' }, (c) => showHome(c, deps));

  pages.post('/my-devices/:file/revoke', { access: 'own' }, async function shutOut(c) {
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
    const { format, app: phone, compat } = parsed(downloadQuery, c.req.query());
    const wanted = { file, of: c.get('principal').username, format, app: phone, legacy: compat === 'legacy' };
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
      <Notice c={c} sentences={SENTENCES} />
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
        <p class="fine">Reload this page to see what has changed.</p>
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
      Add a device
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
      {problem === undefined ? null : (
        <Missing>The server does not answer, so this list may not be whole: {problem}</Missing>
      )}
      {seen || problem !== undefined ? null : (
        <Missing>Which of them are connected is not known now: {clientsProblem}</Missing>
      )}
      {current.length > 0 || owner.kind === 'hidden' || problem !== undefined ? null : <None />}
      <div class="cards">
        {current.map((device) => (
          <DeviceCard device={device} clock={clock} seen={seen} />
        ))}
      </div>
      {unmatched.length === 0 ? null : <Unmatched devices={devices} clock={clock} />}
    </>
  );
}

function None() {
  return (
    <Empty>
      <p>No device of yours may use this server yet.</p>
      <p>
        <AddDevice />
      </p>
      <p>
        It takes a minute: choose the app, scan the code. The <a href="/guides">guides</a> show each step.
      </p>
    </Empty>
  );
}

/** A certificate that was made here may be on any device: the core names none. */
function Unmatched({ devices: { unmatched }, clock }: { devices: OwnDevices; clock: Clock }) {
  return (
    <Card title="Also connected with your name">
      <p class="fine">
        The server does not tell with which of your certificates. A device that is not yours? Shut it out, and tell an
        administrator.
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
      <summary>Shut out or ended: {past.length}</summary>
      <Table
        caption="Devices that cannot come in any more"
        columns={[{ label: 'Device' }, { label: 'State' }, { label: 'Since' }]}
        rows={past.map((certificate) => [
          deviceName({ certificate, client: undefined }),
          pastWords(certificate),
          <When at={certificate.effective_until} clock={clock} />,
        ])}
      />
    </details>
  );
}

/** For whoever may see more there. */
function ToConsole({ c, deps }: { c: PageContext; deps: Deps }) {
  const role = roleInForce(c.get('principal'));
  if (role === 'none') return null;
  return (
    <p class="fine">
      You also look after this server: <a href={`${deps.addresses.console}/`}>open its console</a>.
      {role === 'admin' ? ' People and groups are here as well.' : ''}
    </p>
  );
}
