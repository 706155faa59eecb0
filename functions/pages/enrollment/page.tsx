// The enrollment page: shows the active code, progress and checks. Only its form creates a code.

import type { AppError } from '@holdfast/kit/app-error';
import { diagnoseEnrollment } from '../../../shared/devices/enrollment/diagnose.ts';
import { issueEnrollment, readEnrollment } from '../../../shared/devices/enrollment/issue.ts';
import { cancelEnrollment } from '../../../shared/devices/enrollment/kept.ts';
import {
  type EnrolledDevice,
  type EnrollmentProgress,
  enrollmentProgress,
} from '../../../shared/devices/enrollment/progress.ts';
import { answerPrepared, weakEtag } from '../../../shared/http/answers.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { goTo } from '../../../shared/http/page.tsx';
import { serverAddress } from '../../../shared/http/schemas/enrollment.ts';
import { actingIn } from '../../../shared/http/sign-in.ts';
import type { Account } from '../../../shared/identity/port.ts';
import { attempt, formOf } from '../form.ts';
import { framed } from '../frame.tsx';
import type { PageContext, Pages } from '../page-routes.ts';
import { Missing, Notice, Problem, StatusBadge } from '../parts/notice.tsx';
import { type Clock, clockOf, When } from '../parts/time.tsx';
import { appOf, type EnrollmentPlace } from './apps.ts';
import { CodeCard, NoCode } from './code-card.tsx';
import { DiagnosisCard, toPageText } from './diagnosis-card.tsx';

/** The state of the enrollment as text. The page asks for a new version when it changes. */
export function progressText(code: string, { devices, refused, problem }: EnrollmentProgress): string {
  return JSON.stringify({
    code,
    devices: devices.map(({ certificate, client }) => [
      certificate.hash,
      certificate.revokedAt,
      client?.connection ?? null,
      client?.callsign ?? null,
    ]),
    refused: refused?.at ?? null,
    problem: problem ?? null,
  });
}

interface ProgressCardProps {
  path: string;
  /** The entity tag of the progress text. */
  tag: string;
  progress: EnrollmentProgress;
  clock: Clock;
  /** For the refused device. */
  remedy: string | undefined;
  /** True while the code is valid. */
  open: boolean;
  /** False when the page answers a POST, so there is nothing to poll. */
  live: boolean;
  /** True when there has been a code. */
  begun: boolean;
}

export function ProgressCard({ path, tag, progress, clock, remedy, open, live: mayPoll, begun }: ProgressCardProps) {
  if (!begun) return <section id="progress" data-refresh="" hidden></section>;
  const { devices, refused, problem } = progress;
  const isDone = !open && devices.every(({ client, certificate }) => client !== undefined || certificate.revokedAt);
  const live = isDone || !mayPoll ? {} : { 'data-live': `${path}/progress`, 'data-every': '3', 'data-tag': tag };
  return (
    <section class={`card progress ${devices.length > 0 ? 'good' : ''}`.trim()} id="progress" {...live}>
      <div aria-live="polite">
        {problem === undefined ? null : <Missing>Couldn't check for enrolled devices. {problem}</Missing>}
        {devices.map((device) => (
          <EnrolledDeviceStatus device={device} clock={clock} />
        ))}
        {refused === undefined ? null : (
          <div class="notice bad">
            <p>
              <strong>A device was refused</strong> (<When at={refused.at} clock={clock} />, from {refused.address}):{' '}
              {refused.reason}
            </p>
            {remedy === undefined ? null : <p>Next step: {remedy}</p>}
          </div>
        )}
        {devices.length > 0 || problem !== undefined || !open ? null : (
          <p class="waiting">
            <strong>Waiting for the device…</strong> <span class="fine">It appears here as soon as it enrolls.</span>
          </p>
        )}
        {devices.length > 0 || open || problem !== undefined ? null : <p>No device enrolled with this code.</p>}
      </div>
      <noscript>
        <p class="fine">Reload this page to check for enrolled devices.</p>
      </noscript>
    </section>
  );
}

function EnrolledDeviceStatus({ device, clock }: { device: EnrolledDevice; clock: Clock }) {
  const { certificate, client } = device;
  const { clientUid, issuedAt, expiresAt, revokedAt } = certificate;
  if (revokedAt !== null)
    return (
      <p>
        <StatusBadge status="note">Revoked</StatusBadge> {nameOf(device)} enrolled and was revoked at{' '}
        <When at={revokedAt} clock={clock} />.
      </p>
    );
  return (
    <div class="enrolled">
      <p>
        <StatusBadge status="ok">{client === undefined ? 'Enrolled' : 'Connected'}</StatusBadge>{' '}
        {client === undefined ? (
          <>
            <strong>Device enrolled: {nameOf(device)}</strong>. Not connected yet.
          </>
        ) : (
          <>
            <strong>Connected as {client.callsign === '' ? client.uid : client.callsign}</strong> since{' '}
            <When at={client.since} clock={clock} never="just now" />.
          </>
        )}
      </p>
      <p class="fine">
        {client === undefined || clientUid === '' ? '' : `${clientUid}. `}
        {client === undefined || client.device === '' ? '' : `${client.device}. `}
        Certificate issued <When at={issuedAt} clock={clock} />, expires <When at={expiresAt} clock={clock} />.
      </p>
    </div>
  );
}

function nameOf({ certificate: { clientUid, hash } }: EnrolledDevice): string {
  return clientUid === '' ? `certificate ${hash.slice(0, 11)}…` : clientUid;
}

const NOTICES = {
  created: 'Person added. Next, add a device with the code below.',
  canceled: 'Enrollment canceled. Devices that have already enrolled stay connected.',
};

const SCAN_AGAIN = 'The server is ready. Remove this server from the app, then scan the current code.';

/**
 * Adds the routes of one place: the page, creating and canceling a code, and the progress that the
 * page polls.
 */
export function enrollmentPages(pages: Pages, deps: Deps, place: EnrollmentPlace): void {
  const { route, access } = place;
  const demand = { access, area: 'people' } as const;

  pages.get(route, demand, async function showEnrollment(c) {
    return showPage(c, deps, place, await place.ownerOf(c));
  });

  pages.post(route, demand, async function issueCode(c) {
    const account = await place.ownerOf(c);
    const form = await formOf(c);
    const result = await attempt(async () => {
      serverAddress(deps);
      await issueEnrollment(actingIn(c, deps), account);
    });
    if (result.refused !== undefined) return showPage(c, deps, place, account, result.refused);
    const app = form.text('app');
    return goTo(c, `${place.pathOf(account)}${app === '' ? '' : `?app=${appOf(app)}`}`);
  });

  pages.post(`${route}/withdraw`, demand, async function cancelCode(c) {
    const account = await place.ownerOf(c);
    const result = await attempt(() => cancelEnrollment(actingIn(c, deps), account));
    if (result.refused !== undefined) return showPage(c, deps, place, account, result.refused);
    return goTo(c, `${place.pathOf(account)}?done=canceled`);
  });

  pages.get(`${route}/progress`, demand, async function sendProgress(c) {
    const account = await place.ownerOf(c);
    const { code, progress } = await progressOf(deps, account);
    const body = progressText(code, progress);
    const answer = answerPrepared({ body, etag: await weakEtag(body) }, c.req.raw.headers, c.env.requestId);
    answer.headers.set('Cache-Control', 'no-store');
    return answer;
  });
}

/** The progress since the newest code was created, valid or not. */
async function progressOf(
  deps: Deps,
  { id, username }: Account,
): Promise<{ code: string; progress: EnrollmentProgress }> {
  const [newest] = await deps.enrollmentTokens.of(id);
  if (newest === undefined) return { code: '', progress: { devices: [], refused: undefined, problem: undefined } };
  const { identifier, createdAt, expiresAt } = newest;
  const isExpired = Date.parse(expiresAt) <= deps.now().getTime();
  return { code: `${identifier} ${isExpired}`, progress: await enrollmentProgress(deps, username, createdAt) };
}

async function showPage(
  c: PageContext,
  deps: Deps,
  place: EnrollmentPlace,
  account: Account,
  refused?: AppError,
): Promise<Response> {
  const path = place.pathOf(account);
  const app = appOf(c.req.query('app'));
  const [read, current] = await Promise.all([
    attempt(() => readEnrollment(actingIn(c, deps), account)),
    attempt(() => progressOf(deps, account)),
  ]);
  const host = await attempt(async () => serverAddress(deps));
  const issued = host.refused === undefined ? read.done : undefined;
  const { code = '', progress = { devices: [], refused: undefined, problem: current.refused?.message } } =
    current.done ?? {};
  const wantsDiagnosis = c.req.query('check') !== undefined || progress.refused !== undefined;
  const diagnosis = wantsDiagnosis ? await diagnoseEnrollment(deps, account) : undefined;
  const tag = await weakEtag(progressText(code, progress));
  const enrollee = { account, path, access: place.access };
  const clock = clockOf(deps);
  const back = place.backOf(account);
  const body = (
    <>
      <Notice c={c} sentences={NOTICES} />
      <Problem error={refused ?? read.refused ?? host.refused} />
      <ProgressCard
        path={path}
        tag={tag}
        progress={progress}
        clock={clock}
        remedy={diagnosis === undefined ? undefined : toPageText(diagnosis.remedy ?? SCAN_AGAIN, clock)}
        open={issued !== undefined}
        live={refused === undefined}
        begun={code !== ''}
      />
      {issued === undefined ? (
        <NoCode deps={deps} enrollee={enrollee} />
      ) : (
        <CodeCard deps={deps} issued={issued} app={app} enrollee={enrollee} />
      )}
      <DiagnosisCard checkPath={`${path}?app=${app}&check=1`} diagnosis={diagnosis} clock={clock} />
      <p>
        <a href={back.path}>{back.label}</a>
      </p>
    </>
  );
  return framed(c, deps, { title: place.titleOf(account), current: place.current, body, refused });
}
