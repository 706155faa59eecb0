// Defines rules of certificates: their names in paths, and which ones are expired or Holdfast's
// own. Only the record of a certificate names its owner.

import { API_ACCOUNT, isSameUser } from '@holdfast/kit/names';
import type { MadeCertificate } from './port.ts';

/**
 * `<username>~<name>.p12`, `svc_<name>.p12`, or `<first 16 hex of the hash>.pem` for one that a
 * device enrolled.
 */
export function certificateFile(
  { hash, username, clientUid }: { hash: string; username: string; clientUid: string },
  made: { username: string; name: string } | undefined,
): string {
  // The core makes this one itself, for us.
  if (username === API_ACCOUNT && clientUid === API_ACCOUNT) return `${API_ACCOUNT}.p12`;
  if (made === undefined) return `${hash.replaceAll(':', '').slice(0, 16).toLowerCase()}.pem`;
  return made.name === '' ? `${made.username}.p12` : `${made.username}~${made.name}.p12`;
}

/**
 * What `{file}` in a path may mean: a whole hash, the start of one, or the names of one that was
 * made here.
 */
export type CertificateReference =
  | { kind: 'hash'; hash: string }
  | { kind: 'start'; hex: string }
  | { kind: 'made'; username: string; name: string };

const HASH = /^[0-9a-f]{2}(?::[0-9a-f]{2}){31}$/i;
const BARE_HASH = /^[0-9a-f]{64}$/i;
const START = /^([0-9a-f]{16})\.pem$/;
const MADE = /^([A-Za-z0-9._-]{1,64})(?:~([A-Za-z0-9._-]{1,64}))?\.p12$/;

/** Undefined for what can be no certificate. */
export function readCertificateReference(text: string): CertificateReference | undefined {
  if (HASH.test(text)) return { kind: 'hash', hash: text.toUpperCase() };
  if (BARE_HASH.test(text)) return { kind: 'hash', hash: (text.toUpperCase().match(/../g) ?? []).join(':') };
  const [, hex] = START.exec(text) ?? [];
  if (hex !== undefined) return { kind: 'start', hex };
  const [, username, name = ''] = MADE.exec(text) ?? [];
  return username === undefined ? undefined : { kind: 'made', username, name };
}

/** By which Holdfast itself uses the core: without it nothing could be revoked, nor made good. */
export function isOwnCertificate({ username, clientUid }: Pick<MadeCertificate, 'username' | 'clientUid'>): boolean {
  return isSameUser(username, API_ACCOUNT) && clientUid === API_ACCOUNT;
}

export function hasEnded({ expiresAt }: Pick<MadeCertificate, 'expiresAt'>, now: Date): boolean {
  return Date.parse(expiresAt) <= now.getTime();
}
