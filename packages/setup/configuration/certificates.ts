// Creates the certificates, keystores and the revocation list that CoreConfig.xml names, before a
// release starts. The server key must be RSA: the release signs its tokens with it (RS256).

import 'reflect-metadata';
import { type KeyObject, X509Certificate as NodeCertificate, webcrypto } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';
import { API_IDENTITY } from '@holdfast/core/admin/users-document';
import { isIpAddress } from '@holdfast/kit/addresses';
import { writeFileAtomically } from '@holdfast/kit/files';
import { DAY_MS } from '@holdfast/kit/time';
import { CHANNELS_USAGE } from '@holdfast/pki/authority';
import { keyIdentifier } from '@holdfast/pki/certificate-authority';
import { BUNDLE_PASSWORD, type CertificateFiles } from '@holdfast/pki/certificate-files';
import { readIndex, readSignedList, signRevocationList } from '@holdfast/pki/crl';
import { BACKDATED_MS, certificatesOf, newKeys, normalSerial, privateKeyPem, serialNumber } from '@holdfast/pki/keys';
import { certificateBundle, keyBundle } from '@holdfast/pki/pkcs12';
import { holds, lastsEnough } from '@holdfast/pki/server-certificate';
import { nameParts, readSubject } from '@holdfast/pki/subject';
import { type CertificateNames, keyIn, partsOf, type ReleaseAuthority } from './authority.ts';

export interface ReleaseCertificateDeps {
  files: CertificateFiles;
  authority: ReleaseAuthority;
  names: CertificateNames;
  now: Date;
  say: (sentence: string) => void;
}

const DAYS = 730;
/** Renewed this long before it expires: without revocations nothing else writes a new list. */
const LIST_RENEW_DAYS = 31;
const RSA = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', modulusLength: 3072, publicExponent: Uint8Array.of(1, 0, 1) };
const { digitalSignature, keyEncipherment, keyAgreement, nonRepudiation } = x509.KeyUsageFlags;

/** Ensures takserver.pem and its key for all `hosts`. Keeps a valid pair. */
export async function ensureReleaseServer(deps: ReleaseCertificateDeps, hosts: readonly string[]): Promise<void> {
  const { files, authority, names } = deps;
  const wantedKey = (key: KeyObject): boolean => key.asymmetricKeyType === 'rsa';
  const isNamed = (certificate: NodeCertificate): boolean =>
    hosts.every((host) => (isIpAddress(host) ? certificate.checkIP(host) : certificate.checkHost(host)) !== undefined);
  let pair = usablePair(deps, files.server, files.serverKey);
  if (pair === undefined || !wantedKey(pair.key) || !isNamed(pair.certificate)) {
    for (const file of [files.server, files.serverKey, files.serverBundle]) keepOnce(file);
    const keys = await webcrypto.subtle.generateKey(RSA, true, ['sign', 'verify']);
    const certificate = await issue(deps, keys, nameParts([...partsOf(names), { name: 'CN', value: 'takserver' }]), [
      new x509.KeyUsagesExtension(digitalSignature | keyEncipherment, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]),
      new x509.SubjectAlternativeNameExtension(
        hosts.map((value) => ({ type: isIpAddress(value) ? 'ip' : 'dns', value })),
      ),
    ]);
    writeFileAtomically(files.serverKey, await privateKeyPem(keys.privateKey));
    writeFileAtomically(files.server, `${certificate}${authority.chain.join('')}`, 0o644);
    deps.say(`Created the core certificate for ${hosts.join(', ')}`);
    pair = { certificate: new NodeCertificate(certificate), key: keyIn(files.serverKey) };
  }
  const again = writePair(files.server, files.serverKey, pair, authority.chain);
  await ensureBundle(files.serverBundle, { ...pair, chain: authority.chain }, 'takserver', again);
}

/**
 * Ensures svc_api.pem, its key and svc_api.p12. Keeps a valid pair. Returns the fingerprint:
 * `AA:BB:…`.
 */
export async function ensureReleaseApi(deps: ReleaseCertificateDeps): Promise<string> {
  const { files, authority, names } = deps;
  let pair = usablePair(deps, files.api, files.apiKey);
  if (pair === undefined) {
    const { organization, unit } = names;
    const keys = await newKeys('P-384');
    const subject = nameParts([
      { name: 'O', value: organization },
      { name: 'OU', value: unit },
      { name: 'CN', value: API_IDENTITY },
    ]);
    const certificate = await issue(deps, keys, subject, [
      new x509.KeyUsagesExtension(digitalSignature | nonRepudiation | keyAgreement, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth, CHANNELS_USAGE]),
    ]);
    writeFileAtomically(files.apiKey, await privateKeyPem(keys.privateKey));
    writeFileAtomically(files.api, `${certificate}${authority.chain.join('')}`, 0o644);
    deps.say(`Created the management certificate ${API_IDENTITY}`);
    pair = { certificate: new NodeCertificate(certificate), key: keyIn(files.apiKey) };
  }
  const again = writePair(files.api, files.apiKey, pair, authority.chain);
  await ensureBundle(files.apiBundle, { ...pair, chain: authority.chain }, API_IDENTITY, again);
  return pair.certificate.fingerprint256;
}

/** Ensures the truststore of the CA, and the keystore that the core signs with. */
export async function ensureAuthorityStores({ files, authority }: ReleaseCertificateDeps): Promise<void> {
  const alias = readSubject(authority.certificate).commonName || 'ca';
  const [ca = ''] = authority.chain;
  const certificate = new NodeCertificate(ca);
  const above = authority.chain.slice(1);
  const isTrusted = await holds(files.truststore, Uint8Array.from(certificate.raw));
  const signing = join(files.directory, 'ca-signing.p12');
  await ensureBundle(signing, { certificate, key: authority.key, chain: above }, alias, !isTrusted);
  if (!existsSync(files.rootCa)) writeFileAtomically(files.rootCa, readFileSync(files.ca, 'utf8'), 0o644);
  if (!isTrusted) {
    keepOnce(files.truststore);
    const entries = authority.chain.map((pem, index) => ({
      friendlyName: index === 0 ? alias : `${alias}-${index}`,
      certificate: Uint8Array.from(new NodeCertificate(pem).raw),
    }));
    writeFileAtomically(files.truststore, await certificateBundle(entries, BUNDLE_PASSWORD), 0o644);
  }
  // The core opens it at every start, even without federation, and writes it when a federate is
  // trusted.
  const federation = join(files.directory, 'fed-truststore.jks');
  if (!existsSync(federation)) writeFileAtomically(federation, readFileSync(files.truststore), 0o640);
}

/**
 * Ensures crl_index.txt and ca.crl in the format of `openssl ca`. Keeps a valid list that doesn't
 * expire soon.
 */
export async function ensureRevocationList({ files, authority, now, say }: ReleaseCertificateDeps): Promise<void> {
  if (!existsSync(files.revocationIndex)) writeFileAtomically(files.revocationIndex, '', 0o640);
  const attributes = `${files.revocationIndex}.attr`;
  // A device that enrolls again gets another certificate with the same name.
  if (!existsSync(attributes)) writeFileAtomically(attributes, 'unique_subject = no\n', 0o640);
  const [ca = ''] = authority.chain;
  const { publicKey } = new NodeCertificate(ca);
  const text = existsSync(files.revocationList) ? readFileSync(files.revocationList, 'utf8') : undefined;
  const list = text === undefined ? undefined : readSignedList(text, publicKey);
  const isGood = list !== undefined && !('refused' in list);
  if (isGood && (list.nextUpdate?.getTime() ?? 0) > now.getTime() + LIST_RENEW_DAYS * DAY_MS) return;
  if (text !== undefined && !isGood) {
    keepOnce(files.revocationList);
    say(
      `Replaced ${files.revocationList}, which belonged to another CA. The old list is in ${files.revocationList}.before-holdfast`,
    );
  }
  const { revoked } = readIndex(readFileSync(files.revocationIndex, 'utf8'));
  const known = new Map(
    [...(isGood ? list.revoked : []), ...revoked].map((entry) => [normalSerial(entry.serial), entry]),
  );
  const issuer = {
    certificate: new Uint8Array(authority.certificate.rawData),
    keyIdentifier: await keyIdentifier(authority.certificate),
    key: authority.key,
  };
  const number = isGood && list.number >= BigInt(now.getTime()) ? list.number + 1n : BigInt(now.getTime());
  writeFileAtomically(
    files.revocationList,
    signRevocationList(issuer, [...known.values()], number, now, DAYS).pem,
    0o644,
  );
}

interface Pair {
  certificate: NodeCertificate;
  key: KeyObject;
}

/** The pair, if it is from this CA, matches, isn't revoked and doesn't expire soon. */
function usablePair(
  { files, authority, now }: ReleaseCertificateDeps,
  file: string,
  keyFile: string,
): Pair | undefined {
  if (!existsSync(file) || !existsSync(keyFile)) return undefined;
  try {
    const certificate = new NodeCertificate(certificatesOf(readFileSync(file, 'utf8'))[0] ?? '');
    const ca = new NodeCertificate(authority.chain[0] ?? '');
    const key = keyIn(keyFile);
    const isOurs = certificate.verify(ca.publicKey) && certificate.checkPrivateKey(key);
    const serial = normalSerial(certificate.serialNumber);
    return isOurs && lastsEnough(certificate, ca, now) && !isRevoked(files, serial) ? { certificate, key } : undefined;
  } catch {
    return undefined;
  }
}

function isRevoked(files: CertificateFiles, serial: string): boolean {
  if (!existsSync(files.revocationIndex)) return false;
  return readIndex(readFileSync(files.revocationIndex, 'utf8')).revoked.some((entry) => entry.serial === serial);
}

async function issue(
  { authority, now }: ReleaseCertificateDeps,
  keys: webcrypto.CryptoKeyPair,
  subject: x509.JsonNameParams,
  extensions: x509.Extension[],
): Promise<string> {
  const { algorithm, certificate: ca, key } = authority;
  const pkcs8 = key.export({ type: 'pkcs8', format: 'der' });
  const signer = await webcrypto.subtle.importKey('pkcs8', pkcs8, algorithm, false, ['sign']);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: new x509.Name(subject),
    issuer: ca.subjectName,
    notBefore: new Date(now.getTime() - BACKDATED_MS),
    notAfter: new Date(Math.min(now.getTime() + DAYS * DAY_MS, ca.notAfter.getTime())),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey: signer,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      ...extensions,
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      new x509.AuthorityKeyIdentifierExtension(await keyIdentifier(ca)),
    ],
  });
  return `${certificate.toString('pem')}\n`;
}

/** `again`: write the bundle even if its certificate is the same, because the chain changed. */
async function ensureBundle(
  file: string,
  pair: Pair & { chain: readonly string[] },
  alias: string,
  again: boolean,
): Promise<void> {
  if (!again && (await holds(file, Uint8Array.from(pair.certificate.raw)))) return;
  keepOnce(file);
  const bundle = await keyBundle({
    privateKeyPkcs8Der: Uint8Array.from(pair.key.export({ type: 'pkcs8', format: 'der' })),
    certificate: Uint8Array.from(pair.certificate.raw),
    chain: pair.chain.map((pem) => Uint8Array.from(new NodeCertificate(pem).raw)),
    friendlyName: alias,
    password: BUNDLE_PASSWORD,
    iterations: 2048,
  });
  writeFileAtomically(file, bundle);
}

/**
 * Writes the key unencrypted and the current chain after the certificate. True if the certificate
 * file changed.
 */
function writePair(
  certificateFile: string,
  keyFile: string,
  { certificate, key }: Pair,
  chain: readonly string[],
): boolean {
  const text = `${certificate.toString()}${chain.join('')}`;
  const isSame = certificatesOf(readFileSync(certificateFile, 'utf8')).join('') === text;
  if (readFileSync(keyFile, 'utf8').includes('ENCRYPTED')) {
    keepOnce(keyFile);
    writeFileAtomically(keyFile, key.export({ type: 'pkcs8', format: 'pem' }).toString());
  }
  if (isSame) return false;
  keepOnce(certificateFile);
  writeFileAtomically(certificateFile, text, 0o644);
  return true;
}

/** Keeps the first version of a file, so that an operator's file isn't lost. */
function keepOnce(file: string): void {
  const copy = `${file}.before-holdfast`;
  if (existsSync(file) && !existsSync(copy)) copyFileSync(file, copy);
}

/** Creates the directory, accessible for owner and group. */
export function makeCertificateDirectory({ directory }: CertificateFiles): void {
  mkdirSync(directory, { recursive: true, mode: 0o750 });
}
