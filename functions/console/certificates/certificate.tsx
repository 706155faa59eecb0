// GET /certificates/{file}, GET, POST /certificates/new: shows, revokes and issues a certificate.

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
  isPending,
  isRevocable,
  OwnerLink,
  REVOCATION_NOTICES,
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

const NOTICES = { ...REVOCATION_NOTICES, issued: 'Certificate issued. Download its files below.' };

/** Adds the page of a certificate. In the portal, only administrators may open it. */
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
      const result = await attempt(() => revokeCertificate(actingIn(c, deps), certificate));
      if (result.refused !== undefined) return showPage(c, deps, result.refused);
      const from = form.has('from') ? returnPath(form.text('from')) : certificatePath(shown);
      return goTo(c, withDone(from, result.done.state === 'revoked' ? 'revoked' : 'revoking'));
    },
  );
}

/**
 * The certificate in the address. The portal hides those of hidden accounts. Throws `not_found`.
 */
async function certificateOf(c: PageContext, deps: Deps): Promise<FoundOrRemembered> {
  const found = await findOrRemembered(anyUser(deps), c.req.param('file') ?? '');
  if (faceOf(c) === 'console') return found;
  const { username } = found.shown;
  const { done: account } = await attempt(() => deps.identity.accounts.named(username));
  const isShown =
    account === undefined ? !isHiddenName(username, deps.settings.USERS_HIDDEN_PREFIXES) : !isHidden(account, deps);
  if (isShown) return found;
  throw new AppError('not_found', "No certificate at this address. Open a person to see that person's certificates.");
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
  const isLive = refused === undefined && isPending(shown);
  const body = (
    <>
      <Notice c={c} sentences={NOTICES} />
      <Problem error={refused} />
      {problem === undefined ? null : (
        <Missing>The core is unavailable ({problem}). This shows the certificate as Holdfast recorded it.</Missing>
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

/** Facts that can't be read are undefined: the page then shows the step as pending. */
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
  const expiresEarlier = state === 'active' && effective_until !== expires_at;
  return (
    <Card
      title={name === null ? 'Enrolled by device' : 'Issued in Holdfast'}
      aside={<CertificateBadge state={state} />}
    >
      <Facts
        of={{
          Person: <OwnerLink username={username} />,
          Device: uid === '' ? undefined : uid,
          Issued: <When at={issued_at} clock={clock} />,
          Expires: <When at={expires_at} clock={clock} relative={state === 'active' && !expiresEarlier} />,
          'Effective until': expiresEarlier ? (
            <>
              <When at={effective_until} clock={clock} relative />, when the person's access expires
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

/** Adds the page that issues a certificate. */
export function certificateNewPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);
  const demand = { access: 'admin', area: 'people' } as const;

  pages.get('/certificates/new', demand, function showForm(c) {
    return showNewCertificate(c, deps, { username: (c.req.query('username') ?? '').slice(0, 64), name: '' });
  });

  pages.post('/certificates/new', demand, async function issue(c) {
    const form = await formOf(c);
    const wanted = { username: form.text('username'), name: form.text('name') };
    const result = await attempt(() => issueCertificate(actingIn(c, deps), wanted));
    if (result.refused !== undefined) return showNewCertificate(c, deps, wanted, result.refused);
    const { p12_base64: bundle } = result.done;
    if (bundle !== undefined) return showOnce(c, deps, result.done, bundle);
    return goTo(c, `${certificatePath(result.done)}?done=issued`);
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
        For a program, or for a device that can't enroll. Devices with ATAK, iTAK or TAK Aware enroll themselves: choose{' '}
        <a href="/people">the person</a>, then “Add device”.
      </p>
      <form method="post" action="/certificates/new" class="card narrow">
        <Field
          name="username"
          label="Person"
          hint="The person's username."
          value={username}
          error={faultOf(refused, 'username')}
          required
          plain
          maxlength={64}
          autocomplete="off"
        />
        <Field
          name="name"
          label="Certificate name"
          hint="Its purpose, such as laptop or gateway. Letters, digits and . _ - without spaces."
          value={name}
          error={faultOf(refused, 'name')}
          required
          plain
          maxlength={64}
          pattern="[A-Za-z0-9._\-]{1,64}"
          title="Letters, digits and . _ - without spaces"
          autocomplete="off"
        />
        <button type="submit">Issue certificate</button>
      </form>
    </>
  );
  return framed(c, deps, { title: 'Issue certificate', current: 'certificates', body, refused });
}

/** Shows the certificate once. When keys are not stored, it can't be downloaded later. */
function showOnce(c: PageContext, deps: Deps, issued: IssuedCertificate, bundle: string): Promise<Response> {
  const body = (
    <>
      <Warning>
        <p>Save this file now. It is offered only once, because keys are not stored on this server.</p>
      </Warning>
      <section class="card">
        <p>
          Its password is <code>{BUNDLE_PASSWORD}</code>, which is publicly known. Anyone with the file can connect as{' '}
          {issued.username}.
        </p>
        <a class="button primary" href={`data:application/x-pkcs12;base64,${bundle}`} download={issued.file}>
          Download {issued.file}
        </a>
      </section>
      <p>
        <a href={certificatePath(issued)}>I've saved it. Continue</a>
      </p>
    </>
  );
  return framed(c, deps, { title: 'Certificate issued', current: 'certificates', body });
}
