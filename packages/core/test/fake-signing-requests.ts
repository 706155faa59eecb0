// Signing requests as OpenSSL makes them.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface RequestInput {
  /** As `-subj` takes it. */
  subject?: string;
  /** What `openssl genpkey` is told. */
  key?: readonly string[];
  /** What `openssl req` is told beside. */
  more?: readonly string[];
}

export const P384 = ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-384'] as const;
export const ADA = '/O=Holdfast/OU=CoT/CN=ada';

/** A request in PEM, and its private key. */
export function opensslRequest({ subject = ADA, key = P384, more = [] }: RequestInput = {}): {
  pem: string;
  key: string;
} {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-request-'));
  const file = join(directory, 'key.pem');
  try {
    execFileSync('openssl', ['genpkey', ...key, '-out', file], { stdio: 'pipe' });
    const args = ['req', '-new', '-utf8', '-key', file, '-subj', subject, ...more];
    const pem = execFileSync('openssl', args, { stdio: 'pipe' }).toString();
    return { pem, key: readFileSync(file, 'utf8') };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** The base64 of a request without its header lines. */
export const bare = (pem: string): string => pem.replaceAll(/-----[^-]+-----|\s/g, '');

/** An element of DER. */
export function der(tag: number, ...contents: Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content]);
  const digits = Buffer.from(length.toString(16).padStart(length > 0xffff ? 6 : length > 0xff ? 4 : 2, '0'), 'hex');
  return Buffer.concat([Buffer.from([tag, 0x80 | digits.length]), digits, content]);
}
