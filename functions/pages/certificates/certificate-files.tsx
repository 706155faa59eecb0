// The files of a certificate whose key is kept: which one is for what, and the password that all of them have.

import { BUNDLE_PASSWORD } from '../../../shared/domain/data-package.ts';
import type { ShownCertificate } from '../../../shared/verbs/shown-certificate.ts';
import { Card } from '../parts/card.tsx';

const FILES: readonly (readonly [query: string, label: string, use: string])[] = [
  ['format=data-package&app=atak', 'Data package', 'for ATAK and WinTAK: address, CA and certificate in one'],
  ['format=data-package&app=itak', 'Data package for iTAK', 'the same, as iTAK reads it'],
  ['format=p12', 'PKCS#12 (.p12)', 'certificate and key, for a program or a browser'],
  ['format=p12&compat=legacy', 'PKCS#12, old style', 'for an ATAK that refuses the other one'],
  ['format=pem', 'PEM', 'certificate and key as text, without a password'],
];

export function CertificateFiles({ certificate }: { certificate: ShownCertificate }) {
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
