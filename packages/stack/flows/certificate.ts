// What the flow engine gets of the core's files: the certificate of its service account with its key, of those that management
// keeps the newest that counts, in one file, so that the two always go together; and the CA, by which the core is known.

import { X509Certificate } from 'node:crypto';
import { chmodSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf } from '@holdfast/kit/app-error';
import { writeUnlessThere } from '@holdfast/kit/files';
import { FLOWS_ACCOUNT } from '@holdfast/kit/names';
import { repeatRegularly } from '@holdfast/kit/retry';
import { certificateFiles } from '@holdfast/pki/certificate-files';
import { certificatesOf } from '@holdfast/pki/keys';

export interface ForFlows {
  /** CORE_DATA_DIR. */
  core: string;
  directory: string;
  /** Of the file with the key: 0600 for the same user, 0640 for a group that the flow engine is in. */
  mode: number;
}

const KEPT = /^[0-9a-f]{64}\.pem$/;

/** By file name: one that has a name once never changes. */
type Seen = Map<string, X509Certificate | undefined>;

/** Where they lie in the directory. */
export function flowsCertificateFiles(directory: string): { bundle: string; ca: string } {
  return { bundle: join(directory, `${FLOWS_ACCOUNT}.pem`), ca: join(directory, 'ca.pem') };
}

/** Until it is stopped. */
export function supplyFlows(flows: ForFlows, failed: (message: string) => void, everyMs?: number): () => void {
  const seen: Seen = new Map();
  return repeatRegularly(() => giveToFlows(flows, new Date(), seen), failed, everyMs);
}

/** Writes what is not there yet. Without a certificate that counts, what was given stays. */
export function giveToFlows({ core, directory, mode }: ForFlows, now: Date, seen: Seen = new Map()): void {
  const files = flowsCertificateFiles(directory);
  // Who may read what lies in it may look into it: a new volume is its owner's alone.
  chmodSync(directory, mode | ((mode & 0o444) >> 2));
  const authorities = readFileSync(certificateFiles(core).ca, 'utf8');
  writeUnlessThere(files.ca, authorities, 0o644);
  const kept = join(core, 'certs/holdfast');
  const name = newest(kept, certificatesIn(authorities), now, seen);
  if (name !== undefined) writeUnlessThere(files.bundle, readFileSync(join(kept, name), 'utf8'), mode);
}

function newest(kept: string, authorities: X509Certificate[], now: Date, seen: Seen): string | undefined {
  const names = namesIn(kept);
  for (const name of seen.keys()) if (!names.includes(name)) seen.delete(name);
  for (const name of names) if (!seen.has(name)) seen.set(name, ofFlows(join(kept, name)));
  const status = [...seen].flatMap(([name, certificate]) =>
    certificate !== undefined && isInTime(certificate, now) ? [{ name, certificate }] : [],
  );
  return status.toSorted((a, b) => rank(b.certificate) - rank(a.certificate))[0]?.name;

  /** One of the CA in force goes before all others, then the newest. */
  function rank(certificate: X509Certificate): number {
    const isOfCa = authorities.some((each) => certificate.checkIssued(each) && certificate.verify(each.publicKey));
    return Date.parse(certificate.validFrom) + (isOfCa ? Number.MAX_SAFE_INTEGER / 2 : 0);
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory).filter((name) => KEPT.test(name));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

/** Not by toLegacyObject, which leaves Node 24 without createSecureContext where it comes before node:tls. */
function ofFlows(path: string): X509Certificate | undefined {
  const [certificate] = certificatesIn(readFileSync(path, 'utf8'));
  return certificate?.subject.split('\n').includes(`CN=${FLOWS_ACCOUNT}`) ? certificate : undefined;
}

function isInTime({ validFrom, validTo }: X509Certificate, now: Date): boolean {
  return Date.parse(validFrom) <= now.getTime() && now.getTime() < Date.parse(validTo);
}

function certificatesIn(text: string): X509Certificate[] {
  return certificatesOf(text).map((pem) => new X509Certificate(pem));
}
