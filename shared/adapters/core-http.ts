// The core's admin API on 8443, over mutual TLS with the certificate of svc_api.

import type { Core } from '../ports/core.ts';
import type { CoreNotices } from '../ports/core-notices.ts';
import type { CoreRetention } from '../ports/core-retention.ts';
import { coreCertificates } from './core-certificates.ts';
import { coreClients } from './core-clients.ts';
import { coreGroups } from './core-groups.ts';
import { corePlugins } from './core-plugins.ts';
import { corePort } from './core-request.ts';
import { coreNotices } from './core-notices.ts';
import { coreRetention } from './core-retention.ts';
import { coreStatus } from './core-status.ts';

/** Enough for a page of two hundred users at once; a release serves 200 at most. */
const CONNECTIONS = 16;

export interface HttpCoreOptions {
  /** CORE_API_URL. */
  url: string;
  /** CORE_DATA_DIR: in `certs/files` lie `ca.pem` and `svc_api.p12`. */
  dataDir: string;
}

export interface HttpCore extends Core {
  /** On the same connections. */
  retention: CoreRetention;
  notices: CoreNotices;
  /** Ends the kept connections. */
  close(): Promise<void>;
}

/**
 * A method takes 10 s at most, one that reads a whole list of certificates 30 s. Connects when it is first asked.
 *
 * @example
 * const core = httpCore({ url: 'https://takserver:8443', dataDir: '/opt/tak' });
 * const { version } = await core.status();
 */
export function httpCore({ url, dataDir }: HttpCoreOptions): HttpCore {
  const port = corePort({
    url,
    variable: 'CORE_API_URL',
    name: 'The core',
    dataDir,
    trust: 'own',
    connections: CONNECTIONS,
  });
  return {
    ...coreCertificates(port),
    ...coreClients(port),
    ...coreGroups(port),
    ...corePlugins(port),
    ...coreStatus(port),
    retention: coreRetention(port),
    notices: coreNotices(port),
    close: () => port.connections.close(),
  };
}
