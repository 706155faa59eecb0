// Certificates as a table, on the page of all of them and on that of a person: state, end, and how one is revoked.

import { SERVICE_PREFIX } from '@holdfast/kit/names';
import { BUNDLE_PASSWORD } from '../../../shared/devices/certificates/data-package.ts';
import type { CertificateState, CertificateView } from '../../../shared/devices/certificates/view.ts';
import { isOwnCertificate } from '../../../shared/devices/rules.ts';
import type { Status } from '../../../shared/settings/status.ts';
import { Card, Confirm } from '../parts/card.tsx';
import { StatusBadge } from '../parts/notice.tsx';
import { Table } from '../parts/table.tsx';
import { type Clock, When } from '../parts/time.tsx';

const STATES: Record<CertificateState, readonly [Status, string]> = {
  active: ['ok', 'In force'],
  expired: ['note', 'Ended'],
  revoking: ['warning', 'Being revoked'],
  revoked: ['note', 'Revoked'],
  revocation_failed: ['critical', 'Not shut out yet'],
};

/** A certificate in words: what it is called, how it stands, and where its page is. */
export function CertificateBadge({ state }: { state: CertificateState }) {
  const [status, words] = STATES[state];
  return <StatusBadge status={status}>{words}</StatusBadge>;
}

/** The name that it was issued under, else what its device calls itself. */
export function certificateName({ name, client_uid: uid, file }: CertificateView): string {
  return name ?? (uid === '' ? file : uid);
}

/** By its hash: several can have one name. */
export function certificatePath({ fingerprint }: Pick<CertificateView, 'fingerprint'>): string {
  return `/certificates/${fingerprint.replaceAll(':', '').toLowerCase()}`;
}

/** Something may still change by itself. */
export function isOnItsWay({ state }: CertificateView): boolean {
  return state === 'revoking' || state === 'revocation_failed';
}

/** That by which Holdfast itself uses the core is replaced at the core alone. */
export function isRevocable({ state, username, client_uid: clientUid }: CertificateView): boolean {
  return state === 'active' && !isOwnCertificate({ username, clientUid });
}

/** For pages that one comes back to with `?done=` after a certificate was revoked. */
export const REVOCATION_SENTENCES = {
  revoked: 'The certificate is revoked: its device is shut out, and cannot come back.',
  revoking:
    'The certificate is being revoked. It counts as revoked when that is proven, which is tried every 5 seconds.',
} as const;

/**
 * Whose a certificate or a connection is, as a link to where one sees to it: people are found by name, programs have a page of
 * their own.
 */
export function OwnerLink({ username }: { username: string }) {
  const query = new URLSearchParams({ search: username }).toString();
  const isProgram = username.toLowerCase().startsWith(SERVICE_PREFIX);
  return <a href={isProgram ? '/service-accounts' : `/people?${query}`}>{username}</a>;
}

interface RevokeCertificateProps {
  certificate: CertificateView;
  /** Where one comes back to. */
  from: string;
}

/** Revoking asks once, and says what it does. */
export function RevokeCertificate({ certificate, from }: RevokeCertificateProps) {
  const path = certificatePath(certificate);
  return (
    <Confirm
      id={`revoke-${path.slice(-12)}`}
      label="Revoke…"
      of={certificateName(certificate)}
      action={`${path}/revoke`}
      button={`Revoke ${certificateName(certificate)}`}
    >
      <input type="hidden" name="from" value={from} />
      <p>
        Whoever holds this certificate of {certificate.username} is shut out: the connection ends, and no new one is let
        in. It cannot be taken back; the device would have to enroll anew.
      </p>
    </Confirm>
  );
}

interface CertificateListProps {
  certificates: readonly CertificateView[];
  clock: Clock;
  /** Where one comes back to after revoking: a path of ours. */
  from: string;
  mayRevoke: boolean;
  /** Of several people: whose each is. */
  withPerson?: boolean;
  caption?: string;
}

export function CertificateList(props: CertificateListProps) {
  const { certificates, clock, from, mayRevoke, withPerson = false, caption = 'Certificates' } = props;
  const columns = [
    { label: 'Certificate' },
    ...(withPerson ? [{ label: 'Person' }] : []),
    { label: 'State' },
    { label: 'Good until' },
    { label: 'Issued' },
    ...(mayRevoke ? [{ label: 'Revoke', silent: true }] : []),
  ];
  const rows = certificates.map((each) => [
    <a href={certificatePath(each)}>{certificateName(each)}</a>,
    ...(withPerson ? [<OwnerLink username={each.username} />] : []),
    <CertificateBadge state={each.state} />,
    <When at={each.effective_until} clock={clock} relative={each.state === 'active'} />,
    <When at={each.issued_at} clock={clock} />,
    ...(mayRevoke ? [isRevocable(each) ? <RevokeCertificate certificate={each} from={from} /> : ''] : []),
  ]);
  return (
    <div class="pairs">
      <Table caption={caption} columns={columns} rows={rows} />
    </div>
  );
}

const FILES: readonly (readonly [query: string, label: string, use: string])[] = [
  ['format=data-package&app=atak', 'Data package', 'for ATAK and WinTAK: address, CA and certificate in one'],
  ['format=data-package&app=itak', 'Data package for iTAK', 'the same, as iTAK reads it'],
  ['format=p12', 'PKCS#12 (.p12)', 'certificate and key, for a program or a browser'],
  ['format=p12&compat=legacy', 'PKCS#12, old style', 'for an ATAK that refuses the other one'],
  ['format=pem', 'PEM', 'certificate and key as text, without a password'],
];

/** The files of a certificate whose key is kept: which one is for what, and the password that all of them have. */
export function CertificateFiles({ certificate }: { certificate: CertificateView }) {
  const base = `/api/ops/certs/${certificate.fingerprint.replaceAll(':', '').toLowerCase()}/download`;
  return (
    <Card title="Files">
      <p>
        The password of each is <code>{BUNDLE_PASSWORD}</code>, which everybody knows: whoever has the file comes in as{' '}
        {certificate.username}. Every download is in the audit log.
      </p>
      <ul class="file-list">
        {FILES.map(([query, label, use]) => (
          <li>
            <a class="button small" href={`${base}?${query}`} download="">
              {label}
            </a>{' '}
            <span class="fine">{use}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
