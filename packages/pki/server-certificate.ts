// The server certificate, and that all the files of the CA are there and up to date when a stack
// starts.

import 'reflect-metadata';
import { createPrivateKey, X509Certificate as NodeCertificate, X509Certificate } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';
import * as asn1js from 'asn1js';
import { isIpAddress } from '@holdfast/kit/addresses';
import { explainFileError, messageOf, StackError } from '@holdfast/kit/app-error';
import { writeFileAtomically, writeUnlessThere } from '@holdfast/kit/files';
import { DAY_MS } from '@holdfast/kit/time';
import { finishRenewal } from './ca-renewal.ts';
import { ensureCa, keyIdentifier, readCa } from './certificate-authority.ts';
import { BUNDLE_PASSWORD, type CertificateFiles, certificateFiles } from './certificate-files.ts';
import {
  BACKDATED_MS,
  certificatesOf,
  curveOf,
  newKeys,
  pemOf,
  privateKeyDer,
  privateKeyPem,
  serialNumber,
  signatureOn,
  signingKey,
} from './keys.ts';
import { bundleHolds, certificateBundle, keyBundle } from './pkcs12.ts';
import { readSubject } from './subject.ts';

const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';
/**
 * The key lies beside the file in the clear, and the password is public: a start does not wait for
 * more.
 */
const ITERATIONS = 2048;

/**
 * Copies and other forms of the CA and server certificate, for programs that expect a TAK Server's
 * files. Writes those that are missing or not of the certificates as they are now.
 */
export async function updateDerivedFiles(files: CertificateFiles): Promise<void> {
  const caText = readFileSync(files.ca, 'utf8');
  const [ca = '', ...above] = certificatesOf(caText);
  const [server = ''] = certificatesOf(readFileSync(files.server, 'utf8'));
  const caName = nameOf(ca);
  writeUnlessThere(files.rootCa, caText, 0o644);
  writeUnlessThere(files.caTrusted, trusted(ca, caName), 0o644);
  writeUnlessThere(files.rootCaTrusted, trusted(ca, caName), 0o644);
  writeUnlessThere(files.serverTrusted, trusted(server, 'takserver'), 0o644);
  const certificate = derOf(ca);
  if (!(await holds(files.truststore, certificate)))
    writeFileAtomically(
      files.truststore,
      await certificateBundle([{ friendlyName: caName, certificate }], BUNDLE_PASSWORD),
      0o644,
    );
  await updateKeyBundle(files.serverBundle, files.serverKey, server, [ca, ...above], 'takserver');
}

/**
 * Writes key and certificates as PKCS#12 when the file is missing or not of this certificate.
 * Whoever changes only the chain removes the file first.
 */
export async function updateKeyBundle(
  file: string,
  keyFile: string,
  certificate: string,
  chain: readonly string[],
  friendlyName: string,
): Promise<void> {
  if (await holds(file, derOf(certificate))) return;
  const bundle = await keyBundle({
    privateKeyPkcs8Der: privateKeyDer(readFileSync(keyFile, 'utf8')),
    certificate: derOf(certificate),
    chain: chain.map(derOf),
    friendlyName,
    password: BUNDLE_PASSWORD,
    iterations: ITERATIONS,
  });
  writeFileAtomically(file, bundle);
}

/** The name that a CA stands under in a truststore. */
function nameOf(pem: string): string {
  return readSubject(new x509.X509Certificate(pem)).commonName || 'ca';
}

/** Whether the PKCS#12 there, with the password of all bundles, has this certificate (DER). */
export async function holds(file: string, certificate: Uint8Array<ArrayBuffer>): Promise<boolean> {
  return existsSync(file) && bundleHolds(Uint8Array.from(readFileSync(file)), certificate, BUNDLE_PASSWORD);
}

/** OpenSSL's form of a certificate that is trusted for both sides of TLS, with a name. */
function trusted(pem: string, alias: string): string {
  const purposes = [CLIENT_AUTH, SERVER_AUTH].map((value) => new asn1js.ObjectIdentifier({ value }));
  const settings = new asn1js.Sequence({
    value: [new asn1js.Sequence({ value: purposes }), new asn1js.Utf8String({ value: alias })],
  });
  return pemOf('TRUSTED CERTIFICATE', Buffer.concat([derOf(pem), new Uint8Array(settings.toBER())]));
}

function derOf(pem: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(new X509Certificate(pem).raw);
}

export interface ServerCertificateFiles {
  /** The CA certificate, PEM. */
  ca: string;
  /** The server certificate with the CA appended, PEM. */
  certificate: string;
  /** The server's private key, PEM. */
  key: string;
}

export interface ServerCertificate extends ServerCertificateFiles {
  /**
   * The certificate, or the chain with it, is another one than before: whoever serves it reads it
   * again.
   */
  changed: boolean;
}

const SERVER_DAYS = 730;
/** Whole days count: so health, which warns at 30, sees the new one. */
const RENEW_DAYS = 31;

/**
 * Makes the CA once, and the server certificate whenever it is missing, near its end, or lacks one
 * of `names`; brings up to date what is made of them. To be called at each start and daily. Rejects
 * with a StackError that says what to do.
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
      'restore ca.pem and ca-do-not-share.key from a backup. For a new CA, which every device must trust again, move both and takserver.pem elsewhere',
      error,
    );
  }
}

/**
 * Whether the certificate there belongs to its key and the CA, and is valid now. It may be near its
 * end, and lack names: whoever renews it does so on the way.
 */
export function isServerCertificateUsable(coreDirectory: string, now: Date): boolean {
  const files = certificateFiles(coreDirectory);
  try {
    const { certificate } = ownCertificate(files);
    return Date.parse(certificate.validFrom) <= now.getTime() && now.getTime() < Date.parse(certificate.validTo);
  } catch {
    return false;
  }
}

/** What `ensureServerCertificate` has made. */
export function serverCertificateFiles(coreDirectory: string): ServerCertificateFiles {
  const { ca, server, serverKey } = certificateFiles(coreDirectory);
  return { ca, certificate: server, key: serverKey };
}

async function makeServerCertificate(files: CertificateFiles, names: readonly string[], now: Date): Promise<void> {
  const made = await signedForServer(
    files,
    names,
    { subject: 'CN=takserver', usages: [SERVER_AUTH, CLIENT_AUTH] },
    now,
  );
  writeFileAtomically(files.serverKey, made.key);
  writeFileAtomically(files.server, made.certificate, 0o644);
}

const SERVICE_FILES = { certificate: 'server.pem', key: 'server.key' };

/**
 * A certificate of our CA for another server of the stack, `server.pem` with `server.key` in
 * `directory`, whenever it is missing, near its end, or lacks one of `names`. Readable by the group
 * of the directory. True when it was made. Throws a StackError that names the file.
 */
export async function ensureServiceCertificate(
  coreDirectory: string,
  directory: string,
  names: readonly string[],
  now: Date,
): Promise<boolean> {
  const files = certificateFiles(coreDirectory);
  const [server, serverKey] = [join(directory, SERVICE_FILES.certificate), join(directory, SERVICE_FILES.key)];
  try {
    chmodSync(directory, 0o750);
    if (serves({ ca: files.ca, server, serverKey }, names, now)) return false;
    const made = await signedForServer(files, names, { subject: `CN=${names[0] ?? ''}`, usages: [SERVER_AUTH] }, now);
    writeFileAtomically(serverKey, made.key, 0o640);
    writeFileAtomically(server, made.certificate, 0o644);
    return true;
  } catch (error) {
    throw explainFileError(error, directory);
  }
}

async function signedForServer(
  files: CertificateFiles,
  names: readonly string[],
  { subject, usages }: { subject: string; usages: string[] },
  now: Date,
): Promise<{ certificate: string; key: string }> {
  const ca = readCa(files);
  const curve = curveOf(ca.key);
  const keys = await newKeys(curve);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject,
    issuer: ca.certificate.subjectName,
    notBefore: new Date(now.getTime() - BACKDATED_MS),
    notAfter: new Date(Math.min(now.getTime() + SERVER_DAYS * DAY_MS, ca.certificate.notAfter.getTime())),
    signingAlgorithm: signatureOn(curve),
    publicKey: keys.publicKey,
    signingKey: await signingKey(ca.key),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyAgreement, true),
      new x509.ExtendedKeyUsageExtension(usages),
      new x509.SubjectAlternativeNameExtension(
        names.map((name) => ({ type: isIpAddress(name) ? 'ip' : 'dns', value: name })),
      ),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      new x509.AuthorityKeyIdentifierExtension(await keyIdentifier(ca.certificate)),
    ],
  });
  return {
    certificate: `${certificate.toString('pem')}\n${ca.chain.join('')}`,
    key: await privateKeyPem(keys.privateKey),
  };
}

/**
 * After the CA was prolonged the old certificate of it still stands behind the server's; true when
 * it was replaced.
 */
function appendCa(files: CertificateFiles): boolean {
  const text = readFileSync(files.server, 'utf8');
  const [own = ''] = certificatesOf(text);
  const wanted = `${own}${certificatesOf(readFileSync(files.ca, 'utf8')).join('')}`;
  if (certificatesOf(text).join('') === wanted) return false;
  rmSync(files.serverBundle, { force: true });
  writeFileAtomically(files.server, wanted, 0o644);
  return true;
}

/**
 * True when the certificate belongs to the key and the CA, is not near its end, and names
 * everything wanted.
 */
function serves(
  files: Pick<CertificateFiles, 'ca' | 'server' | 'serverKey'>,
  names: readonly string[],
  now: Date,
): boolean {
  if (!existsSync(files.server) || !existsSync(files.serverKey)) return false;
  try {
    const { certificate, ca } = ownCertificate(files);
    return lastsEnough(certificate, ca, now) && names.every((name) => namedBy(certificate, name));
  } catch {
    return false;
  }
}

/** Throws if a file is missing, or if the certificate is of another key or CA. */
function ownCertificate(files: Pick<CertificateFiles, 'ca' | 'server' | 'serverKey'>): {
  certificate: NodeCertificate;
  ca: NodeCertificate;
} {
  const certificate = new NodeCertificate(readFileSync(files.server));
  const ca = new NodeCertificate(readFileSync(files.ca));
  const ours =
    certificate.checkPrivateKey(createPrivateKey(readFileSync(files.serverKey))) && certificate.verify(ca.publicKey);
  if (!ours) throw new Error(`${files.server} is of another key or CA`);
  return { certificate, ca };
}

/**
 * Valid now, as one is not that was made while the clock was ahead, and not near its end; or as
 * long as the CA itself, beyond which a new one would not last either.
 */
export function lastsEnough(certificate: NodeCertificate, ca: NodeCertificate, now: Date): boolean {
  if (Date.parse(certificate.validFrom) > now.getTime()) return false;
  const end = Date.parse(certificate.validTo);
  return end - now.getTime() > RENEW_DAYS * DAY_MS || end >= Date.parse(ca.validTo);
}

function namedBy(certificate: NodeCertificate, name: string): boolean {
  return (isIpAddress(name) ? certificate.checkIP(name) : certificate.checkHost(name)) !== undefined;
}
