// Describes the plan of a start, and writes its files secrets.json and stack.json.

import { existsSync, readFileSync } from 'node:fs';
import type { BackupPlan } from '@holdfast/backup/handover';
import { StackError } from '@holdfast/kit/app-error';
import { writeFileAtomically } from '@holdfast/kit/files';
import type { ServerCertificateFiles } from '@holdfast/pki/server-certificate';
import type { DatabaseTuning } from '../../shared/settings/tuning.ts';
import type { ClusterPlan } from './cluster.ts';
import type { DatabasePasswords } from './database/roles.ts';
import type { FlowsPlan } from './flows/process.ts';
import type { Layout, Ports } from './process/layout.ts';

/** What a start was given, in stack.json. */
export interface StartedWith {
  arguments: string[];
  /** Names of settings from the environment. */
  environment: string[];
}

export interface StackPlan {
  layout: Layout;
  ports: Ports;
  /** The address of --listen. */
  listen: string | undefined;
  /** Addresses on which the API and the core listen. */
  addresses: string[];
  /** URL of the API on this machine. */
  apiUrl: string;
  portalUrl: string;
  /** Names and addresses in the server certificate. */
  serverNames: string[];
  tuning: DatabaseTuning;
  databasePasswords: DatabasePasswords;
  /** The new content of secrets.json; undefined if it needn't be written. */
  secretsToKeep: Record<string, string> | undefined;
  /** The text of secrets.json that this plan is based on; undefined if there was no file. */
  secretsRead: string | undefined;
  /** The members of stack.json that stay the same while the stack runs. */
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
    /** The client certificate of management for the admin API. The core creates it. */
    apiCertificate: { file: string; password: string };
  };
  /** Only with --cluster. */
  cluster?: ClusterPlan;
  /** Only with --flows. */
  flows?: FlowsPlan;
  /** The backup service, if BACKUP_TARGET is set. */
  backup?: BackupPlan;
  /** A throw-away instance: database, identity provider and core alone. */
  isScratch?: boolean;
  managementProgram: string;
  managementEnvironment(certificates: ServerCertificateFiles): Record<string, string>;
}

/**
 * Writes secrets.json. Throws a StackError if another start has written it since this plan was
 * made.
 */
export function keepSecrets({ layout, secretsToKeep, secretsRead }: StackPlan): void {
  if (secretsToKeep === undefined) return;
  const now = existsSync(layout.secrets) ? readFileSync(layout.secrets, 'utf8') : undefined;
  if (now !== secretsRead) throw new StackError(`Another start has just written ${layout.secrets}.`, 'start again');
  writeFileAtomically(layout.secrets, `${JSON.stringify(secretsToKeep, null, 2)}\n`);
}

export function writeStackFile(
  plan: StackPlan,
  certificates: ServerCertificateFiles,
  pids: { role: string; pid: number }[],
): void {
  const { apiCertificate } = plan.core;
  const made = existsSync(apiCertificate.file) ? { api_certificate: apiCertificate } : {};
  const content = {
    ...plan.stackFile,
    ...currentPassword(plan.layout, pids),
    ca_certificate: certificates.ca,
    ...made,
    pids,
  };
  writeFileAtomically(plan.layout.stack, `${JSON.stringify(content, null, 2)}\n`);
}

/** Keeps the webadmin password that reset-password.sh wrote into stack.json during this run. */
function currentPassword(layout: Layout, pids: { role: string; pid: number }[]): { webadmin?: unknown } {
  try {
    const written = JSON.parse(readFileSync(layout.stack, 'utf8')) as { webadmin?: unknown; pids: typeof pids };
    const run = (list: typeof pids): number | undefined => list.find(({ role }) => role === 'supervisor')?.pid;
    return run(written.pids) === run(pids) ? { webadmin: written.webadmin } : {};
  } catch {
    return {};
  }
}
