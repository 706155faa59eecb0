// Directories of a core, each with a CA of its own, for the tests of one file; removed afterwards.

import { webcrypto } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { openAuthority } from '../authority.ts';
import { type CertificateFiles, certificateFiles } from '../certificate-files.ts';
import type { Authority, SignedCertificate } from '../parts.ts';
import { ensureServerCertificate } from '../server-certificate.ts';

export const DAY = 86_400_000;
export const NAMES = ['127.0.0.1', 'cot.example.org'];

export interface Workshop {
  directory: string;
  files: CertificateFiles;
  messages: string[];
  /** The authority as a start of the core opens it. */
  open: (validityDays?: number) => Promise<Authority>;
}

/** To be called at the top of a test file: makes a new directory whose CA was made at `now`. */
export function workshops(): (now?: Date) => Promise<Workshop> {
  const directories: string[] = [];
  afterAll(() => {
    for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
  });
  return async (now = new Date()) => {
    const directory = mkdtempSync(join(tmpdir(), 'holdfast-pki-'));
    directories.push(directory);
    await ensureServerCertificate(directory, NAMES, now);
    const messages: string[] = [];
    return {
      directory,
      files: certificateFiles(directory),
      messages,
      open: (validityDays = 365) => openAuthority(directory, { validityDays, warn: (text) => messages.push(text) }),
    };
  };
}

/** A certificate for a new key. */
export async function enrolled(
  authority: Authority,
  commonName: string,
  now = new Date(),
): Promise<{ signed: SignedCertificate; keys: webcrypto.CryptoKeyPair }> {
  const keys = await webcrypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-384' }, true, ['sign', 'verify']);
  const publicKey = new Uint8Array(await webcrypto.subtle.exportKey('spki', keys.publicKey));
  return { keys, signed: await authority.issue({ publicKey, commonName, channels: true }, now) };
}

export function revocationOf({ serial, notAfter, subject }: SignedCertificate, revokedAt = new Date()) {
  return { serial, revokedAt, expiresAt: notAfter, subject };
}
