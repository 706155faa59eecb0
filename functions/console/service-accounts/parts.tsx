// How a service account and its certificate are shown: in the list, on its own page, and when it is new.

import { BUNDLE_PASSWORD } from '../../../shared/devices/certificates/data-package.ts';
import type { CreatedServiceAccount } from '../../../shared/people/service-accounts/create.ts';
import type { ShownServiceAccount } from '../../../shared/people/service-accounts/service-accounts.ts';
import type { Status } from '../../../shared/settings/status.ts';
import type { Clock } from '../../pages/clock.ts';
import { StatusBadge } from '../../pages/parts/notice.tsx';
import { When } from '../../pages/parts/time.tsx';

type Certificate = NonNullable<ShownServiceAccount['certificate']>;

const FEW_DAYS = 30;

const STATES: Record<Certificate['state'], [status: Status, words: string]> = {
  active: ['ok', 'In force'],
  expired: ['critical', 'Certificate ended'],
  revoking: ['note', 'Being revoked'],
  revoked: ['note', 'Revoked'],
  revocation_failed: ['critical', 'Revocation not proven'],
};

/** Whether the program can come in. */
export function StandingBadge({ account: { is_active, certificate } }: { account: ShownServiceAccount }) {
  const [status, words] = standing(is_active, certificate);
  return <StatusBadge status={status}>{words}</StatusBadge>;
}

function standing(isActive: boolean, certificate: Certificate | null): [Status, string] {
  if (certificate?.state === 'revocation_failed') return STATES.revocation_failed;
  if (!isActive) return certificate?.state === 'active' ? ['warning', 'Deleted, not revoked yet'] : ['note', 'Deleted'];
  if (certificate === null) return ['warning', 'No certificate'];
  if (certificate.state === 'active' && certificate.days_left < FEW_DAYS) return ['warning', 'Ends soon'];
  return STATES[certificate.state];
}

export function Ends({ certificate, clock }: { certificate: Certificate | null; clock: Clock }) {
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
