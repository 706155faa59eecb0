// The private keys of certificates that Holdfast made, by the hash of the certificate. Files of mode 0600; never a name of a
// user in a path.

export interface KeptKey {
  /** PKCS#8, not encrypted. */
  keyPem: string;
  certificatePem: string;
  /** The issuer first. */
  chainPem: string[];
}

export interface ClientKeys {
  /** On disk when it resolves. */
  keep(hash: string, key: KeptKey): Promise<void>;
  read(hash: string): Promise<KeptKey | undefined>;
  /** Which of these are kept. */
  kept(hashes: readonly string[]): Promise<string[]>;
  /** One that is gone already is no error. */
  remove(hash: string): Promise<void>;
}
