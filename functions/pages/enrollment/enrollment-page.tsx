// The page on which devices are enrolled, wherever it stands: it shows the code that is valid and never makes one; a form does.

import type { AppError } from '../../../shared/domain/app-error.ts';
import { actingIn } from '../../../shared/http/acting.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { serverAddress } from '../../../shared/http/enrollment-schemas.ts';
import { goTo } from '../../../shared/http/page.tsx';
import { answerPrepared, weakEtag } from '../../../shared/http/prepared.ts';
import { diagnoseEnrollment } from '../../../shared/verbs/diagnose-enrollment.ts';
import { enrollmentProgress, type EnrollmentProgress } from '../../../shared/verbs/enrollment-progress.ts';
import { issueEnrollment, readEnrollment } from '../../../shared/verbs/issue-enrollment.ts';
import { withdrawEnrollment } from '../../../shared/verbs/withdraw-enrollment.ts';
import type { Account } from '../../../shared/ports/identity.ts';
import { clockOf } from '../clock.ts';
import { attempt, formOf } from '../form.ts';
import { framed } from '../frame.tsx';
import type { PageContext, Pages } from '../page-routes.ts';
import { Notice, Problem } from '../parts/notice.tsx';
import { appOf } from './apps.ts';
import { CodeCard, NoCode } from './code-card.tsx';
import { DiagnosisCard } from './diagnosis-card.tsx';
import { inPageWords } from './in-page-words.ts';
import type { EnrollmentPlace } from './place.ts';
import { ProgressCard, progressText } from './progress-card.tsx';

const SENTENCES = {
  created: 'The person is created. Next: a device, by the code below.',
  withdrawn: 'The code is taken back. Devices that were enrolled with it stay.',
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
      await issueEnrollment(actingIn(c, deps, access), account);
    });
    if (tried.refused !== undefined) return showPage(c, deps, place, account, tried.refused);
    const app = form.text('app');
    return goTo(c, `${place.pathOf(account)}${app === '' ? '' : `?app=${appOf(app)}`}`);
  });

  pages.post(`${route}/withdraw`, demand, async function withdrawCode(c) {
    const account = await place.ownerOf(c);
    const tried = await attempt(() => withdrawEnrollment(actingIn(c, deps, access), account));
    if (tried.refused !== undefined) return showPage(c, deps, place, account, tried.refused);
    return goTo(c, `${place.pathOf(account)}?done=withdrawn`);
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
  const [read, told] = await Promise.all([
    attempt(() => readEnrollment(actingIn(c, deps, place.access), account)),
    attempt(() => progressOf(deps, account)),
  ]);
  const hostless = await attempt(async () => serverAddress(deps));
  const issued = hostless.refused === undefined ? read.done : undefined;
  const { code = '', progress = { devices: [], refused: undefined, problem: told.refused?.message } } = told.done ?? {};
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
