// Reads the server certificate and key together, and only as a matching pair.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { explainFileError, StackError } from '@holdfast/kit/app-error';

/** All PEM. */
export interface ServerIdentity {
  /** The certificate with what stands above it. */
  certificate: string;
  key: string;
  /** Whose certificates open the ports that ask for one. */
  ca: string;
}

/** Rejects a key that is not the certificate's, and a certificate that is not of this CA. */
export function readServerIdentity(files: { ca: string; certificate: string; key: string }): ServerIdentity {
  const [certificate, key, ca] = [files.certificate, files.key, files.ca].map(read) as [string, string, string];
  const leaf = new X509Certificate(certificate);
  if (!leaf.checkPrivateKey(createPrivateKey(key)) || !leaf.verify(new X509Certificate(ca).publicKey)) {
    throw new StackError(
      `${files.certificate}, ${files.key} and ${files.ca} do not belong together.`,
      'remove the first two and start again: new ones are created',
    );
  }
  return { certificate, key, ca };
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw explainFileError(error, path);
  }
}
