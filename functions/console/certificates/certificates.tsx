// /certificates: all of them, what ends first comes first; the CA and the revocation list with their files.

import type { AuthorityCertificate, RevocationListContent } from '../../../shared/core/port.ts';
import { safeFileName } from '../../../shared/devices/certificates/data-package.ts';
import { listCertificates, type ListedState } from '../../../shared/devices/certificates/list.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { expiringAccounts } from '../../../shared/people/deactivate-user.ts';
import { CertificateList, isOnItsWay, REVOCATION_SENTENCES } from '../../pages/certificates/list.tsx';
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

/** The CA of the core and its revocation list: what they are, and as files. Neither is a secret. */
export function AuthorityCard({ authority, list, clock }: AuthorityCardProps) {
  return (
    <Card title="The CA of this server">
      {authority.refused === undefined ? (
        <>
          <Facts
            of={{
              Fingerprint: <Copyable id="ca-fingerprint" text={authority.done.fingerprint} />,
              'Good until': <When at={authority.done.expiresAt} clock={clock} relative />,
            }}
          />
          <p>
            <a class="button small" href="/certificates/ca.pem" download="">
              CA certificate (PEM)
            </a>
          </p>
        </>
      ) : (
        <Missing>The CA cannot be read: {authority.refused.message}</Missing>
      )}
      <h3>Revocation list</h3>
      {list.refused === undefined ? (
        <>
          <Facts
            of={{
              Revoked: String(list.done.serials.length),
              Written: <When at={list.done.thisUpdate} clock={clock} relative />,
              'In force until': <When at={list.done.nextUpdate} clock={clock} never="it is replaced" />,
              Signature: list.done.ours ? 'by this CA' : 'not by this CA: nothing in it counts',
            }}
          />
          <p>
            <a class="button small" href="/certificates/crl.pem" download="">
              Revocation list (PEM)
            </a>
          </p>
        </>
      ) : (
        <Missing>The revocation list cannot be read: {list.refused.message}</Missing>
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

const ON_A_PAGE = 50;

const STATES: readonly (readonly [value: string, label: string])[] = [
  ['active', 'In force'],
  ['revoked', 'Revoked'],
  ['expired', 'Ended'],
  ['all', 'All'],
];

const SENTENCES = {
  ...REVOCATION_SENTENCES,
  which:
    'Nothing is done yet: which of these certificates the device came with cannot be told. Revoke the right one here, or deactivate the person to shut out everything.',
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
    attempt(() => listCertificates(readable, { states, search, order: 'ends', page, pageSize: ON_A_PAGE })),
    attempt(() => deps.coreAuthority.certificate()),
    attempt(() => deps.coreAuthority.revocationList()),
  ]);
  const { results = [], count = 0, certs_error: problem } = listed.done ?? {};
  const url = new URL(c.req.url);
  const clock = clockOf(deps);
  const live = results.some(isOnItsWay) ? { 'data-live': 'self', 'data-every': '5' } : { 'data-refresh': '' };
  const body = (
    <>
      <Notice c={c} sentences={SENTENCES} />
      <Search
        action="/certificates"
        label="Search certificates"
        value={search}
        placeholder="Person, device, serial number"
      >
        <label class="silent" for="status">
          State
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
            The core does not answer ({problem}). These are the certificates that Holdfast has written down: what
            devices have enrolled by themselves is missing.
          </Missing>
        )}
        {listed.refused === undefined ? null : (
          <Missing>The certificates cannot be read: {listed.refused.message}</Missing>
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
              caption="Certificates, what ends first comes first"
            />
            <Pager url={url} page={page} pageSize={ON_A_PAGE} count={count} />
          </>
        )}
      </section>
      <AuthorityCard authority={authority} list={list} clock={clock} />
    </>
  );
  const actions = mayChange ? (
    <a class="button" href="/certificates/new">
      Issue a certificate
    </a>
  ) : undefined;
  return framed(c, deps, { title: 'Certificates', current: 'certificates', body, actions });
}

function NoCertificates({ search, status }: { search: string; status: string }) {
  const words = STATES.find(([value]) => value === status)?.[1].toLowerCase() ?? '';
  if (search !== '' || status !== 'active')
    return (
      <Empty>
        <p>
          No certificate {status === 'all' ? '' : `that is ${words} `}
          {search === '' ? '' : `has “${search}” in its person, device or number`}.{' '}
          <a href="/certificates?status=all">Show all certificates</a>
        </p>
      </Empty>
    );
  return (
    <Empty>
      <p>No certificate is in force: no device can connect.</p>
      <p>
        A device gets one when it enrolls: <a href="/people">choose a person</a>, then “Enroll a device”.
      </p>
    </Empty>
  );
}
