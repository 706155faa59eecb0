// Writes what a start keeps in the data directory: the passwords in secrets.json, and how to reach the stack in stack.json.

import { existsSync, readFileSync } from 'node:fs';
import { StackError } from '@holdfast/kit/app-error';
import { writeFileAtomically } from '@holdfast/kit/files';
import type { ServerCertificateFiles } from '@holdfast/pki/server-certificate';
import type { StackPlan } from './plan.ts';
import type { Layout } from './process/layout.ts';

/** Never over secrets that another start has written since this one was planned. */
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
    ...givenSince(plan.layout, pids),
    ca_certificate: certificates.ca,
    ...made,
    pids,
  };
  writeFileAtomically(plan.layout.stack, `${JSON.stringify(content, null, 2)}\n`);
}

/** Of the file of this very run: reset-password.sh writes the new password of webadmin into it. */
function givenSince(layout: Layout, pids: { role: string; pid: number }[]): { webadmin?: unknown } {
  try {
    const written = JSON.parse(readFileSync(layout.stack, 'utf8')) as { webadmin?: unknown; pids: typeof pids };
    const run = (list: typeof pids): number | undefined => list.find(({ role }) => role === 'supervisor')?.pid;
    return run(written.pids) === run(pids) ? { webadmin: written.webadmin } : {};
  } catch {
    return {};
  }
}
