// Revoking asks once, and says what it does.

import type { ShownCertificate } from '../../../shared/verbs/shown-certificate.ts';
import { Confirm } from '../parts/confirm.tsx';
import { certificateName, certificatePath } from './certificate-words.tsx';

interface RevokeCertificateProps {
  certificate: ShownCertificate;
  /** Where one comes back to. */
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
        Whoever holds this certificate of {certificate.username} is shut out: the connection ends, and no new one is let
        in. It cannot be taken back; the device would have to enroll anew.
      </p>
    </Confirm>
  );
}
