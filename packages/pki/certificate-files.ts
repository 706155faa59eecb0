// Where the certificates of the core lie: in certs/files below its directory, with the names that a
// TAK Server release uses.

import { join } from 'node:path';

export interface CertificateFiles {
  directory: string;
  /** The CA certificate, PEM. */
  ca: string;
  caKey: string;
  /** With OpenSSL's trust settings, as are the other `-trusted.pem`. */
  caTrusted: string;
  /** The same as `ca`. */
  rootCa: string;
  rootCaTrusted: string;
  /** The CA certificate as PKCS#12. */
  truststore: string;
  revocationList: string;
  /** What the list is made of, as OpenSSL's `ca` keeps it. */
  revocationIndex: string;
  /** The server certificate with the CA appended, PEM. */
  server: string;
  serverKey: string;
  serverBundle: string;
  serverTrusted: string;
  /** The certificate of management, with the CA appended, PEM. */
  api: string;
  apiKey: string;
  apiBundle: string;
  /** There while a new CA takes the place of the old one. */
  renewal: string;
}

/**
 * The password of every PKCS#12 file of the core. Programs and phones expect this one: it keeps
 * nothing secret.
 */
export const BUNDLE_PASSWORD = 'atakatak';

/** Every path below the directory of the core. */
export function certificateFiles(coreDirectory: string): CertificateFiles {
  const directory = join(coreDirectory, 'certs', 'files');
  const file = (name: string): string => join(directory, name);
  return {
    directory,
    ca: file('ca.pem'),
    caKey: file('ca-do-not-share.key'),
    caTrusted: file('ca-trusted.pem'),
    rootCa: file('root-ca.pem'),
    rootCaTrusted: file('root-ca-trusted.pem'),
    truststore: file('truststore-root.p12'),
    revocationList: file('ca.crl'),
    revocationIndex: file('crl_index.txt'),
    server: file('takserver.pem'),
    serverKey: file('takserver.key'),
    serverBundle: file('takserver.p12'),
    serverTrusted: file('takserver-trusted.pem'),
    api: file('svc_api.pem'),
    apiKey: file('svc_api.key'),
    apiBundle: file('svc_api.p12'),
    renewal: file('ca-renewal.json'),
  };
}
