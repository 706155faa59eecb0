// The ports of the core that speak HTTP: 8443 for certificates of our CA, 8446 for passwords. Both show the same server
// certificate and share nothing else: a session of one is no session of the other.

import type { Log } from '../../../shared/ports/log.ts';
import type { CoreFetch, LiveConnections, Revocations } from './parts.ts';
import { createAdmission } from './tls/admission.ts';
import { createHttpPort, type HttpLimits } from './tls/http-port.ts';
import { readServerIdentity } from './tls/server-identity.ts';

export interface CorePortsOptions {
  /** PEM files. */
  files: { ca: string; certificate: string; key: string };
  addresses: readonly string[];
  ports: { api: number; enrollment: number };
  /** What is asked with a client certificate, and what is asked without. */
  api: CoreFetch;
  enrollment: CoreFetch;
  revocations: Pick<Revocations, 'isRevoked'>;
  live: LiveConnections;
  log: Log;
  now: () => Date;
  limits?: Partial<HttpLimits>;
  mostConnections?: number;
}

export interface CorePorts {
  /** On every address, or on none. */
  listen(): Promise<void>;
  /** No ticket that was given out before is taken any more. */
  contextsAnew(): void;
  /** Shows what the files hold now; open connections go on. Rejects, and changes nothing, when they do not fit. */
  renew(): void;
  close(graceMs: number): Promise<void>;
}

/** Reads the files at once; listens later. */
export function createCorePorts(options: CorePortsOptions): CorePorts {
  const { files, addresses, ports, revocations, live, log, now, limits = {}, mostConnections } = options;
  let identity = readServerIdentity(files);
  const admission = createAdmission({ ca: identity.ca, revocations, now });
  const shared = {
    addresses,
    identity,
    live,
    log,
    limits,
    ...(mostConnections === undefined ? {} : { mostConnections }),
  };
  const listeners = [
    createHttpPort({ ...shared, name: 'api', port: ports.api, admission, fetch: options.api }),
    createHttpPort({ ...shared, name: 'enrollment', port: ports.enrollment, fetch: options.enrollment }),
  ];

  function contextsAnew(): void {
    for (const listener of listeners) listener.renew(identity);
  }

  async function close(graceMs: number): Promise<void> {
    await Promise.all(listeners.map((listener) => listener.close(graceMs)));
  }

  return {
    async listen() {
      try {
        for (const listener of listeners) await listener.listen();
      } catch (error) {
        await close(0);
        throw error;
      }
    },
    contextsAnew,
    renew() {
      identity = readServerIdentity(files);
      contextsAnew();
    },
    close,
  };
}
