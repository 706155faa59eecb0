// A TLS server takes a renewed certificate while it runs: the files are looked at from time to time, and connections that
// are open go on with the certificate that they have.

import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { createSecureContext, type Server } from 'node:tls';
import { messageOf } from '../domain/thrown.ts';
import type { Log } from '../ports/log.ts';

/** PEM files: the certificate with what stands above it, and its private key. */
export interface CertificateFiles {
  certificateFile: string;
  keyFile: string;
}

interface Pair {
  cert: Buffer;
  key: Buffer;
}

/** What a TLS server of ours is made with, read from the files now; throws when one cannot be read. */
export function tlsOptions({ certificateFile, keyFile }: CertificateFiles): Pair & { minVersion: 'TLSv1.2' } {
  return withOptions({ cert: readFileSync(certificateFile), key: readFileSync(keyFile) });
}

function withOptions(pair: Pair): Pair & { minVersion: 'TLSv1.2' } {
  return { ...pair, minVersion: 'TLSv1.2' };
}

/**
 * Looks at the files every `everyMs` and gives the server what has changed; `inUse` is what it has now. Files that are
 * missing, cut off or do not fit together are left alone until they do: the one who renews them writes two files.
 * Returns what ends the looking.
 */
export function takeRenewed(
  server: Pick<Server, 'setSecureContext'>,
  files: CertificateFiles,
  inUse: Pair,
  everyMs: number,
  log: Log,
): () => void {
  let current = inUse;
  let seen: string | undefined;
  let refused: string | undefined;
  let looking = false;

  async function look(): Promise<void> {
    const state = await stateOf(files);
    if (state === seen) return;
    const pair = { cert: await readFile(files.certificateFile), key: await readFile(files.keyFile) };
    if (!pair.cert.equals(current.cert) || !pair.key.equals(current.key)) take(pair);
    seen = state;
    refused = undefined;
  }

  function take(pair: Pair): void {
    // Throws when the key is not that of the certificate; the server would take them all the same.
    createSecureContext(withOptions(pair));
    server.setSecureContext(withOptions(pair));
    current = pair;
    const expiresAt = new X509Certificate(pair.cert).validToDate.toISOString();
    log.info('tls.renewed', { file: files.certificateFile, expires_at: expiresAt });
  }

  /** Said once for each reason. */
  function leaveAlone(error: unknown): void {
    const reason = messageOf(error);
    if (reason !== refused) log.warn('tls.not_renewed', { file: files.certificateFile, error: reason });
    refused = reason;
  }

  const timer = setInterval(() => {
    if (looking) return;
    looking = true;
    void look()
      .catch(leaveAlone)
      .finally(() => (looking = false));
  }, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}

/** Another one after every write, also after one that renames a new file into the place of the old one. */
async function stateOf({ certificateFile, keyFile }: CertificateFiles): Promise<string> {
  const states = await Promise.all([certificateFile, keyFile].map((file) => stat(file, { bigint: true })));
  return states.map(({ ino, size, mtimeNs }) => `${ino} ${size} ${mtimeNs}`).join(', ');
}
