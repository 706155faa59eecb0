// GET /service-accounts/:id: shows one service account with its certificate. POST …/delete: deletes
// it.

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

const SOON_DAYS = 30;

const STATES: Record<Certificate['state'], [status: Status, label: string]> = {
  active: ['ok', 'Active'],
  expired: ['critical', 'Certificate expired'],
  revoking: ['note', 'Revoking'],
  revoked: ['note', 'Revoked'],
  revocation_failed: ['critical', 'Revocation not confirmed'],
};

/** Shows whether the program can connect. */
export function AccountStatusBadge({ account }: { account: ServiceAccountView }) {
  const [status, label] = accountStatus(account);
  return <StatusBadge status={status}>{label}</StatusBadge>;
}

function accountStatus(account: ServiceAccountView): [Status, string] {
  const { is_active: isActive, certificate } = account;
  if (certificate?.state === 'revocation_failed') return STATES.revocation_failed;
  if (!isActive) return certificate?.state === 'active' ? ['warning', 'Deleted, not revoked yet'] : ['note', 'Deleted'];
  if (isKeptAsFile(account)) return ['ok', 'Created at startup'];
  if (certificate === null) return ['warning', 'No certificate'];
  if (certificate.state === 'active' && certificate.days_left < SOON_DAYS) return ['warning', 'Expires soon'];
  return STATES[certificate.state];
}

/**
 * True for `svc_api`: its certificate exists before the first start, and TAK Server lists only what
 * it signed itself.
 */
export function isKeptAsFile({ username, certificate }: ServiceAccountView): boolean {
  return certificate === null && nameKey(username) === API_ACCOUNT;
}

export function CertificateExpiry({ account, clock }: { account: ServiceAccountView; clock: Clock }) {
  const { certificate } = account;
  if (isKeptAsFile(account)) return <a href="/health/certificates">See health</a>;
  if (certificate === null) return <span class="fine">no certificate</span>;
  if (certificate.state === 'revoked') return <span class="fine">revoked</span>;
  return <When at={certificate.effective_until} clock={clock} relative />;
}

/** The downloads of the certificate. */
export function Downloads({ certificate: { file } }: { certificate: Certificate }) {
  const path = `/api/ops/certs/${encodeURIComponent(file)}/download`;
  return (
    <>
      <div class="row">
        <a class="button primary" href={path} download>
          Download {file}
        </a>
        <a class="button" href={`${path}?format=pem`} download>
          Download as PEM
        </a>
      </div>
      <p class="fine">
        The password of the .p12 file is <code>{BUNDLE_PASSWORD}</code>. The PEM file has none. Both contain the key, so
        anyone with the file can use this account. Every download is in the audit log.
      </p>
    </>
  );
}

/** The only page that offers the key when keys are not stored. */
export function NewKey({ account: { username, id, p12 } }: { account: CreatedServiceAccount & { p12: string } }) {
  return (
    <section class="card">
      <h2>Save the certificate now</h2>
      <p>
        It is shown only once, because keys are not stored (KEEP_CLIENT_KEYS is false). Reloading this page does not
        show it again. If you lose it, delete the account and add it again.
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
        <a href={`/service-accounts/${id}`}>I've saved it. Continue</a>
      </p>
    </section>
  );
}

const PATH = '/service-accounts';
const DONE = {
  made: 'Account added. Download its certificate below and give it to the program.',
  pending:
    'Account added. The core is still adding its admin right. The audit log shows when that is done. Download the certificate below.',
  deleted:
    'Account deleted. It can no longer connect. This page shows when the revocation of its certificate is confirmed.',
};

/** Adds the routes of this file. */
export function serviceAccountPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);

  pages.get(`${PATH}/:id`, { access: 'viewer', area: 'people' }, function showOne(c) {
    return showAccount(c, deps);
  });

  pages.post(`${PATH}/:id/delete`, { access: 'admin', area: 'people' }, async function deleteOne(c) {
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
      {missing === undefined ? null : <Missing>This shows the certificate as Holdfast recorded it. {missing}</Missing>}
      <About account={account} clock={clockOf(deps)} />
      {mayChange ? <Actions account={account} /> : null}
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

/** Refreshes itself while a revocation is being confirmed. */
function About({ account, clock }: { account: ServiceAccountView; clock: Clock }) {
  const { certificate, kind, groups, is_active: isActive } = account;
  const revokedAt = certificate?.revoked_at ?? null;
  const isChanging = certificate?.state === 'revoking' || (!isActive && certificate?.state === 'active');
  return (
    <section class="card" id="about" {...(isChanging ? { 'data-live': 'self' } : { 'data-refresh': '' })}>
      <Facts
        of={{
          Status: <AccountStatusBadge account={account} />,
          Kind: kind === 'admin' ? "admin: can use the core's admin API" : 'data: the same as a device',
          Groups: groups.length === 0 ? 'none (sees nothing)' : groups.join(', '),
          Certificate: isKeptAsFile(account)
            ? `${account.username}.p12, created at startup`
            : (certificate?.file ?? 'none'),
          Issued: certificate === null ? undefined : <When at={certificate.issued_at} clock={clock} />,
          Expires: certificate === null ? undefined : <When at={certificate.expires_at} clock={clock} relative />,
          Revoked: revokedAt === null ? undefined : <When at={revokedAt} clock={clock} relative />,
          'Serial number': certificate === null ? undefined : <code>{certificate.serial}</code>,
        }}
      />
    </section>
  );
}

function Actions({ account }: { account: ServiceAccountView }) {
  const { username, id, certificate, is_active: isActive } = account;
  if (isOwnServiceAccount(username))
    return (
      <Missing>
        {username} is part of the stack. It is created at startup and renewed automatically. You can't delete it here.
      </Missing>
    );
  if (!isActive)
    return (
      <Missing>
        This account is deleted. To restore it, <a href={`${PATH}#make`}>add one with the same name</a>. It gets a new
        certificate.
      </Missing>
    );
  return (
    <>
      <Card title="Certificate">
        {certificate?.downloadable === true ? (
          <Downloads certificate={certificate} />
        ) : (
          <p>
            You can't download it, because its key is not stored. If it is lost, delete the account and add one with the
            same name.
          </p>
        )}
      </Card>
      <Confirm id="delete" label="Delete…" action={`${PATH}/${id}/delete`} button={`Delete ${username}`}>
        <p>
          The program is disconnected immediately, and its certificate is revoked permanently. Data that it sent stays.
          You can use the name again with a new certificate.
        </p>
      </Confirm>
    </>
  );
}
