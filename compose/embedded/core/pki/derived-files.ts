// Copies and other forms of the CA and server certificate, for programs that expect a TAK Server's files.

import 'reflect-metadata';
import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import * as x509 from '@peculiar/x509';
import * as asn1js from 'asn1js';
import { bundleHolds, certificateBundle, keyBundle } from '../../../../shared/domain/pkcs12.ts';
import { writeFileAtomically, writeUnlessThere } from '../../atomic-file.ts';
import { BUNDLE_PASSWORD, type CertificateFiles } from './certificate-files.ts';
import { certificatesOf, pemOf, privateKeyDer } from './keys.ts';
import { readSubject } from './subject.ts';

const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';
/** The key lies beside the file in the clear, and the password is public: a start does not wait for more. */
const ITERATIONS = 2048;

/** Writes those that are missing or not of the certificates as they are now. */
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
 * Writes key and certificates as PKCS#12 when the file is missing or not of this certificate. Whoever changes only the chain
 * removes the file first.
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
