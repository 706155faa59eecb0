// The CA of a release: one of ours, made once, or the one that an operator brought, of whatever kind the scripts of a release
// make. It is kept in every case.

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

/** What stands in certificates besides their own name. */
export interface CertificateNames {
  country: string;
  /** `none`: left out. */
  state: string;
  city: string;
  organization: string;
  unit: string;
}

export interface ReleaseAuthority {
  /** The CA certificate first, then what stands above it; PEM. */
  chain: string[];
  certificate: x509.X509Certificate;
  key: KeyObject;
  /** For Web Crypto, which takes no other name for it. */
  algorithm: SigningAlgorithm;
  /** As Java calls it: `SHA384withECDSA`. The core signs by the algorithm that the CA's own certificate is signed by. */
  javaAlgorithm: string;
}

type SigningAlgorithm =
  | { name: 'ECDSA'; namedCurve: string; hash: string }
  | { name: 'RSASSA-PKCS1-v1_5'; hash: string };

const CURVES: Record<string, string> = { prime256v1: 'P-256', secp384r1: 'P-384', secp521r1: 'P-521' };
const JAVA_HASHES: Record<string, string> = { 'SHA-256': 'SHA256', 'SHA-384': 'SHA384', 'SHA-512': 'SHA512' };
const BACK = 'put ca.pem and ca-do-not-share.key back from a backup';

/** Undefined when there is none at all. Throws a StackError when there is one that cannot be used. */
export function readReleaseAuthority(files: CertificateFiles): ReleaseAuthority | undefined {
  const [hasCertificate, hasKey] = [existsSync(files.ca), existsSync(files.caKey)];
  if (!hasCertificate && !(hasKey && hasServed(files))) return undefined;
  if (!hasCertificate || !hasKey) {
    const [there, missing] = hasKey ? [files.caKey, files.ca] : [files.ca, files.caKey];
    throw new StackError(
      `${missing} is missing, which belongs to ${there}: no certificate can be made.`,
      `put it back from a backup; without one, move ${there} away for a new CA, which every device must then trust anew`,
    );
  }
  const chain = certificatesOf(readFileSync(files.ca, 'utf8'));
  const first = certificateIn(chain, files.ca);
  const key = keyIn(files.caKey);
  if (!new NodeCertificate(chain[0] ?? '').checkPrivateKey(key))
    throw new StackError(`${files.caKey} is not the key of ${files.ca}.`, `${BACK}, both of the same one`);
  return { chain, certificate: first, key, ...algorithmsOf(first, key, files.ca) };
}

/** Makes the CA when there is none. */
export async function ensureReleaseAuthority(
  files: CertificateFiles,
  names: CertificateNames,
  now: Date,
): Promise<ReleaseAuthority> {
  if (readReleaseAuthority(files) === undefined) {
    const { certificate, key } = await newCa(now, nameParts(partsOf(names)));
    writeFileAtomically(files.caKey, key);
    writeFileAtomically(files.ca, certificate, 0o644);
  }
  const authority = readReleaseAuthority(files);
  if (authority === undefined) throw new StackError(`${files.ca} cannot be made.`, BACK);
  return authority;
}

/** A key without anything that it has signed is what a crash has left of making a CA: nobody trusts it yet. */
function hasServed({ rootCa, server, api, truststore, revocationList }: CertificateFiles): boolean {
  return [rootCa, server, api, truststore, revocationList].some((file) => existsSync(file));
}

/** The most general part first, as the scripts of a release write them. */
export function partsOf({ country, state, city, organization, unit }: CertificateNames) {
  const parts = { C: country, ST: state, L: city, O: organization, OU: unit };
  return Object.entries(parts)
    .filter(([name, value]) => !['ST', 'L'].includes(name) || value !== 'none')
    .map(([name, value]) => ({ name, value }));
}

/** A private key in the clear, or under the password that the scripts of a release take. */
export function keyIn(file: string): KeyObject {
  const content = readFileSync(file);
  try {
    return createPrivateKey({ key: content, passphrase: BUNDLE_PASSWORD });
  } catch (error) {
    const remedy = `make it readable with: openssl pkey -in ${file} -out ${file}.new && mv ${file}.new ${file}`;
    throw new StackError(
      `${file} is no private key, or not one in the clear or under the password ${BUNDLE_PASSWORD} of the release's scripts.`,
      remedy,
      error,
    );
  }
}

function certificateIn(chain: readonly string[], file: string): x509.X509Certificate {
  const [first] = chain;
  if (first === undefined) throw new StackError(`${file} holds no certificate.`, BACK);
  try {
    if (!new NodeCertificate(first).ca) throw new Error('it is none of a CA');
    return new x509.X509Certificate(first);
  } catch (error) {
    throw new StackError(`The certificate in ${file} cannot be used: ${messageOf(error)}.`, BACK, error);
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
    `The CA in ${file} has a ${key.asymmetricKeyType} key and a certificate that is signed by ${own.name} ${own.hash?.name ?? ''}: the core signs by the latter, and could not.`,
    'take a CA whose certificate is signed as its own key signs (RSA or ECDSA with SHA-256 or better), or move ca.pem and ca-do-not-share.key away for a new one',
  );
}
