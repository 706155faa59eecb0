// Kept connections to one port of the core, over TLS that trusts what it should. The files behind it are looked at once a
// second at most, and read anew when they have changed or after the core has refused us.

import type { X509Certificate } from 'node:crypto';
import type { SecureContext } from 'node:tls';
import { type CredentialsOptions, credentialFiles } from './core-credentials.ts';
import type { Pool, request } from './request-pool.ts';

const LOOK_MS = 1_000;
const CONNECT_WITHIN_MS = 5_000;
/** Where the core does not say how long it keeps idle ones: a release ends them after 20 s (Tomcat's default). The embedded core says 65 s. */
const IDLE_MS = 4_000;

export interface ConnectionsOptions extends CredentialsOptions {
  /** Scheme, host and port. */
  origin: string;
  /** How many at most. */
  connections: number;
  /** What they come from; default: as the system sees fit. */
  localAddress?: string | undefined;
}

export interface Connections {
  pool: Pool;
  /** To be called on the pool. */
  request: typeof request;
  /** Of `ca.pem`, in its order. */
  authorities: X509Certificate[];
  /** The session of the core, which spares it to look us up at each request. */
  cookie: string | undefined;
}

export interface CoreConnections {
  /** Those of now; rejects with `unavailable` when a file is missing or unfit. */
  current(): Promise<Connections>;
  /** After these were refused: the files are read anew. */
  forget(refused: Connections): void;
  ca: string;
  /** Undefined where no client certificate is shown. */
  bundle: string | undefined;
  close(): Promise<void>;
}

export function coreConnections({
  origin,
  connections,
  localAddress,
  ...credentials
}: ConnectionsOptions): CoreConnections {
  const files = credentialFiles(credentials);
  let kept: (Connections & { mark: string }) | undefined;
  let lookedAtMs = 0;
  let looking: Promise<Connections> | undefined;

  async function poolWith(secureContext: SecureContext): Promise<Pick<Connections, 'pool' | 'request'>> {
    const undici = await import('./request-pool.ts');
    const pool = new undici.Pool(origin, {
      connections,
      allowH2: false,
      keepAliveTimeout: IDLE_MS,
      connect: { secureContext, timeout: CONNECT_WITHIN_MS },
      ...(localAddress === undefined ? {} : { localAddress }),
    });
    return { pool, request: undici.request };
  }

  async function look(): Promise<Connections> {
    const mark = await files.mark();
    if (kept?.mark !== mark) {
      const { context, authorities } = await files.read();
      const opened = await poolWith(context);
      letGo();
      kept = { ...opened, authorities, cookie: undefined, mark };
    }
    lookedAtMs = performance.now();
    return kept;
  }

  /** What is under way on them ends as it would have. */
  function letGo(): void {
    void kept?.pool.close().catch(() => undefined);
    kept = undefined;
  }

  return {
    ca: files.ca,
    bundle: files.bundle,
    async current() {
      if (kept !== undefined && performance.now() - lookedAtMs < LOOK_MS) return kept;
      return (looking ??= look().finally(() => (looking = undefined)));
    },
    forget(refused) {
      if (refused === kept) letGo();
    },
    async close() {
      await kept?.pool.destroy();
      kept = undefined;
    },
  };
}
