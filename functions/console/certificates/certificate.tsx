// /certificates/{file} at both faces: what a certificate is, its files, how it is revoked, and how far the proof of that is.

import { AppError } from '@holdfast/kit/app-error';
import { isHidden } from '../../../shared/devices/accounts.ts';
import { BUNDLE_PASSWORD } from '../../../shared/devices/certificates/data-package.ts';
import { findOrRemembered, type FoundOrRemembered, anyUser } from '../../../shared/devices/certificates/find.ts';
import { issueCertificate, type IssuedCertificate } from '../../../shared/devices/certificates/issue.ts';
import type { CertificateView } from '../../../shared/devices/certificates/view.ts';
import { revokeCertificate } from '../../../shared/devices/revocation/revoke.ts';
import { type App, returnPath } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { goTo } from '../../../shared/http/page.tsx';
import { actingIn } from '../../../shared/http/sign-in.ts';
import { isHiddenName } from '../../../shared/identity/rules.ts';
import {
  CertificateBadge,
  CertificateFiles,
  certificateName,
  certificatePath,
  isOnItsWay,
  isRevocable,
  OwnerLink,
  REVOCATION_SENTENCES,
  RevokeCertificate,
} from '../../pages/certificates/list.tsx';
import { type ProofFacts, RevocationProof } from '../../pages/certificates/revocation-proof.tsx';
import { attempt, faultOf, formOf } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { faceOf, isAdmin, type PageContext, pagesOf } from '../../pages/page-routes.ts';
import { Card, Copyable, Facts } from '../../pages/parts/card.tsx';
import { Field } from '../../pages/parts/field.tsx';
import { Missing, Notice, Problem, Warning } from '../../pages/parts/notice.tsx';
import { type Clock, clockOf, When } from '../../pages/parts/time.tsx';

const SENTENCES = { ...REVOCATION_SENTENCES, issued: 'The certificate is issued. Its files are below.' };

/** Adds the routes of this file. In the portal certificates of others are for administrators. */
export function certificatePage(app: App, deps: Deps): void {
  const [atConsole, atPortal] = [pagesOf(app, deps, ['console']), pagesOf(app, deps, ['portal'])];
  const show = (c: PageContext): Promise<Response> => showPage(c, deps);
  atConsole.get('/certificates/:file', { access: 'viewer', area: 'people' }, show);
  atPortal.get('/certificates/:file', { access: 'admin', area: 'people' }, show);
  pagesOf(app, deps, ['console', 'portal']).post(
    '/certificates/:file/revoke',
    { access: 'admin', area: 'people' },
    async function revoke(c) {
      const form = await formOf(c);
      const { certificate, shown } = await certificateOf(c, deps);
      const tried = await attempt(() => revokeCertificate(actingIn(c, deps), certificate));
      if (tried.refused !== undefined) return showPage(c, deps, tried.refused);
      const from = form.has('from') ? returnPath(form.text('from')) : certificatePath(shown);
      return goTo(c, withDone(from, tried.done.state === 'revoked' ? 'revoked' : 'revoking'));
    },
  );
}

/** In the portal nobody meets those of hidden accounts. */
async function certificateOf(c: PageContext, deps: Deps): Promise<FoundOrRemembered> {
  const found = await findOrRemembered(anyUser(deps), c.req.param('file') ?? '');
  if (faceOf(c) === 'console') return found;
  const { username } = found.shown;
  const { done: account } = await attempt(() => deps.identity.accounts.named(username));
  const isShown =
    account === undefined ? !isHiddenName(username, deps.settings.USERS_HIDDEN_PREFIXES) : !isHidden(account, deps);
  if (isShown) return found;
  throw new AppError('not_found', 'There is no certificate at this address. The page of a person lists theirs.');
}

function withDone(path: string, word: string): string {
  const url = new URL(path, 'http://here.invalid');
  url.searchParams.set('done', word);
  return url.pathname + url.search + url.hash;
}

async function showPage(c: PageContext, deps: Deps, refused?: AppError): Promise<Response> {
  const { shown, problem } = await certificateOf(c, deps);
  const clock = clockOf(deps);
  const mayChange = isAdmin(c);
  const isLive = refused === undefined && isOnItsWay(shown);
  const body = (
    <>
      <Notice c={c} sentences={SENTENCES} />
      <Problem error={refused} />
      {problem === undefined ? null : (
        <Missing>The core does not answer ({problem}). This is what Holdfast has written down.</Missing>
      )}
      <div id="certificate" {...(isLive ? { 'data-live': 'self', 'data-every': '5' } : { 'data-refresh': '' })}>
        <About certificate={shown} clock={clock} />
        {shown.state === 'active' || shown.state === 'expired' ? null : (
          <RevocationProof facts={await proofOf(deps, shown)} clock={clock} />
        )}
      </div>
      {mayChange && shown.downloadable ? <CertificateFiles certificate={shown} /> : null}
      {mayChange && isRevocable(shown) ? <RevokeCertificate certificate={shown} from={certificatePath(shown)} /> : null}
    </>
  );
  const current = faceOf(c) === 'portal' ? 'people' : 'certificates';
  return framed(c, deps, { title: `Certificate ${certificateName(shown)}`, current, body, refused });
}

/** What cannot be read is a step that is open, not an error of the page. */
async function proofOf(deps: Deps, certificate: CertificateView): Promise<ProofFacts> {
  const { username, fingerprint } = certificate;
  const [revocations, list, canary] = await Promise.all([
    attempt(() => deps.certificateStore.revocations([username])),
    attempt(() => deps.coreAuthority.revocationList()),
    attempt(() => deps.certificateStore.lastCanary()),
  ]);
  const revocation = revocations.done?.find(({ hash }) => hash === fingerprint);
  return { certificate, revocation, list: list.done, canary: canary.done };
}

interface AboutProps {
  certificate: CertificateView;
  clock: Clock;
}

function About({ certificate, clock }: AboutProps) {
  const {
    username,
    name,
    client_uid: uid,
    state,
    issued_at,
    expires_at,
    effective_until,
    serial,
    fingerprint,
  } = certificate;
  const endsBefore = state === 'active' && effective_until !== expires_at;
  return (
    <Card title={name === null ? 'Enrolled by a device' : 'Issued here'} aside={<CertificateBadge state={state} />}>
      <Facts
        of={{
          Person: <OwnerLink username={username} />,
          Device: uid === '' ? undefined : uid,
          Issued: <When at={issued_at} clock={clock} />,
          'Good until': <When at={expires_at} clock={clock} relative={state === 'active' && !endsBefore} />,
          'In effect until': endsBefore ? (
            <>
              <When at={effective_until} clock={clock} relative />, when the person's access ends
            </>
          ) : undefined,
          'Serial number': <code>{serial}</code>,
          Fingerprint: <Copyable id="fingerprint" text={fingerprint} />,
        }}
      />
    </Card>
  );
}

interface Wanted {
  username: string;
  name: string;
}

/** Adds the routes of this file. */
export function certificateNewPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);
  const demand = { access: 'admin', area: 'people' } as const;

  pages.get('/certificates/new', demand, function showForm(c) {
    return showNewCertificate(c, deps, { username: (c.req.query('username') ?? '').slice(0, 64), name: '' });
  });

  pages.post('/certificates/new', demand, async function issue(c) {
    const form = await formOf(c);
    const wanted = { username: form.text('username'), name: form.text('name') };
    const tried = await attempt(() => issueCertificate(actingIn(c, deps), wanted));
    if (tried.refused !== undefined) return showNewCertificate(c, deps, wanted, tried.refused);
    const { p12_base64: bundle } = tried.done;
    if (bundle !== undefined) return showOnce(c, deps, tried.done, bundle);
    return goTo(c, `${certificatePath(tried.done)}?done=issued`);
  });
}

function showNewCertificate(
  c: PageContext,
  deps: Deps,
  { username, name }: Wanted,
  refused?: AppError,
): Promise<Response> {
  const body = (
    <>
      <Problem error={refused} />
      <p>
        For a program, or a device that cannot enroll. A phone with ATAK, iTAK or TAK Aware enrolls by itself: choose{' '}
        <a href="/people">the person</a>, then “Enroll a device”.
      </p>
      <form method="post" action="/certificates/new" class="card narrow">
        <Field
          name="username"
          label="Person"
          hint="The name that this person signs in with."
          value={username}
          error={faultOf(refused, 'username')}
          required
          plain
          maxlength={64}
          autocomplete="off"
        />
        <Field
          name="name"
          label="Name of the certificate"
          hint="What it is for, such as laptop or gateway. Letters, digits and . _ - without blanks."
          value={name}
          error={faultOf(refused, 'name')}
          required
          plain
          maxlength={64}
          pattern="[A-Za-z0-9._\-]{1,64}"
          title="Letters, digits and . _ - without blanks"
          autocomplete="off"
        />
        <button type="submit">Issue it</button>
      </form>
    </>
  );
  return framed(c, deps, { title: 'Issue a certificate', current: 'certificates', body, refused });
}

/** Keys are not kept: nobody can make this file again. */
function showOnce(c: PageContext, deps: Deps, issued: IssuedCertificate, bundle: string): Promise<Response> {
  const body = (
    <>
      <Warning>
        <p>Save this file now: keys are not kept on this server, and it is shown nowhere again.</p>
      </Warning>
      <section class="card">
        <p>
          Its password is <code>{BUNDLE_PASSWORD}</code>, which everybody knows: whoever has the file comes in as{' '}
          {issued.username}.
        </p>
        <a class="button primary" href={`data:application/x-pkcs12;base64,${bundle}`} download={issued.file}>
          Save {issued.file}
        </a>
      </section>
      <p>
        <a href={certificatePath(issued)}>I have it: on to the certificate</a>
      </p>
    </>
  );
  return framed(c, deps, { title: 'The certificate is issued', current: 'certificates', body });
}
