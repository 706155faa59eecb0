// Generates passwords that are not set, and keeps them in DIR/secrets.json for later starts.

import { randomInt } from 'node:crypto';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { codeOf, explainFileError, StackError } from '@holdfast/kit/app-error';
import type { Layout } from './process/layout.ts';

export const GENERATED_NAMES = [
  'CORE_DB_PASSWORD',
  'APP_DB_PASSWORD',
  'LDAP_BIND_PASSWORD',
  'CORE_WEBADMIN_PASSWORD',
  'AUDIT_KEY',
  'SESSION_KEY',
  'CORE_READER_PASSWORD',
  'IDENTITY_DB_PASSWORD',
  'IDENTITY_SECRET_KEY',
  'IDENTITY_TOKEN',
  'FLOWS_DB_PASSWORD',
  'FLOWS_CREDENTIAL_KEY',
  'FLOWS_PASSWORD',
  'BACKUP_TOKEN',
] as const;

export type GeneratedName = (typeof GENERATED_NAMES)[number];

export interface KeptSecrets {
  values: Record<string, string>;
  /** The text of the file; undefined if it doesn't exist. */
  readFrom: string | undefined;
  /** True if a value was generated now, so the file must be written. */
  changed: boolean;
}

const LETTERS = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789';
const LENGTH = 32;

/** Reads the secrets in `path` and generates the missing ones of `wanted`. Writes nothing. */
export function keptSecrets(path: string, wanted: readonly GeneratedName[]): KeptSecrets {
  const { values, readFrom } = readSecrets(path);
  const missing = wanted.filter((name) => (values[name] ?? '') === '');
  for (const name of missing) values[name] = generatePassword();
  return { values, readFrom, changed: missing.length > 0 };
}

/** 32 characters that are hard to confuse, about 185 bits. */
export function generatePassword(): string {
  return Array.from({ length: LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join('');
}

function readSecrets(path: string): Omit<KeptSecrets, 'changed'> {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return { values: {}, readFrom: undefined };
    throw explainFileError(error, path);
  }
  const parsed = parseObject(text);
  if (parsed === undefined || !Object.values(parsed).every((value) => typeof value === 'string')) {
    throw new StackError(
      `Couldn't read the passwords of this stack: ${path} is not a JSON object of strings.`,
      'restore it from a backup, or delete it to generate new passwords (the data is kept)',
    );
  }
  return { values: parsed as Record<string, string>, readFrom: text };
}

/** Undefined if the text is not a JSON object. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/** Secrets that can be rotated. */
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
  'BACKUP_TOKEN',
  'NATS_PASSWORD',
] as const;

/** Why other secrets can't be rotated. */
export const NEVER_ROTATED: Readonly<Record<string, string>> = {
  AUDIT_KEY: 'a new key would invalidate every record of the audit log',
  IDENTITY_SECRET_KEY: "a new key would invalidate the identity provider's tokens",
  FLOWS_CREDENTIAL_KEY: 'a new key would lose the credentials in flows',
  CORE_WEBADMIN_PASSWORD: 'change it with ./scripts/reset-password.sh',
  IDENTITY_BOOTSTRAP_TOKEN: 'the embedded identity provider does not use it',
  IDENTITY_ADMIN_PASSWORD: 'authentik uses it only at its first start',
};

/**
 * File name part of the old secrets, kept next to secrets.json until a start succeeds with the new
 * ones.
 */
export const BEFORE_ROTATION = '.before-rotation-';

/** Deletes the old secrets once the stack works with the new ones. */
export function endRotations(layout: Layout, say: (text: string) => void): void {
  const head = `${basename(layout.secrets)}${BEFORE_ROTATION}`;
  for (const name of readdirSync(layout.root).filter((each) => each.startsWith(head))) {
    rmSync(join(layout.root, name), { force: true });
    say(`Secret rotation is complete. Deleted ${name}.\n`);
  }
}
