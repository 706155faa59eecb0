// Reads the CA of a release, or creates one. An operator may bring any CA that the release's
// scripts can make.

import 'reflect-metadata';
import { createPrivateKey, type KeyObject, X509Certificate as NodeCertificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import * as x509 from '@peculiar/x509';
import { messageOf, StackError } from '@holdfast/kit/app-error';
import { writeFileAtomically } from '@holdfast/kit/files';
import { newCa } from '@holdfast/pki/certificate-authority';
import { BUNDLE_PASSWORD, type CertificateFiles } from '@holdfast/pki/certificate-files';
import { certificatesOf } from '@holdfast/pki/keys';
import { nameParts } from '@holdfast/pki/subject';

/** Subject parts of certificates, besides the common name. */
export interface CertificateNames {
  country: string;
  /** `none`: left out. */
  state: string;
  city: string;
  organization: string;
  unit: string;
}

export interface ReleaseAuthority {
  /** The CA certificate first, then its issuers; PEM. */
  chain: string[];
  certificate: x509.X509Certificate;
  key: KeyObject;
  /** The name for Web Crypto. */
  algorithm: SigningAlgorithm;
  /**
   * The name for Java: `SHA384withECDSA`. The core signs with the algorithm of the CA's own
   * certificate.
   */
  javaAlgorithm: string;
}

type SigningAlgorithm =
  | { name: 'ECDSA'; namedCurve: string; hash: string }
  | { name: 'RSASSA-PKCS1-v1_5'; hash: string };

const CURVES: Record<string, string> = { prime256v1: 'P-256', secp384r1: 'P-384', secp521r1: 'P-521' };
const JAVA_HASHES: Record<string, string> = { 'SHA-256': 'SHA256', 'SHA-384': 'SHA384', 'SHA-512': 'SHA512' };
const BACK = 'restore ca.pem and ca-do-not-share.key from a backup';

/** Undefined if there is no CA. Throws a StackError if it can't be used. */
export function readReleaseAuthority(files: CertificateFiles): ReleaseAuthority | undefined {
  const [hasCertificate, hasKey] = [existsSync(files.ca), existsSync(files.caKey)];
  if (!hasCertificate && !(hasKey && hasServed(files))) return undefined;
  if (!hasCertificate || !hasKey) {
    const [there, missing] = hasKey ? [files.caKey, files.ca] : [files.ca, files.caKey];
    throw new StackError(
      `Can't issue certificates: ${missing} is missing, which belongs to ${there}.`,
      `restore it from a backup. Without a backup, move ${there} to get a new CA, which every device must then trust`,
    );
  }
  const chain = certificatesOf(readFileSync(files.ca, 'utf8'));
  const first = certificateIn(chain, files.ca);
  const key = keyIn(files.caKey);
  if (!new NodeCertificate(chain[0] ?? '').checkPrivateKey(key))
    throw new StackError(`${files.caKey} is not the key of ${files.ca}.`, `${BACK}, both from the same CA`);
  return { chain, certificate: first, key, ...algorithmsOf(first, key, files.ca) };
}

/** Creates the CA if there is none. */
export async function ensureReleaseAuthority(
  files: CertificateFiles,
  names: CertificateNames,
  now: Date,
): Promise<ReleaseAuthority> {
  if (readReleaseAuthority(files) === undefined) {
    const { certificate, key } = await newCa(now, 'P-384', nameParts(partsOf(names)));
    writeFileAtomically(files.caKey, key);
    writeFileAtomically(files.ca, certificate, 0o644);
  }
  const authority = readReleaseAuthority(files);
  if (authority === undefined) throw new StackError(`Couldn't create ${files.ca}.`, BACK);
  return authority;
}

/** True if the key has signed anything. If not, it is the leftover of a crash during creation. */
function hasServed({ rootCa, server, api, truststore, revocationList }: CertificateFiles): boolean {
  return [rootCa, server, api, truststore, revocationList].some((file) => existsSync(file));
}

/** The most general part first, in the order of the release's scripts. */
export function partsOf({ country, state, city, organization, unit }: CertificateNames) {
  const parts = { C: country, ST: state, L: city, O: organization, OU: unit };
  return Object.entries(parts)
    .filter(([name, value]) => !['ST', 'L'].includes(name) || value !== 'none')
    .map(([name, value]) => ({ name, value }));
}

/** A private key, unencrypted or with the password of the release's scripts. */
export function keyIn(file: string): KeyObject {
  const content = readFileSync(file);
  try {
    return createPrivateKey({ key: content, passphrase: BUNDLE_PASSWORD });
  } catch (error) {
    const remedy = `decrypt it: openssl pkey -in ${file} -out ${file}.new && mv ${file}.new ${file}`;
    throw new StackError(
      `Couldn't read the private key ${file}: it must be unencrypted or have the release's default password ${BUNDLE_PASSWORD}.`,
      remedy,
      error,
    );
  }
}

function certificateIn(chain: readonly string[], file: string): x509.X509Certificate {
  const [first] = chain;
  if (first === undefined) throw new StackError(`${file} contains no certificate.`, BACK);
  try {
    if (!new NodeCertificate(first).ca) throw new Error('it is not a CA certificate');
    return new x509.X509Certificate(first);
  } catch (error) {
    throw new StackError(`Couldn't use the certificate in ${file}: ${messageOf(error)}.`, BACK, error);
  }
}

function algorithmsOf(
  certificate: x509.X509Certificate,
  key: KeyObject,
  file: string,
): Pick<ReleaseAuthority, 'algorithm' | 'javaAlgorithm'> {
  const own = certificate.signatureAlgorithm as { name: string; hash?: { name: string } };
  const hash = JAVA_HASHES[own.hash?.name ?? ''];
  const curve = CURVES[key.asymmetricKeyDetails?.namedCurve ?? ''];
  if (key.asymmetricKeyType === 'ec' && own.name === 'ECDSA' && curve !== undefined && hash !== undefined)
    return {
      algorithm: { name: 'ECDSA', namedCurve: curve, hash: own.hash?.name ?? '' },
      javaAlgorithm: `${hash}withECDSA`,
    };
  if (key.asymmetricKeyType === 'rsa' && own.name === 'RSASSA-PKCS1-v1_5' && hash !== undefined)
    return { algorithm: { name: 'RSASSA-PKCS1-v1_5', hash: own.hash?.name ?? '' }, javaAlgorithm: `${hash}withRSA` };
  throw new StackError(
    `The core can't sign with the CA in ${file}: its key is ${key.asymmetricKeyType}, but its certificate is signed with ${own.name} ${own.hash?.name ?? ''}.`,
    'use a CA whose certificate matches its key (RSA or ECDSA, with SHA-256 or better), or move ca.pem and ca-do-not-share.key to get a new CA',
  );
}
