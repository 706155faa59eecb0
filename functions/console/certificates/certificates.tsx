// GET /certificates: lists all certificates by expiry, with the CA and the revocation list as
// downloads.

import type { AuthorityCertificate, RevocationListContent } from '../../../shared/core/port.ts';
import { safeFileName } from '../../../shared/devices/certificates/data-package.ts';
import { listCertificates, type ListedState } from '../../../shared/devices/certificates/list.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { expiringAccounts } from '../../../shared/people/deactivate-user.ts';
import { CertificateList, isPending, REVOCATION_NOTICES } from '../../pages/certificates/list.tsx';
import { type Attempt, attempt } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../../pages/page-routes.ts';
import { Card, Copyable, Facts, Search } from '../../pages/parts/card.tsx';
import { Missing, Notice } from '../../pages/parts/notice.tsx';
import { Empty, pageNumber, Pager } from '../../pages/parts/table.tsx';
import { type Clock, clockOf, When } from '../../pages/parts/time.tsx';

interface AuthorityCardProps {
  authority: Attempt<AuthorityCertificate>;
  list: Attempt<RevocationListContent>;
  clock: Clock;
}

/** The core's CA and revocation list, with downloads. Neither is secret. */
export function AuthorityCard({ authority, list, clock }: AuthorityCardProps) {
  return (
    <Card title="Certificate authority">
      {authority.refused === undefined ? (
        <>
          <Facts
            of={{
              Fingerprint: <Copyable id="ca-fingerprint" text={authority.done.fingerprint} />,
              Expires: <When at={authority.done.expiresAt} clock={clock} relative />,
            }}
          />
          <p>
            <a class="button small" href="/certificates/ca.pem" download="">
              CA certificate (PEM)
            </a>
          </p>
        </>
      ) : (
        <Missing>Couldn't read the CA. {authority.refused.message}</Missing>
      )}
      <h3>Revocation list</h3>
      {list.refused === undefined ? (
        <>
          <Facts
            of={{
              'Revoked certificates': String(list.done.serials.length),
              Issued: <When at={list.done.thisUpdate} clock={clock} relative />,
              'Valid until': <When at={list.done.nextUpdate} clock={clock} never="replaced" />,
              Signature: list.done.ours ? 'by this CA' : 'not by this CA, so the list has no effect',
            }}
          />
          <p>
            <a class="button small" href="/certificates/crl.pem" download="">
              Revocation list (PEM)
            </a>
          </p>
        </>
      ) : (
        <Missing>Couldn't read the revocation list. {list.refused.message}</Missing>
      )}
    </Card>
  );
}

export async function sendAuthority(c: PageContext, deps: Deps): Promise<Response> {
  const { chainPem } = await deps.coreAuthority.certificate();
  return sendPem(c, `${safeFileName(deps.place.name)}-ca.pem`, chainPem.map((pem) => `${pem.trim()}\n`).join(''));
}

export async function sendRevocationList(c: PageContext, deps: Deps): Promise<Response> {
  const { pem } = await deps.coreAuthority.revocationList();
  return sendPem(c, `${safeFileName(deps.place.name)}-crl.pem`, `${pem.trim()}\n`);
}

function sendPem(c: PageContext, name: string, text: string): Response {
  return c.body(text, 200, {
    'Content-Type': 'application/x-pem-file',
    'Content-Disposition': `attachment; filename="${name}"`,
    'Cache-Control': 'no-store',
  });
}

const PAGE_SIZE = 50;

const STATES: readonly (readonly [value: string, label: string])[] = [
  ['active', 'Active'],
  ['revoked', 'Revoked'],
  ['expired', 'Expired'],
  ['all', 'All'],
];

const NOTICES = {
  ...REVOCATION_NOTICES,
  which:
    "Nothing was revoked: Holdfast can't tell which of these certificates the device uses. Revoke the right one here. To block all devices, deactivate the person.",
};

/** Adds the routes of this file. */
export function certificatesPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);
  const demand = { access: 'viewer', area: 'people' } as const;
  pages.get('/certificates', demand, function showCertificates(c) {
    return showPage(c, deps);
  });
  // Before `:file`, which would take these names for certificates.
  pages.get('/certificates/ca.pem', { access: 'viewer' }, function downloadAuthority(c) {
    return sendAuthority(c, deps);
  });
  pages.get('/certificates/crl.pem', { access: 'viewer' }, function downloadRevocationList(c) {
    return sendRevocationList(c, deps);
  });
}

async function showPage(c: PageContext, deps: Deps): Promise<Response> {
  const search = (c.req.query('search') ?? '').trim().slice(0, 200);
  const status = STATES.find(([value]) => value === c.req.query('status'))?.[0] ?? 'active';
  const states = status === 'all' ? undefined : new Set([status as ListedState]);
  const page = pageNumber(c.req.query('page'));
  const mayChange = isAdmin(c);
  const readable = { ...deps, identity: expiringAccounts(deps) };
  const [listed, authority, list] = await Promise.all([
    attempt(() => listCertificates(readable, { states, search, order: 'ends', page, pageSize: PAGE_SIZE })),
    attempt(() => deps.coreAuthority.certificate()),
    attempt(() => deps.coreAuthority.revocationList()),
  ]);
  const { results = [], count = 0, certs_error: problem } = listed.done ?? {};
  const url = new URL(c.req.url);
  const clock = clockOf(deps);
  const live = results.some(isPending) ? { 'data-live': 'self', 'data-every': '5' } : { 'data-refresh': '' };
  const body = (
    <>
      <Notice c={c} sentences={NOTICES} />
      <Search
        action="/certificates"
        label="Search certificates"
        value={search}
        placeholder="Person, device, serial number"
      >
        <label class="silent" for="status">
          Status
        </label>
        <select id="status" name="status">
          {STATES.map(([value, label]) => (
            <option value={value} selected={value === status}>
              {label}
            </option>
          ))}
        </select>
      </Search>
      <section id="certificates" {...live}>
        {problem === undefined ? null : (
          <Missing>
            The core is unavailable ({problem}). This list shows only certificates that Holdfast recorded. Certificates
            that devices enrolled themselves are missing.
          </Missing>
        )}
        {listed.refused === undefined ? null : (
          <Missing>Couldn't load the certificates. {listed.refused.message}</Missing>
        )}
        {listed.refused !== undefined ? null : count === 0 ? (
          <NoCertificates search={search} status={status} />
        ) : (
          <>
            <CertificateList
              certificates={results}
              clock={clock}
              from={url.pathname + url.search}
              mayRevoke={mayChange}
              withPerson
              caption="Certificates by expiry, earliest first"
            />
            <Pager url={url} page={page} pageSize={PAGE_SIZE} count={count} />
          </>
        )}
      </section>
      <AuthorityCard authority={authority} list={list} clock={clock} />
    </>
  );
  const actions = mayChange ? (
    <a class="button" href="/certificates/new">
      Issue certificate
    </a>
  ) : undefined;
  return framed(c, deps, { title: 'Certificates', current: 'certificates', body, actions });
}

function NoCertificates({ search, status }: { search: string; status: string }) {
  const label = STATES.find(([value]) => value === status)?.[1].toLowerCase() ?? '';
  if (search !== '' || status !== 'active')
    return (
      <Empty>
        <p>
          No {status === 'all' ? '' : `${label} `}certificates
          {search === '' ? '' : ` match “${search}”. The search covers person, device and serial number`}.{' '}
          <a href="/certificates?status=all">Show all certificates</a>
        </p>
      </Empty>
    );
  return (
    <Empty>
      <p>No active certificates, so no device can connect.</p>
      <p>
        A device gets a certificate when it enrolls. <a href="/people">Choose a person</a>, then “Add device”.
      </p>
    </Empty>
  );
}
