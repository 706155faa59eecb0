// GET /service-accounts/:id: one account of a program, its certificate, and how it is deleted. Those of the stack itself stay.

import type { AppError } from '@holdfast/kit/app-error';
import { API_ACCOUNT, isOwnServiceAccount, nameKey } from '@holdfast/kit/names';
import { BUNDLE_PASSWORD } from '../../../shared/devices/certificates/data-package.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { goTo } from '../../../shared/http/page.tsx';
import { userId } from '../../../shared/http/schemas/people.ts';
import { actingIn } from '../../../shared/http/sign-in.ts';
import type { CreatedServiceAccount } from '../../../shared/people/service-accounts/create.ts';
import {
  deleteServiceAccount,
  readServiceAccount,
  type ServiceAccountView,
} from '../../../shared/people/service-accounts/service-accounts.ts';
import type { Status } from '../../../shared/settings/status.ts';
import { attempt } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../../pages/page-routes.ts';
import { Card, Confirm, Facts } from '../../pages/parts/card.tsx';
import { Missing, Notice, Problem, StatusBadge } from '../../pages/parts/notice.tsx';
import { type Clock, clockOf, When } from '../../pages/parts/time.tsx';

type Certificate = NonNullable<ServiceAccountView['certificate']>;

const FEW_DAYS = 30;

const STATES: Record<Certificate['state'], [status: Status, words: string]> = {
  active: ['ok', 'In force'],
  expired: ['critical', 'Certificate ended'],
  revoking: ['note', 'Being revoked'],
  revoked: ['note', 'Revoked'],
  revocation_failed: ['critical', 'Revocation not proven'],
};

/** Whether the program can come in. */
export function AccountStatusBadge({ account }: { account: ServiceAccountView }) {
  const [status, words] = accountStatus(account);
  return <StatusBadge status={status}>{words}</StatusBadge>;
}

function accountStatus(account: ServiceAccountView): [Status, string] {
  const { is_active: isActive, certificate } = account;
  if (certificate?.state === 'revocation_failed') return STATES.revocation_failed;
  if (!isActive) return certificate?.state === 'active' ? ['warning', 'Deleted, not revoked yet'] : ['note', 'Deleted'];
  if (isKeptAsFile(account)) return ['ok', 'Made at the start'];
  if (certificate === null) return ['warning', 'No certificate'];
  if (certificate.state === 'active' && certificate.days_left < FEW_DAYS) return ['warning', 'Ends soon'];
  return STATES[certificate.state];
}

/** A TAK Server records only what it has signed itself. The certificate of `svc_api` exists before its first start. */
export function isKeptAsFile({ username, certificate }: ServiceAccountView): boolean {
  return certificate === null && nameKey(username) === API_ACCOUNT;
}

export function Ends({ account, clock }: { account: ServiceAccountView; clock: Clock }) {
  const { certificate } = account;
  if (isKeptAsFile(account)) return <a href="/health/certificates">in health</a>;
  if (certificate === null) return <span class="fine">no certificate</span>;
  if (certificate.state === 'revoked') return <span class="fine">revoked</span>;
  return <When at={certificate.effective_until} clock={clock} relative />;
}

/** Files for programs of every kind. */
export function Downloads({ certificate: { file } }: { certificate: Certificate }) {
  const path = `/api/ops/certs/${encodeURIComponent(file)}/download`;
  return (
    <>
      <div class="row">
        <a class="button primary" href={path} download>
          Download {file}
        </a>
        <a class="button" href={`${path}?format=pem`} download>
          The same as PEM
        </a>
      </div>
      <p class="fine">
        The password of the .p12 is <code>{BUNDLE_PASSWORD}</code>. The PEM has none. Either holds the key: whoever has
        the file is this account. Each download is in the audit log.
      </p>
    </>
  );
}

/** The key that is kept nowhere. */
export function NewKey({ account: { username, id, p12 } }: { account: CreatedServiceAccount & { p12: string } }) {
  return (
    <section class="card">
      <h2>Take its certificate now: it is never shown again</h2>
      <p>
        Keys are not kept here (KEEP_CLIENT_KEYS is false). Reloading this page does not bring it back; without it the
        account has to be deleted and made again.
      </p>
      <div class="row">
        <a class="button primary" href={`data:application/x-pkcs12;base64,${p12}`} download={`${username}.p12`}>
          Download {username}.p12
        </a>
      </div>
      <p>
        Its password is <code>{BUNDLE_PASSWORD}</code>.
      </p>
      <p>
        <a href={`/service-accounts/${id}`}>I have it: to {username}</a>
      </p>
    </section>
  );
}

const PATH = '/service-accounts';
const DONE = {
  made: 'The account is made. Download its certificate below, and give it to the program.',
  pending:
    'The account is made. The core is still adding its admin right; the audit log shows when that is done. Download the certificate below.',
  deleted:
    'The account is deleted: nobody comes in with it any more. That its certificate is refused is being proven; this page says when it is.',
};

/** Adds the routes of this file. */
export function serviceAccountPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);

  pages.get(`${PATH}/:id`, { access: 'viewer', area: 'people' }, function showOne(c) {
    return showAccount(c, deps);
  });

  pages.post(`${PATH}/:id/delete`, { access: 'admin', area: 'people' }, async function endOne(c) {
    const { refused } = await attempt(() => deleteServiceAccount(actingIn(c, deps), { id: idOf(c) }));
    return refused === undefined ? goTo(c, `${PATH}/${idOf(c)}?done=deleted`) : showAccount(c, deps, refused);
  });
}

function idOf(c: PageContext): number {
  return userId(c.req.param('id') ?? '');
}

async function showAccount(c: PageContext, deps: Deps, refused?: AppError): Promise<Response> {
  const account = await readServiceAccount(deps, { id: idOf(c) });
  const { username, certs_error: missing } = account;
  const mayChange = isAdmin(c);
  const body = (
    <>
      <p>
        <a href={PATH}>All service accounts</a>
      </p>
      <Notice c={c} sentences={DONE} />
      <Problem error={refused} />
      {missing === undefined ? null : (
        <Missing>The certificate is shown as Holdfast has written it down: {missing}</Missing>
      )}
      <About account={account} clock={clockOf(deps)} />
      {mayChange ? <What account={account} /> : null}
    </>
  );
  return framed(c, deps, {
    title: username,
    heading: <bdi>{username}</bdi>,
    current: 'service-accounts',
    body,
    refused,
  });
}

/** Looked at again while a revocation is on its way. */
function About({ account, clock }: { account: ServiceAccountView; clock: Clock }) {
  const { certificate, kind, groups, is_active: isActive } = account;
  const revokedAt = certificate?.revoked_at ?? null;
  const moves = certificate?.state === 'revoking' || (!isActive && certificate?.state === 'active');
  return (
    <section class="card" id="about" {...(moves ? { 'data-live': 'self' } : { 'data-refresh': '' })}>
      <Facts
        of={{
          State: <AccountStatusBadge account={account} />,
          Kind: kind === 'admin' ? "admin: may use the core's admin API" : 'data: what a device may',
          Groups: groups.length === 0 ? 'none: it sees nothing' : groups.join(', '),
          Certificate: isKeptAsFile(account)
            ? `${account.username}.p12, made at the start`
            : (certificate?.file ?? 'none'),
          Issued: certificate === null ? undefined : <When at={certificate.issued_at} clock={clock} />,
          Ends: certificate === null ? undefined : <When at={certificate.expires_at} clock={clock} relative />,
          Revoked: revokedAt === null ? undefined : <When at={revokedAt} clock={clock} relative />,
          Serial: certificate === null ? undefined : <code>{certificate.serial}</code>,
        }}
      />
    </section>
  );
}

function What({ account }: { account: ServiceAccountView }) {
  const { username, id, certificate, is_active: isActive } = account;
  if (isOwnServiceAccount(username))
    return (
      <Missing>
        {username} is part of the stack: it is made at the start and renewed by itself. It cannot be deleted here.
      </Missing>
    );
  if (!isActive)
    return (
      <Missing>
        This account is deleted. To bring it back, <a href={`${PATH}#make`}>make one of the same name</a>: it gets a new
        certificate.
      </Missing>
    );
  return (
    <>
      <Card title="Its certificate">
        {certificate?.downloadable === true ? (
          <Downloads certificate={certificate} />
        ) : (
          <p>
            It cannot be downloaded: no key of it is kept here. Where it is lost, delete the account and make one of the
            same name.
          </p>
        )}
      </Card>
      <Confirm id="delete" label="Delete…" action={`${PATH}/${id}/delete`} button={`Delete ${username}`}>
        <p>
          The program is cut off at once, and its certificate is revoked for good. What it has sent stays. The name can
          be used again, with a new certificate.
        </p>
      </Confirm>
    </>
  );
}
