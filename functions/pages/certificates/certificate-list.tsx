// Certificates as a table, on the page of all of them and on that of a person: state, end, and how one is revoked.

import type { ShownCertificate } from '../../../shared/verbs/shown-certificate.ts';
import type { Clock } from '../clock.ts';
import { Table } from '../parts/table.tsx';
import { When } from '../parts/time.tsx';
import { CertificateBadge, certificateName, certificatePath, isRevocable } from './certificate-words.tsx';
import { OwnerLink } from './owner-link.tsx';
import { RevokeCertificate } from './revoke-form.tsx';

interface CertificateListProps {
  certificates: readonly ShownCertificate[];
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
