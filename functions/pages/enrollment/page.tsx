// The page on which devices are enrolled, wherever it stands: it shows the code that is valid and never makes one; a form does.

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
import { DiagnosisCard, inPageWords } from './diagnosis-card.tsx';

/** What makes the page another one, as text. */
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
  /** The entity tag of the text above. */
  tag: string;
  progress: EnrollmentProgress;
  clock: Clock;
  /** Of a refusal. */
  remedy: string | undefined;
  /** False: the code has ended, and nobody new can come. */
  open: boolean;
  /** False: this is no answer to GET, so there is nothing to ask again. */
  live: boolean;
  /** False: there never was one. */
  begun: boolean;
}

export function ProgressCard({ path, tag, progress, clock, remedy, open, live: asks, begun }: ProgressCardProps) {
  if (!begun) return <section id="progress" data-refresh="" hidden></section>;
  const { devices, refused, problem } = progress;
  const isDone = !open && devices.every(({ client, certificate }) => client !== undefined || certificate.revokedAt);
  const live = isDone || !asks ? {} : { 'data-live': `${path}/progress`, 'data-every': '3', 'data-tag': tag };
  return (
    <section class={`card progress ${devices.length > 0 ? 'good' : ''}`.trim()} id="progress" {...live}>
      <div aria-live="polite">
        {problem === undefined ? null : <Missing>Whether a device has come cannot be seen: {problem}</Missing>}
        {devices.map((device) => (
          <Enrolled device={device} clock={clock} />
        ))}
        {refused === undefined ? null : (
          <div class="notice bad">
            <p>
              <strong>A device was refused</strong> (<When at={refused.at} clock={clock} />, from {refused.address}):{' '}
              {refused.reason}
            </p>
            {remedy === undefined ? null : <p>What to do: {remedy}</p>}
          </div>
        )}
        {devices.length > 0 || problem !== undefined || !open ? null : (
          <p class="waiting">
            <strong>Waiting for the device…</strong> <span class="fine">It shows here as soon as it has come.</span>
          </p>
        )}
        {devices.length > 0 || open || problem !== undefined ? null : <p>No device has enrolled with this code.</p>}
      </div>
      <noscript>
        <p class="fine">Reload the page to see whether the device has come.</p>
      </noscript>
    </section>
  );
}

function Enrolled({ device, clock }: { device: EnrolledDevice; clock: Clock }) {
  const { certificate, client } = device;
  const { clientUid, issuedAt, expiresAt, revokedAt } = certificate;
  if (revokedAt !== null)
    return (
      <p>
        <StatusBadge status="note">Revoked</StatusBadge> {nameOf(device)} was enrolled, and is shut out again since{' '}
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
        Certificate of <When at={issuedAt} clock={clock} />, good until <When at={expiresAt} clock={clock} />.
      </p>
    </div>
  );
}

function nameOf({ certificate: { clientUid, hash } }: EnrolledDevice): string {
  return clientUid === '' ? `certificate ${hash.slice(0, 11)}…` : clientUid;
}

const SENTENCES = {
  created: 'The person is created. Next: a device, by the code below.',
  canceled: 'The code is taken back. Devices that were enrolled with it stay.',
};

const SCAN_AGAIN =
  'nothing stands in its way here. Take this server out of the app, then scan the code that is shown now.';

/** Adds the routes of one place: the page, issuing, taking back, and what the page asks every few seconds. */
export function enrollmentPages(pages: Pages, deps: Deps, place: EnrollmentPlace): void {
  const { route, access } = place;
  const demand = { access, area: 'people' } as const;

  pages.get(route, demand, async function showEnrollment(c) {
    return showPage(c, deps, place, await place.ownerOf(c));
  });

  pages.post(route, demand, async function issueCode(c) {
    const account = await place.ownerOf(c);
    const form = await formOf(c);
    const tried = await attempt(async () => {
      serverAddress(deps);
      await issueEnrollment(actingIn(c, deps), account);
    });
    if (tried.refused !== undefined) return showPage(c, deps, place, account, tried.refused);
    const app = form.text('app');
    return goTo(c, `${place.pathOf(account)}${app === '' ? '' : `?app=${appOf(app)}`}`);
  });

  pages.post(`${route}/withdraw`, demand, async function cancelCode(c) {
    const account = await place.ownerOf(c);
    const tried = await attempt(() => cancelEnrollment(actingIn(c, deps), account));
    if (tried.refused !== undefined) return showPage(c, deps, place, account, tried.refused);
    return goTo(c, `${place.pathOf(account)}?done=canceled`);
  });

  pages.get(`${route}/progress`, demand, async function tellProgress(c) {
    const account = await place.ownerOf(c);
    const { code, progress } = await progressOf(deps, account);
    const body = progressText(code, progress);
    const answer = answerPrepared({ body, etag: await weakEtag(body) }, c.req.raw.headers, c.env.requestId);
    answer.headers.set('Cache-Control', 'no-store');
    return answer;
  });
}

/** Since the newest code was made, valid or not. */
async function progressOf(
  deps: Deps,
  { id, username }: Account,
): Promise<{ code: string; progress: EnrollmentProgress }> {
  const [newest] = await deps.enrollmentTokens.of(id);
  if (newest === undefined) return { code: '', progress: { devices: [], refused: undefined, problem: undefined } };
  const { identifier, createdAt, expiresAt } = newest;
  const isOver = Date.parse(expiresAt) <= deps.now().getTime();
  return { code: `${identifier} ${isOver}`, progress: await enrollmentProgress(deps, username, createdAt) };
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
  const [read, reported] = await Promise.all([
    attempt(() => readEnrollment(actingIn(c, deps), account)),
    attempt(() => progressOf(deps, account)),
  ]);
  const hostless = await attempt(async () => serverAddress(deps));
  const issued = hostless.refused === undefined ? read.done : undefined;
  const { code = '', progress = { devices: [], refused: undefined, problem: reported.refused?.message } } =
    reported.done ?? {};
  const wantsDiagnosis = c.req.query('check') !== undefined || progress.refused !== undefined;
  const diagnosis = wantsDiagnosis ? await diagnoseEnrollment(deps, account) : undefined;
  const tag = await weakEtag(progressText(code, progress));
  const enrollee = { account, path, access: place.access };
  const clock = clockOf(deps);
  const back = place.backOf(account);
  const body = (
    <>
      <Notice c={c} sentences={SENTENCES} />
      <Problem error={refused ?? read.refused ?? hostless.refused} />
      <ProgressCard
        path={path}
        tag={tag}
        progress={progress}
        clock={clock}
        remedy={diagnosis === undefined ? undefined : inPageWords(diagnosis.remedy ?? SCAN_AGAIN, clock)}
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
