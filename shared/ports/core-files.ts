// The certificate files of the core (certs/files below CORE_DATA_DIR), as far as health looks at them. Keys are never read.

/** Which part a file has: the CA, the core's server certificate, a certificate of a service account (`svc_`). */
export type CertificateKind = 'ca' | 'server' | 'service';

/** A certificate as its file holds it, or why nothing can be said of it. Dates are ISO 8601 in UTC. */
export type CertificateFile = { name: string; kind: CertificateKind } & (
  | {
      subject: string;
      from: string;
      /** Of a CA file with a chain: the end of whichever ends first. */
      until: string;
      /** Signed by a certificate of `ca.pem`; undefined where that cannot be read. */
      ours: boolean | undefined;
    }
  | Unreadable
);

/** The revocation list, `ca.crl`. */
export type RevocationListFile =
  | {
      /** Its signature verifies against a certificate of `ca.pem`; undefined where that cannot be read. */
      ours: boolean | undefined;
      this_update: string;
      /** Null: the list does not say when the next one comes. */
      next_update: string | null;
    }
  | Unreadable;

interface Unreadable {
  /** A predicate whose subject is the file: `is missing`. */
  problem: string;
}

export interface CoreCertificates {
  /** Where the files are, or ought to be. */
  directory: string;
  /** `ca.pem`, `takserver.pem`, `svc_api.pem` always, then the other services by name. */
  certificates: CertificateFile[];
  revocationList: RevocationListFile;
}

export interface CoreFiles {
  /** Reads the files now. Rejects when the directory cannot be listed although it is there. */
  certificates(): Promise<CoreCertificates>;
}
