// The CA of the embedded stack and its server certificate, in the places and names of a TAK Server release
// (certs/files below the core's directory), all ECDSA P-384, private keys readable by their owner only.

import 'reflect-metadata';
import { createPrivateKey, randomBytes, webcrypto, X509Certificate as NodeCertificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';
import { isIpAddress } from '../../../shared/domain/host-name.ts';
import { writeFileAtomically } from '../atomic-file.ts';
import { explainFileError, StackError } from '../stack-error.ts';
import { messageOf } from '../../../shared/domain/thrown.ts';

export interface ServerCertificateFiles {
  /** The CA certificate, PEM. */
  ca: string;
  /** The server certificate with the CA appended, PEM. */
  certificate: string;
  /** The server's private key, PEM. */
  key: string;
}

const KEY = { name: 'ECDSA', namedCurve: 'P-384' } as const;
const SIGNATURE = { name: 'ECDSA', hash: 'SHA-384' } as const;
const DAY_MS = 86_400_000;
const CA_DAYS = 3652;
const SERVER_DAYS = 730;
const RENEW_DAYS = 30;
const BACKDATED_MS = 12 * 3_600_000;

/** Makes the CA once, and the server certificate whenever it is missing, near its end, or lacks one of `names`. */
export async function ensureServerCertificate(
  coreDirectory: string,
  names: readonly string[],
  now: Date,
): Promise<ServerCertificateFiles> {
  const directory = join(coreDirectory, 'certs', 'files');
  const files = {
    ca: join(directory, 'ca.pem'),
    certificate: join(directory, 'takserver.pem'),
    key: join(directory, 'takserver.key'),
  };
  const caKey = join(directory, 'ca-do-not-share.key');
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    if (!existsSync(files.ca) && !restoreCa(files, caKey)) await makeCa(files.ca, caKey, now);
    if (!serves(files, names, now)) await makeServerCertificate(files, caKey, names, now);
  } catch (error) {
    const explained = explainFileError(error, directory);
    if (explained instanceof StackError) throw explained;
    throw new StackError(
      `The CA in ${directory} cannot be used: ${messageOf(error)}`,
      'put ca.pem and ca-do-not-share.key back from a backup; or move both and takserver.pem away for a new CA, which every device must then trust anew',
      error,
    );
  }
  return files;
}

/** A CA key that has signed the server certificate is never replaced: its certificate is the last one of that file. */
function restoreCa(files: ServerCertificateFiles, caKey: string): boolean {
  if (!existsSync(caKey) || !existsSync(files.certificate)) return false;
  const chain = readFileSync(files.certificate, 'utf8').match(
    /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g,
  );
  const pem = chain?.at(-1) ?? '';
  if (chain === null || !new NodeCertificate(pem).checkPrivateKey(createPrivateKey(readFileSync(caKey)))) {
    throw new StackError(
      `${files.ca} is missing, and ${files.certificate} does not hold it.`,
      `put ca.pem back from a backup; or move ${caKey} and ${files.certificate} away for a new CA, which every device must then trust anew`,
    );
  }
  writeFileAtomically(files.ca, `${pem}\n`, 0o644);
  return true;
}

async function makeCa(file: string, keyFile: string, now: Date): Promise<void> {
  const keys = await webcrypto.subtle.generateKey(KEY, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: `CN=Holdfast CA ${randomBytes(4).toString('hex')}`,
    notBefore: new Date(now.getTime() - BACKDATED_MS),
    notAfter: new Date(now.getTime() + CA_DAYS * DAY_MS),
    signingAlgorithm: SIGNATURE,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  writeFileAtomically(keyFile, await privateKeyPem(keys.privateKey));
  writeFileAtomically(file, `${certificate.toString('pem')}\n`, 0o644);
}

async function makeServerCertificate(
  files: ServerCertificateFiles,
  caKeyFile: string,
  names: readonly string[],
  now: Date,
): Promise<void> {
  const ca = new x509.X509Certificate(readFileSync(files.ca, 'utf8'));
  const signingKey = await readCaKey(caKeyFile);
  const keys = await webcrypto.subtle.generateKey(KEY, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: 'CN=takserver',
    issuer: ca.subjectName,
    notBefore: new Date(now.getTime() - BACKDATED_MS),
    notAfter: new Date(Math.min(now.getTime() + SERVER_DAYS * DAY_MS, ca.notAfter.getTime())),
    signingAlgorithm: SIGNATURE,
    publicKey: keys.publicKey,
    signingKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyAgreement, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]),
      new x509.SubjectAlternativeNameExtension(
        names.map((name) => ({ type: isIpAddress(name) ? 'ip' : 'dns', value: name })),
      ),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(ca.publicKey),
    ],
  });
  writeFileAtomically(files.key, await privateKeyPem(keys.privateKey));
  writeFileAtomically(files.certificate, `${certificate.toString('pem')}\n${ca.toString('pem')}\n`, 0o644);
}

/** True when the certificate belongs to the key and the CA, is not near its end, and names everything wanted. */
function serves(files: ServerCertificateFiles, names: readonly string[], now: Date): boolean {
  if (!existsSync(files.certificate) || !existsSync(files.key)) return false;
  try {
    const certificate = new NodeCertificate(readFileSync(files.certificate));
    const ca = new NodeCertificate(readFileSync(files.ca));
    const inTime = Date.parse(certificate.validTo) - now.getTime() > RENEW_DAYS * DAY_MS;
    const ours =
      certificate.checkPrivateKey(createPrivateKey(readFileSync(files.key))) && certificate.verify(ca.publicKey);
    return inTime && ours && names.every((name) => namedBy(certificate, name));
  } catch {
    return false;
  }
}

function namedBy(certificate: NodeCertificate, name: string): boolean {
  return (isIpAddress(name) ? certificate.checkIP(name) : certificate.checkHost(name)) !== undefined;
}

async function readCaKey(file: string): Promise<webcrypto.CryptoKey> {
  if (!existsSync(file)) {
    throw new StackError(
      `${file} is missing: without it no certificate can be made.`,
      'put it back from a backup; or remove ca.pem beside it for a new CA, which every device must then trust anew',
    );
  }
  const der = createPrivateKey(readFileSync(file)).export({ type: 'pkcs8', format: 'der' });
  return webcrypto.subtle.importKey('pkcs8', der, KEY, false, ['sign']);
}

async function privateKeyPem(key: webcrypto.CryptoKey): Promise<string> {
  const der = await webcrypto.subtle.exportKey('pkcs8', key);
  const object = createPrivateKey({ key: Buffer.from(der), format: 'der', type: 'pkcs8' });
  return object.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** A positive serial number of 16 random bytes, hex. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString('hex');
}
