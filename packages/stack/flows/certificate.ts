// Gives the flow engine its client certificate, the CA of the core, and what its feeds need.
// Certificate and key are in one file, so that they always match: the newest valid one that
// management keeps.

import { X509Certificate } from 'node:crypto';
import { chmodSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf } from '@holdfast/kit/app-error';
import { writeUnlessThere } from '@holdfast/kit/files';
import { FEED_ACCOUNT_PREFIX, FLOWS_ACCOUNT } from '@holdfast/kit/names';
import { repeatRegularly } from '@holdfast/kit/retry';
import { certificateFiles } from '@holdfast/pki/certificate-files';
import { certificatesOf } from '@holdfast/pki/keys';
import { type Given, giveFeeds } from './feeds.ts';

export interface ForFlows {
  /** CORE_DATA_DIR. */
  core: string;
  directory: string;
  /**
   * File mode of the key: 0600 for the same user, 0640 for a group that includes the flow engine.
   */
  mode: number;
}

const KEPT = /^[0-9a-f]{64}\.pem$/;

/** By file name. Files never change. */
type Seen = Map<string, X509Certificate | undefined>;

/** Paths in the directory. */
export function flowsCertificateFiles(directory: string): { bundle: string; ca: string } {
  return { bundle: join(directory, `${FLOWS_ACCOUNT}.pem`), ca: join(directory, 'ca.pem') };
}

/** Repeats giveToFlows until the returned function is called. */
export function supplyFlows(flows: ForFlows, failed: (message: string) => void, everyMs?: number): () => void {
  const seen: Seen = new Map();
  return repeatRegularly(() => giveToFlows(flows, new Date(), seen), failed, everyMs);
}

/** Writes the missing files. Without a valid certificate, keeps the current one. */
export function giveToFlows({ core, directory, mode }: ForFlows, now: Date, seen: Seen = new Map()): void {
  const files = flowsCertificateFiles(directory);
  // Readers of the files need access to the directory, and a new volume is private to its owner.
  // On Kubernetes it belongs to root, who alone can change its mode.
  const wanted = mode | ((mode & 0o444) >> 2);
  if ((statSync(directory).mode & wanted) !== wanted) chmodSync(directory, wanted);
  const authorities = readFileSync(certificateFiles(core).ca, 'utf8');
  writeUnlessThere(files.ca, authorities, 0o644);
  const kept = join(core, 'certs/holdfast');
  lookAt(kept, seen);
  const given: Given = (account) => {
    const name = newest(ofAccount(seen, account), certificatesIn(authorities), now);
    return name === undefined ? undefined : readFileSync(join(kept, name), 'utf8');
  };
  const text = given(FLOWS_ACCOUNT);
  if (text !== undefined) writeUnlessThere(files.bundle, text, mode);
  giveFeeds({ core, directory, mode }, given);
}

function lookAt(kept: string, seen: Seen): void {
  const names = namesIn(kept);
  for (const name of seen.keys()) if (!names.includes(name)) seen.delete(name);
  for (const name of names) if (!seen.has(name)) seen.set(name, ofFlows(join(kept, name)));
}

function ofAccount(seen: Seen, account: string): Seen {
  return new Map([...seen].filter(([, certificate]) => accountIn(certificate) === account));
}

function newest(seen: Seen, authorities: X509Certificate[], now: Date): string | undefined {
  const status = [...seen].flatMap(([name, certificate]) =>
    certificate !== undefined && isInTime(certificate, now) ? [{ name, certificate }] : [],
  );
  return status.toSorted((a, b) => rank(b.certificate) - rank(a.certificate))[0]?.name;

  /** Certificates of the current CA rank first, then newer ones. */
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

/**
 * Avoids toLegacyObject: called before node:tls is loaded, it breaks createSecureContext in Node
 * 24.
 */
function ofFlows(path: string): X509Certificate | undefined {
  const [certificate] = certificatesIn(readFileSync(path, 'utf8'));
  const account = accountIn(certificate);
  return account === FLOWS_ACCOUNT || account?.startsWith(FEED_ACCOUNT_PREFIX) === true ? certificate : undefined;
}

function accountIn(certificate: X509Certificate | undefined): string | undefined {
  return /^CN=(.+)$/m.exec(certificate?.subject ?? '')?.[1];
}

function isInTime({ validFrom, validTo }: X509Certificate, now: Date): boolean {
  return Date.parse(validFrom) <= now.getTime() && now.getTime() < Date.parse(validTo);
}

function certificatesIn(text: string): X509Certificate[] {
  return certificatesOf(text).map((pem) => new X509Certificate(pem));
}
