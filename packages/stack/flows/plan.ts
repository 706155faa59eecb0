// What an embedded start with --flows has decided about the flow engine.

import { join } from 'node:path';
import { CORE_DATABASE, CORE_FLOWS } from '../database/roles.ts';
import type { Layout, Ports } from '../process/layout.ts';
import { flowsCertificateFiles } from './certificate.ts';
import { FLOWS_PLACE, FLOWS_PROGRAM } from './install.ts';
import type { FlowsPlan } from './process.ts';

/** Its user in the embedded stack. */
export const FLOWS_USER = 'admin';

export interface FlowsPasswords {
  database: string;
  signIn: string;
  credentialKey: string;
}

export function flowsPlan(home: string, layout: Layout, ports: Ports, passwords: FlowsPasswords): FlowsPlan {
  const certificate = join(layout.flows, 'certificate');
  const files = flowsCertificateFiles(certificate);
  return {
    program: join(home, FLOWS_PROGRAM),
    settings: join(home, FLOWS_PLACE, 'settings.js'),
    url: `http://127.0.0.1:${ports.flows}/`,
    environment: {
      FLOWS_ADDRESS: '127.0.0.1',
      FLOWS_PORT: String(ports.flows),
      FLOWS_DIR: layout.flows,
      COT_HOST: '127.0.0.1',
      COT_PORT: String(ports.streaming),
      COT_SERVER_NAME: 'localhost',
      COT_CERTIFICATE: files.bundle,
      COT_CA: files.ca,
      PGHOST: '127.0.0.1',
      PGPORT: String(ports.database),
      PGDATABASE: CORE_DATABASE,
      PGUSER: CORE_FLOWS,
      PGPASSWORD: passwords.database,
    },
    password: passwords.signIn,
    credentialKey: passwords.credentialKey,
    certificate,
  };
}
