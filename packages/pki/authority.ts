// The CA while the core runs: signs client certificates, keeps the revocation list and its index.

import 'reflect-metadata';
import { createHash, createPublicKey, X509Certificate as NodeCertificate } from 'node:crypto';
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import * as x509 from '@peculiar/x509';
import { explainFileError, messageOf, StackError } from '@holdfast/kit/app-error';
import { serialize } from '@holdfast/kit/concurrency';
import { writeFileAtomically } from '@holdfast/kit/files';
import { DAY_MS } from '@holdfast/kit/time';
import { type Ca, keyIdentifier, readCa } from './certificate-authority.ts';
import { type CertificateFiles, certificateFiles } from './certificate-files.ts';
import { indexText, readIndex, readSignedList, signRevocationList } from './crl.ts';
import { BACKDATED_MS, curveOf, normalSerial, serialNumber, signatureOn, signingKey } from './keys.ts';
import type { Authority, ClientCertificateOrder, RevokedEntry, SignedCertificate } from './parts.ts';
import { checkCommonName, clientSubject, clientSubjectText } from './subject.ts';

export interface AuthoritySettings {
  /** How long client certificates last; never longer than the CA. */
  validityDays: number;
  /** Told about a list or an index that cannot be used; a copy of it is kept beside it. */
  warn?: (text: string) => void;
  /** Name of this process, where several write the same list. */
  writer?: string | undefined;
}

/** Says "supports channels" in a client certificate. */
export const CHANNELS_USAGE = '1.2.840.113549.1.9.7';

/**
 * Opens the CA that `ensureServerCertificate` has made. Rejects with a StackError that names the
 * file and the remedy.
 */
export async function openAuthority(coreDirectory: string, settings: AuthoritySettings): Promise<Authority> {
  const files = certificateFiles(coreDirectory);
  const ca = opened(files);
  const signer = await signingKey(ca.key);
  const identifier = await keyIdentifier(ca.certificate);
  const publicKey = createPublicKey(ca.key);
  const listIssuer = { certificate: new Uint8Array(ca.certificate.rawData), keyIdentifier: identifier, key: ca.key };
  const inTurn = serialize();
  const warn = onceEach(settings.warn ?? (() => undefined));
  let lastNumber = 0n;

  /** Of our own list; a foreign or damaged one is told, and kept aside before it is replaced. */
  function listed(): { serial: string; revokedAt: Date }[] {
    const text = readOrNone(files.revocationList);
    if (text === undefined) return [];
    const list = readSignedList(text, publicKey);
    if ('refused' in list) {
      keepAside(files.revocationList, list.refused, warn);
      return [];
    }
    if (list.number > lastNumber) lastNumber = list.number;
    return list.revoked;
  }

  function indexed(): RevokedEntry[] {
    const { revoked, damaged } = readIndex(readOrNone(files.revocationIndex) ?? '');
    if (damaged.length > 0) keepAside(files.revocationIndex, `${damaged.length} lines cannot be understood`, warn);
    return revoked;
  }

  function replace(file: string, text: string, mode: number): void {
    const { writer } = settings;
    writeFileAtomically(file, text, mode, writer === undefined ? undefined : `${file}.${writer}.new`);
  }

  function revokedInFiles(): RevokedEntry[] {
    const expiresAt = ca.certificate.notAfter;
    return distinct([...indexed(), ...listed().map((entry) => ({ ...entry, expiresAt, subject: '' }))]);
  }

  revokedInFiles();
  return {
    chain: ca.chain,
    revokedInFiles,
    issue: (order, now) => inTurn(async () => issue({ ca, signer, identifier, files, settings }, order, now)),
    writeRevocationList: (revoked, now) =>
      inTurn(async () => {
        const entries = distinct(revoked);
        const number = max(lastNumber + 1n, BigInt(now.getTime()));
        const { pem, times } = signRevocationList(listIssuer, entries, number, now);
        replace(files.revocationIndex, indexText(entries), 0o600);
        replace(files.revocationList, pem, 0o644);
        lastNumber = number;
        return times;
      }),
  };
}

interface Issuer {
  ca: Ca;
  signer: Awaited<ReturnType<typeof signingKey>>;
  identifier: string;
  files: CertificateFiles;
  settings: AuthoritySettings;
}

async function issue(
  { ca, signer, identifier, files, settings }: Issuer,
  { publicKey, commonName, channels }: ClientCertificateOrder,
  now: Date,
): Promise<SignedCertificate> {
  checkCommonName(commonName);
  const end = ca.certificate.notAfter;
  if (end <= now)
    throw new StackError(
      `The certificate of the CA in ${files.ca} has ended at ${end.toISOString()}: nothing can be signed.`,
      'stop the stack, run ./scripts/renew-ca.sh, and start it again',
    );
  const notBefore = wholeSecond(now.getTime() - BACKDATED_MS);
  const notAfter = wholeSecond(Math.min(now.getTime() + settings.validityDays * DAY_MS, end.getTime()));
  const serial = serialNumber();
  const key = new x509.PublicKey(publicKey);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial,
    subject: new x509.Name(clientSubject(commonName)),
    issuer: ca.certificate.subjectName,
    notBefore,
    notAfter,
    signingAlgorithm: signatureOn(curveOf(ca.key)),
    publicKey: key,
    signingKey: signer,
    extensions: [
      new x509.KeyUsagesExtension(
        x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.nonRepudiation | x509.KeyUsageFlags.keyAgreement,
        true,
      ),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth, ...(channels ? [CHANNELS_USAGE] : [])]),
      await x509.SubjectKeyIdentifierExtension.create(key),
      new x509.AuthorityKeyIdentifierExtension(identifier),
    ],
  });
  const der = new Uint8Array(certificate.rawData);
  return {
    pem: `${certificate.toString('pem')}\n`,
    der,
    serial,
    hash: fingerprintOf(der),
    subject: clientSubjectText(commonName),
    commonName,
    notBefore,
    notAfter,
  };
}

/** SHA-256 of the DER: `AA:BB:…`. */
export function fingerprintOf(der: Uint8Array): string {
  const hex = createHash('sha256').update(der).digest('hex').toUpperCase();
  return hex.match(/../g)?.join(':') ?? '';
}

function opened(files: CertificateFiles): Ca {
  try {
    const ca = readCa(files);
    if (!new NodeCertificate(ca.chain[0] ?? '').ca) throw new Error(`${files.ca} holds no certificate of a CA`);
    return ca;
  } catch (error) {
    const explained = explainFileError(error, files.directory);
    if (explained instanceof StackError) throw explained;
    throw new StackError(
      `The CA in ${files.directory} cannot be used: ${messageOf(error)}`,
      'put ca.pem and ca-do-not-share.key back from a backup',
      error,
    );
  }
}

/** Each serial number once, with the earliest date; what the first of them says of it stands. */
function distinct(revoked: readonly RevokedEntry[]): RevokedEntry[] {
  const known = new Map<string, RevokedEntry>();
  for (const entry of revoked) {
    const serial = normalSerial(entry.serial);
    if (!/^[0-9a-f]+$/.test(serial)) throw new Error(`${entry.serial} is no serial number in hex`);
    const other = known.get(serial);
    if (other === undefined) known.set(serial, { ...entry, serial });
    else if (entry.revokedAt < other.revokedAt) known.set(serial, { ...other, revokedAt: entry.revokedAt });
  }
  return [...known.values()];
}

function readOrNone(file: string): string | undefined {
  try {
    return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  } catch (error) {
    throw explainFileError(error, file);
  }
}

/**
 * What we do not understand may be all that remembers somebody: it is copied before it is written
 * anew.
 */
function keepAside(file: string, why: string, warn: (text: string) => void): void {
  const copy = `${file}.unreadable`;
  try {
    copyFileSync(file, copy);
  } catch (error) {
    throw explainFileError(error, copy);
  }
  warn(`${file} is not used (${why}) and will be rewritten. Its content was copied to ${copy}`);
}

function onceEach(warn: (text: string) => void): (text: string) => void {
  const messages = new Set<string>();
  return (text) => {
    if (!messages.has(text)) warn(text);
    messages.add(text);
  };
}

function wholeSecond(time: number): Date {
  return new Date(Math.floor(time / 1000) * 1000);
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
