// Shows certificates as a table, with status, files and revocation. Shared by the pages about
// people and certificates.

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
  active: ['ok', 'Active'],
  expired: ['note', 'Expired'],
  revoking: ['warning', 'Revoking'],
  revoked: ['note', 'Revoked'],
  revocation_failed: ['critical', 'Revocation not confirmed'],
};

export function CertificateBadge({ state }: { state: CertificateState }) {
  const [status, words] = STATES[state];
  return <StatusBadge status={status}>{words}</StatusBadge>;
}

/** The name it was issued under, or the name its device reports. */
export function certificateName({ name, client_uid: uid, file }: CertificateView): string {
  return name ?? (uid === '' ? file : uid);
}

/** Its path, by fingerprint, because names are not unique. */
export function certificatePath({ fingerprint }: Pick<CertificateView, 'fingerprint'>): string {
  return `/certificates/${fingerprint.replaceAll(':', '').toLowerCase()}`;
}

/** True while a revocation is still being confirmed. */
export function isPending({ state }: CertificateView): boolean {
  return state === 'revoking' || state === 'revocation_failed';
}

/**
 * True for active certificates, except the one that Holdfast uses itself: only the core can replace
 * that one.
 */
export function isRevocable({ state, username, client_uid: clientUid }: CertificateView): boolean {
  return state === 'active' && !isOwnCertificate({ username, clientUid });
}

/** The notices after a revocation, by the value of `?done=`. */
export const REVOCATION_NOTICES = {
  revoked: 'Certificate revoked. Its device can no longer connect.',
  revoking: 'The certificate is being revoked. Holdfast retries every 5 seconds until that is confirmed.',
} as const;

/**
 * A link to the owner of a certificate or connection: a search for the person, or the service
 * accounts.
 */
export function OwnerLink({ username }: { username: string }) {
  const query = new URLSearchParams({ search: username }).toString();
  const isProgram = username.toLowerCase().startsWith(SERVICE_PREFIX);
  return <a href={isProgram ? '/service-accounts' : `/people?${query}`}>{username}</a>;
}

interface RevokeCertificateProps {
  certificate: CertificateView;
  /** The path to return to. */
  from: string;
}

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
        The device with this certificate of {certificate.username} is disconnected and can't connect again. You can't
        undo this. To return, the device must enroll again.
      </p>
    </Confirm>
  );
}

interface CertificateListProps {
  certificates: readonly CertificateView[];
  clock: Clock;
  /** The path to return to after a revocation. */
  from: string;
  mayRevoke: boolean;
  /** Adds a column for the person. */
  withPerson?: boolean;
  caption?: string;
}

export function CertificateList(props: CertificateListProps) {
  const { certificates, clock, from, mayRevoke, withPerson = false, caption = 'Certificates' } = props;
  const columns = [
    { label: 'Certificate' },
    ...(withPerson ? [{ label: 'Person' }] : []),
    { label: 'Status' },
    { label: 'Expires' },
    { label: 'Issued' },
    ...(mayRevoke ? [{ label: 'Actions', silent: true }] : []),
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
  ['format=data-package&app=atak', 'Data package', 'for ATAK and WinTAK, with address, CA and certificate'],
  ['format=data-package&app=itak', 'Data package for iTAK', 'the same in the format of iTAK'],
  ['format=p12', 'PKCS#12 (.p12)', 'certificate and key, for a program or a browser'],
  ['format=p12&compat=legacy', 'PKCS#12 (legacy)', 'for ATAK versions that refuse the other .p12'],
  ['format=pem', 'PEM', 'certificate and key as text, without a password'],
];

/** The downloads of a certificate whose key is stored, with their password. */
export function CertificateFiles({ certificate }: { certificate: CertificateView }) {
  const base = `/api/ops/certs/${certificate.fingerprint.replaceAll(':', '').toLowerCase()}/download`;
  return (
    <Card title="Files">
      <p>
        The password of each file is <code>{BUNDLE_PASSWORD}</code>, which is publicly known. Anyone with a file can
        connect as {certificate.username}. Every download is in the audit log.
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
