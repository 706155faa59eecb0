// Which secrets of a stack may be given other values, and which never: what they have sealed or chained would be lost.

import { readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Layout } from './process/layout.ts';

export const ROTATED = [
  'CORE_DB_PASSWORD',
  'CORE_READER_PASSWORD',
  'APP_DB_PASSWORD',
  'IDENTITY_DB_PASSWORD',
  'LDAP_BIND_PASSWORD',
  'IDENTITY_TOKEN',
  'SESSION_KEY',
  'METRICS_TOKEN',
  'FLOWS_DB_PASSWORD',
  'FLOWS_TOKEN',
  'FLOWS_PASSWORD',
  'VIDEO_PUBLISH_PASSWORD',
  'VIDEO_READ_PASSWORD',
] as const;

/** Of secrets that are not rotated: why. */
export const NEVER_ROTATED: Readonly<Record<string, string>> = {
  AUDIT_KEY: 'with another one no record of the audit log is valid',
  IDENTITY_SECRET_KEY: 'the tokens of the identity provider would be lost',
  FLOWS_CREDENTIAL_KEY: 'the credentials in flows would be lost',
  CORE_WEBADMIN_PASSWORD: './scripts/reset-password.sh changes it',
  IDENTITY_BOOTSTRAP_TOKEN: 'the embedded identity provider has none',
  IDENTITY_ADMIN_PASSWORD: 'it counts at the first start of authentik alone',
};

/** Beside secrets.json, until a start has worked with the new ones. */
export const BEFORE_ROTATION = '.before-rotation-';

/** The stack works with the new ones: what is kept of the old ones goes. */
export function endRotations(layout: Layout, say: (text: string) => void): void {
  const head = `${basename(layout.secrets)}${BEFORE_ROTATION}`;
  for (const name of readdirSync(layout.root).filter((each) => each.startsWith(head))) {
    rmSync(join(layout.root, name), { force: true });
    say(`The rotation of secrets is complete; ${name} was deleted.\n`);
  }
}
