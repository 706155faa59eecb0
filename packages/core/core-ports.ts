// Opens the ports of the core: 8443 (HTTP) and 8089 (stream) for certificates of our CA, 8446
// (HTTP) for passwords. All use the same server certificate, but sessions are never shared between
// ports.

import type { Log } from '@holdfast/kit/log';
import { HOUR_MS } from '@holdfast/kit/time';
import type { CoreFetch, LiveConnections, Revocations } from './model/parts.ts';
import type { StreamArrival } from './model/stream.ts';
import { WebSockets } from './stream/websocket.ts';
import { Admission } from './tls/admission.ts';
import { type ConnectionLimit, ownConnectionLimit } from './tls/connection-limit.ts';
import { readServerIdentity } from './tls/server-identity.ts';
import { CoreListener, type CoreListenerOptions } from './tls/core-listener.ts';
import { HttpPort, type HttpLimits } from './tls/http-port.ts';

export interface CorePortNumbers {
  api: number;
  enrollment: number;
  streaming: number;
}

export interface CorePortsOptions {
  /** PEM files. */
  files: { ca: string; certificate: string; key: string };
  addresses: readonly string[];
  ports: CorePortNumbers;
  /** What is asked with a client certificate, and what is asked without. */
  api: CoreFetch;
  enrollment: CoreFetch;
  /** Who has come to the stream. */
  stream: (arrival: StreamArrival) => void;
  refused?: CoreListenerOptions['refused'];
  revocations: Pick<Revocations, 'isRevoked'>;
  live: LiveConnections;
  log: Log;
  now: () => Date;
  limits?: Partial<HttpLimits>;
  /** On every port. */
  isTrustedProxy?: CoreListenerOptions['isTrustedProxy'];
  /** Of how many connections; default: what memory and file descriptors allow. */
  limit?: ConnectionLimit;
}

/**
 * A large file over a slow link: as long as it keeps moving. One that stands still ends within
 * `silentMs`.
 */
const UPLOAD_WITHIN_MS = HOUR_MS;

export interface CorePorts {
  /** On every address, or on none. */
  listen(): Promise<void>;
  /** No ticket that was given out before is taken any more. */
  rebuildContexts(): void;
  /**
   * Shows what the files hold now; open connections go on. Rejects, and changes nothing, when they
   * do not fit.
   */
  renew(): void;
  close(graceMs: number): Promise<void>;
}

/** Reads the files at once; listens later. */
export function createCorePorts(options: CorePortsOptions): CorePorts {
  const { files, addresses, ports, revocations, live, log, now, limits = {}, limit = ownConnectionLimit() } = options;
  let identity = readServerIdentity(files);
  const admission = new Admission({ ca: identity.ca, revocations, now });
  const shared = {
    addresses,
    identity,
    live,
    log,
    limits,
    isTrustedProxy: options.isTrustedProxy,
    maxConnections: limit.http,
    limitedBy: limit.reason,
  };
  const webSockets = new WebSockets(options.stream);
  const listeners = [
    new HttpPort({
      ...shared,
      name: 'api',
      port: ports.api,
      admission,
      fetch: options.api,
      upgrade: (...given) => webSockets.upgrade(...given),
      limits: { requestWithinMs: UPLOAD_WITHIN_MS, ...limits },
    }),
    new HttpPort({ ...shared, name: 'enrollment', port: ports.enrollment, fetch: options.enrollment }),
    new CoreListener({
      ...shared,
      name: 'streaming',
      port: ports.streaming,
      admission,
      accepted: options.stream,
      refused: options.refused,
      maxConnections: limit.streaming,
    }),
  ];

  function rebuildContexts(): void {
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
    rebuildContexts,
    renew() {
      identity = readServerIdentity(files);
      rebuildContexts();
    },
    close,
  };
}
