// Name resolution as this machine does it, and the addresses that are its own.

export interface Resolution {
  /** Every address of the name, IPv4 and IPv6; empty when it has none. */
  addresses: string[];
  /** Why there is none, in words. */
  error: string | undefined;
}

export interface HostNames {
  /** Never rejects; gives up after a few seconds. */
  resolve(name: string): Promise<Resolution>;
  /** The addresses of this machine's interfaces, loopback too. */
  ownAddresses(): Promise<string[]>;
}
