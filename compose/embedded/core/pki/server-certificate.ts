// The server certificate, and that all the files of the CA are there and up to date when a stack starts.

import 'reflect-metadata';
import { createPrivateKey, X509Certificate as NodeCertificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import * as x509 from '@peculiar/x509';
import { isIpAddress } from '../../../../shared/domain/host-name.ts';
import { messageOf } from '../../../../shared/domain/thrown.ts';
import { writeFileAtomically } from '../../atomic-file.ts';
import { explainFileError, StackError } from '../../stack-error.ts';
import { finishRenewal } from './ca-renewal.ts';
import { ensureCa, keyIdentifier, readCa } from './certificate-authority.ts';
import { type CertificateFiles, certificateFiles } from './certificate-files.ts';
import { updateDerivedFiles } from './derived-files.ts';
import {
  BACKDATED_MS,
  certificatesOf,
  DAY_MS,
  newKeys,
  privateKeyPem,
  serialNumber,
  SIGNATURE,
  signingKey,
} from './keys.ts';

export interface ServerCertificateFiles {
  /** The CA certificate, PEM. */
  ca: string;
  /** The server certificate with the CA appended, PEM. */
  certificate: string;
  /** The server's private key, PEM. */
  key: string;
}

export interface ServerCertificate extends ServerCertificateFiles {
  /** The certificate, or the chain with it, is another one than before: whoever serves it reads it again. */
  changed: boolean;
}

const SERVER_DAYS = 730;
/** Whole days count: so health, which warns at 30, sees the new one. */
const RENEW_DAYS = 31;

/**
 * Makes the CA once, and the server certificate whenever it is missing, near its end, or lacks one of `names`; brings up to
 * date what is made of them. To be called at each start and daily. Rejects with a StackError that says what to do.
 */
export async function ensureServerCertificate(
  coreDirectory: string,
  names: readonly string[],
  now: Date,
): Promise<ServerCertificate> {
  const files = certificateFiles(coreDirectory);
  try {
    mkdirSync(files.directory, { recursive: true, mode: 0o700 });
    finishRenewal(files);
    await ensureCa(files, now);
    const made = !serves(files, names, now);
    if (made) await makeServerCertificate(files, names, now);
    const changed = appendCa(files) || made;
    await updateDerivedFiles(files);
    return { ca: files.ca, certificate: files.server, key: files.serverKey, changed };
  } catch (error) {
    const explained = explainFileError(error, files.directory);
    if (explained instanceof StackError) throw explained;
    throw new StackError(
      `The CA in ${files.directory} cannot be used: ${messageOf(error)}`,
      'put ca.pem and ca-do-not-share.key back from a backup; or move both and takserver.pem away for a new CA, which every device must then trust anew',
      error,
    );
  }
}

async function makeServerCertificate(files: CertificateFiles, names: readonly string[], now: Date): Promise<void> {
  const ca = readCa(files);
  const keys = await newKeys();
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: 'CN=takserver',
    issuer: ca.certificate.subjectName,
    notBefore: new Date(now.getTime() - BACKDATED_MS),
    notAfter: new Date(Math.min(now.getTime() + SERVER_DAYS * DAY_MS, ca.certificate.notAfter.getTime())),
    signingAlgorithm: SIGNATURE,
    publicKey: keys.publicKey,
    signingKey: await signingKey(ca.key),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyAgreement, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]),
      new x509.SubjectAlternativeNameExtension(
        names.map((name) => ({ type: isIpAddress(name) ? 'ip' : 'dns', value: name })),
      ),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      new x509.AuthorityKeyIdentifierExtension(await keyIdentifier(ca.certificate)),
    ],
  });
  writeFileAtomically(files.serverKey, await privateKeyPem(keys.privateKey));
  writeFileAtomically(files.server, `${certificate.toString('pem')}\n${ca.chain.join('')}`, 0o644);
}

/** After the CA was prolonged the old certificate of it still stands behind the server's; true when it was replaced. */
function appendCa(files: CertificateFiles): boolean {
  const text = readFileSync(files.server, 'utf8');
  const [own = ''] = certificatesOf(text);
  const wanted = `${own}${certificatesOf(readFileSync(files.ca, 'utf8')).join('')}`;
  if (certificatesOf(text).join('') === wanted) return false;
  rmSync(files.serverBundle, { force: true });
  writeFileAtomically(files.server, wanted, 0o644);
  return true;
}

/** True when the certificate belongs to the key and the CA, is not near its end, and names everything wanted. */
function serves(files: CertificateFiles, names: readonly string[], now: Date): boolean {
  if (!existsSync(files.server) || !existsSync(files.serverKey)) return false;
  try {
    const certificate = new NodeCertificate(readFileSync(files.server));
    const ca = new NodeCertificate(readFileSync(files.ca));
    const ours =
      certificate.checkPrivateKey(createPrivateKey(readFileSync(files.serverKey))) && certificate.verify(ca.publicKey);
    return ours && lastsEnough(certificate, ca, now) && names.every((name) => namedBy(certificate, name));
  } catch {
    return false;
  }
}

/**
 * Valid now, as one is not that was made while the clock was ahead, and not near its end; or as long as the CA itself, beyond
 * which a new one would not last either.
 */
export function lastsEnough(certificate: NodeCertificate, ca: NodeCertificate, now: Date): boolean {
  if (Date.parse(certificate.validFrom) > now.getTime()) return false;
  const end = Date.parse(certificate.validTo);
  return end - now.getTime() > RENEW_DAYS * DAY_MS || end >= Date.parse(ca.validTo);
}

function namedBy(certificate: NodeCertificate, name: string): boolean {
  return (isIpAddress(name) ? certificate.checkIP(name) : certificate.checkHost(name)) !== undefined;
}
