// Passwords that nobody has set: generated once, kept in DIR/secrets.json, the same at every later start.

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
] as const;

export type GeneratedName = (typeof GENERATED_NAMES)[number];

export interface KeptSecrets {
  values: Record<string, string>;
  /** The text of the file; undefined when there is none. */
  readFrom: string | undefined;
  /** True when a value was generated now and the file has to be written. */
  changed: boolean;
}

const LETTERS = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789';
const LENGTH = 32;

/** The kept secrets of `path`, with fresh ones for the `wanted` names that it lacks. Writes nothing. */
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
      `${path} is not a JSON object of texts; it holds the passwords of this stack.`,
      'put it back from a backup, or remove it to have new passwords generated (the data stays)',
    );
  }
  return { values: parsed as Record<string, string>, readFrom: text };
}

/** Undefined for what is no JSON object. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/** Secrets of a stack that may be given other values. */
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

/** Of secrets that are not rotated, why: what they have sealed or chained would be lost. */
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
