// Everything that a start has decided before it touches anything.

import type { ServerCertificateFiles } from '@holdfast/pki/server-certificate';
import type { DatabaseTuning } from '../../shared/settings/tuning.ts';
import type { DatabasePasswords } from './database/roles.ts';
import type { FlowsPlan } from './flows/process.ts';
import type { Layout, Ports } from './process/layout.ts';

export interface StackPlan {
  layout: Layout;
  ports: Ports;
  /** The address of --listen. */
  listen: string | undefined;
  /** Addresses on which the API and the core listen. */
  addresses: string[];
  /** Where this machine reaches the API. */
  apiUrl: string;
  portalUrl: string;
  /** Names and addresses in the server certificate. */
  serverNames: string[];
  tuning: DatabaseTuning;
  databasePasswords: DatabasePasswords;
  /** The whole content of secrets.json when it has to be written. */
  secretsToKeep: Record<string, string> | undefined;
  /** The text of secrets.json that this plan was made from; undefined when there was none. */
  secretsRead: string | undefined;
  /** The members of stack.json that do not change while the stack runs. */
  stackFile: Record<string, unknown>;
  guardScript: string;
  /** Directory of the PostgreSQL programs. */
  postgresBinaries: string;
  identity: {
    /** Of its HTTP API. */
    url: string;
    program: string;
    environment: Record<string, string>;
  };
  core: {
    program: string;
    environment: Record<string, string>;
    /** The certificate by which management reaches the admin API; the core makes it. */
    apiCertificate: { file: string; password: string };
  };
  /** With --flows. */
  flows?: FlowsPlan;
  managementProgram: string;
  managementEnvironment(certificates: ServerCertificateFiles): Record<string, string>;
}
