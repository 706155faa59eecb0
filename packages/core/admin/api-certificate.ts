// Issues and keeps svc_api, the certificate of management for the core's admin API.

import { createPrivateKey, webcrypto, X509Certificate } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { writeFileAtomically } from '@holdfast/kit/files';
import { BUNDLE_PASSWORD, type CertificateFiles, certificateFiles } from '@holdfast/pki/certificate-files';
import { certificatesOf, curveOf, newKeys, normalSerial, privateKeyPem } from '@holdfast/pki/keys';
import type { Authority } from '@holdfast/pki/parts';
import { lastsEnough, updateKeyBundle } from '@holdfast/pki/server-certificate';
import type { CertificateStore, Revocations, UsersFile } from '../model/parts.ts';
import { API_IDENTITY } from './users-document.ts';

const CREATOR = 'holdfast';

export interface ApiCertificateDeps {
  coreDirectory: string;
  authority: Authority;
  certificates: Pick<CertificateStore, 'add' | 'byHash'>;
  users: UsersFile;
  isRevoked: Revocations['isRevoked'];
  now: Date;
}

export interface ApiCertificate {
  /** Absolute path of the PKCS#12 file. */
  file: string;
  password: string;
  /** Lower-case hex without leading zeros. */
  serial: string;
  /** `AA:BB:…` */
  hash: string;
}

/**
 * Makes the certificate anew when it is missing, unreadable, not of this CA, revoked, unknown to
 * the table, or within 31 days of its end, and sees to its right. Whatever a crash leaves undone,
 * the next call does.
 */
export async function ensureApiCertificate(deps: ApiCertificateDeps): Promise<ApiCertificate> {
  const files = certificateFiles(deps.coreDirectory);
  const certificate = (await usable(files, deps)) ?? (await make(files, deps));
  const { fingerprint256: fingerprint, serialNumber } = new X509Certificate(certificate);
  if (deps.users.roleOf({ hash: fingerprint, commonName: '' }) !== 'ROLE_ADMIN')
    deps.users.grant({ identifier: API_IDENTITY, fingerprint, role: 'ROLE_ADMIN' });
  appendChain(files, certificate, deps.authority.chain);
  await updateKeyBundle(files.apiBundle, files.apiKey, certificate, deps.authority.chain, API_IDENTITY);
  return { file: files.apiBundle, password: BUNDLE_PASSWORD, serial: normalSerial(serialNumber), hash: fingerprint };
}

/** The CA may have another certificate for its key since. */
function appendChain(files: CertificateFiles, certificate: string, chain: readonly string[]): void {
  const wanted = `${certificate}${chain.join('')}`;
  if (readFileSync(files.api, 'utf8') === wanted) return;
  rmSync(files.apiBundle, { force: true });
  writeFileAtomically(files.api, wanted, 0o644);
}

/** The certificate as it is, in PEM, if it still serves. */
async function usable(
  files: CertificateFiles,
  { authority, certificates, isRevoked, now }: ApiCertificateDeps,
): Promise<string | undefined> {
  const pem = ours(files, authority, now);
  if (pem === undefined) return undefined;
  const { serialNumber, fingerprint256 } = new X509Certificate(pem);
  if (isRevoked(normalSerial(serialNumber))) return undefined;
  const record = await certificates.byHash(fingerprint256);
  return record === undefined || record.revocationDate !== null ? undefined : pem;
}

function ours(files: CertificateFiles, authority: Authority, now: Date): string | undefined {
  if (!existsSync(files.api) || !existsSync(files.apiKey)) return undefined;
  try {
    const [pem = ''] = certificatesOf(readFileSync(files.api, 'utf8'));
    const certificate = new X509Certificate(pem);
    const ca = new X509Certificate(authority.chain[0] ?? '');
    const belongs =
      certificate.verify(ca.publicKey) && certificate.checkPrivateKey(createPrivateKey(readFileSync(files.apiKey)));
    return belongs && lastsEnough(certificate, ca, now) ? pem : undefined;
  } catch {
    return undefined;
  }
}

async function make(files: CertificateFiles, { authority, certificates, now }: ApiCertificateDeps): Promise<string> {
  const keys = await newKeys(curveOf(new X509Certificate(authority.chain[0] ?? '').publicKey));
  const publicKey = new Uint8Array(await webcrypto.subtle.exportKey('spki', keys.publicKey));
  const signed = await authority.issue({ publicKey, commonName: API_IDENTITY, channels: true }, now);
  await certificates.add(signed, { creator: CREATOR, clientUid: API_IDENTITY }, now);
  writeFileAtomically(files.apiKey, await privateKeyPem(keys.privateKey));
  writeFileAtomically(files.api, `${signed.pem}${authority.chain.join('')}`, 0o644);
  return signed.pem;
}
