// The CA of the stack as its files hold it: made once, restored when its certificate was lost,
// renewed for the same key.

import 'reflect-metadata';
import { type KeyObject, X509Certificate as NodeCertificate, randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import * as x509 from '@peculiar/x509';
import { StackError } from '@holdfast/kit/app-error';
import { writeFileAtomically } from '@holdfast/kit/files';
import { DAY_MS } from '@holdfast/kit/time';
import type { CertificateFiles } from './certificate-files.ts';
import {
  BACKDATED_MS,
  certificatesOf,
  type Curve,
  curveOf,
  newKeys,
  privateKeyPem,
  readCaKey,
  serialNumber,
  signatureOn,
  signingKey,
} from './keys.ts';

const CA_DAYS = 3652;
/** A mutual handshake costs about half of one on P-384. */
export const LIGHT_CURVE: Curve = 'P-256';

/** A CA that is not in its place yet, in PEM. */
export interface NewCa {
  certificate: string;
  key: string;
}

/**
 * Makes the CA when there is none, puts back its certificate when only that is missing, refuses a
 * key of another CA.
 */
export async function ensureCa(files: CertificateFiles, now: Date): Promise<void> {
  if (!existsSync(files.ca) && !restoreCa(files)) {
    const { certificate, key } = await newCa(now, LIGHT_CURVE);
    writeFileAtomically(files.caKey, key);
    writeFileAtomically(files.ca, certificate, 0o644);
  }
  readCa(files);
}

/**
 * A CA of its own name and key; `within`: what its name begins with, the most general part first.
 */
export async function newCa(now: Date, curve: Curve, within: x509.JsonNameParams = []): Promise<NewCa> {
  const keys = await newKeys(curve);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    ...lifeOf(now, curve),
    name: new x509.Name([...within, { CN: [`Holdfast CA ${randomBytes(4).toString('hex')}`] }]),
    keys,
    extensions: [...rights(), await x509.SubjectKeyIdentifierExtension.create(keys.publicKey)],
  });
  return { certificate: `${certificate.toString('pem')}\n`, key: await privateKeyPem(keys.privateKey) };
}

/**
 * A certificate for the same key and name, in PEM: what the CA has signed so far is signed by this
 * one too.
 */
export async function prolongedCa(files: CertificateFiles, now: Date): Promise<string> {
  const { certificate: old, key } = readCa(files);
  const certificate = await x509.X509CertificateGenerator.create({
    ...lifeOf(now, curveOf(key)),
    subject: old.subjectName,
    issuer: old.subjectName,
    publicKey: old.publicKey,
    signingKey: await signingKey(key),
    extensions: [...rights(), new x509.SubjectKeyIdentifierExtension(await keyIdentifier(old))],
  });
  return `${certificate.toString('pem')}\n`;
}

export interface Ca {
  certificate: x509.X509Certificate;
  /** The CA certificate first, then what stands above it; PEM. */
  chain: string[];
  key: KeyObject;
}

/**
 * What stands in ca.pem and its key; throws a StackError when one is missing or they do not belong
 * together.
 */
export function readCa(files: CertificateFiles): Ca {
  const chain = certificatesOf(readFileSync(files.ca, 'utf8'));
  const [first] = chain;
  if (first === undefined)
    throw new StackError(
      `${files.ca} holds no certificate.`,
      `put it back from a backup, or remove it: it is then taken from ${files.server} or ${files.rootCa}`,
    );
  const key = readCaKey(files.caKey);
  if (!new NodeCertificate(first).checkPrivateKey(key))
    throw new StackError(
      `${files.caKey} is not the key of ${files.ca}.`,
      'restore both from the same backup. For a new CA, which every device must trust again, move both and takserver.pem elsewhere',
    );
  return { certificate: new x509.X509Certificate(first), chain, key };
}

/** The name of the key in hex, as the certificates of this CA refer to it. */
export async function keyIdentifier(ca: x509.X509Certificate): Promise<string> {
  const stated = ca.getExtension(x509.SubjectKeyIdentifierExtension);
  return (stated ?? (await x509.SubjectKeyIdentifierExtension.create(ca.publicKey))).keyId;
}

/**
 * A CA key that has signed certificates is never replaced: its certificate stands in other files
 * too.
 */
function restoreCa(files: CertificateFiles): boolean {
  const copies = [files.server, files.rootCa].filter((file) => existsSync(file));
  if (!existsSync(files.caKey) || copies.length === 0) return false;
  const key = readCaKey(files.caKey);
  const [pem] = copies
    .flatMap((file) => certificatesOf(readFileSync(file, 'utf8')))
    .map((each) => ({ each, parsed: new NodeCertificate(each) }))
    .filter(({ parsed }) => parsed.checkPrivateKey(key))
    .toSorted((a, b) => Date.parse(b.parsed.validTo) - Date.parse(a.parsed.validTo))
    .map(({ each }) => each);
  if (pem === undefined) {
    throw new StackError(
      `${files.ca} is missing, and ${copies.join(' and ')} ${copies.length === 1 ? 'does' : 'do'} not hold it.`,
      `restore ca.pem from a backup. For a new CA, which every device must trust again, move ${[files.caKey, ...copies].join(' and ')} elsewhere`,
    );
  }
  writeFileAtomically(files.ca, pem, 0o644);
  return true;
}

function lifeOf(now: Date, curve: Curve) {
  return {
    serialNumber: serialNumber(),
    notBefore: new Date(now.getTime() - BACKDATED_MS),
    notAfter: new Date(now.getTime() + CA_DAYS * DAY_MS),
    signingAlgorithm: signatureOn(curve),
  };
}

function rights(): x509.Extension[] {
  return [
    new x509.BasicConstraintsExtension(true, 0, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
  ];
}
