// What everything shares that has to do with revoking: what it needs, and the one way in which a certificate is noted and
// then revoked at the core.

import type { Log } from '@holdfast/kit/log';
import { API_ACCOUNT } from '@holdfast/kit/names';
import type { Attributes } from '@holdfast/kit/paging';
import type { Actor, Audit } from '../audit/port.ts';
import type { ClientKeys, CoreDevices } from '../core/devices/port.ts';
import type { Core, CoreAuthority, CoreCertificate } from '../core/port.ts';
import type { Exclusive } from '../identity/port.ts';
import type { HealthMemory } from '../jobs/port.ts';
import { certificateFile, isSameUser } from './names.ts';
import type { CertificateBook, MadeCertificate, Revocation } from './port.ts';

export interface RevocationDeps {
  core: Pick<Core, 'certificates' | 'certificate' | 'revoke' | 'clients' | 'disconnect' | 'status'>;
  coreDevices: Pick<CoreDevices, 'connect' | 'roles' | 'close'>;
  coreAuthority: Pick<CoreAuthority, 'revocationList'>;
  clientKeys: Pick<ClientKeys, 'kept' | 'remove'>;
  certificateBook: CertificateBook;
  coreLock: Exclusive;
  audit: Pick<Audit, 'intend' | 'conclude'>;
  health: HealthMemory;
  log: Log;
  now: () => Date;
}

/** Who revokes when nobody waits for it. */
export const BY_ITSELF: Actor = { username: 'prove-revocations', address: '', requestId: '' };

/** How a revocation stands after a look at it. */
export type Judgement = Pick<Revocation, 'state' | 'problem' | 'streams'>;

type Certificate = Omit<MadeCertificate, 'name'>;

/** By which Holdfast itself uses the core: without it nothing could be revoked, nor made good. */
export function isOwnCertificate({ username, clientUid }: Pick<Certificate, 'username' | 'clientUid'>): boolean {
  return isSameUser(username, API_ACCOUNT) && clientUid === API_ACCOUNT;
}

export function hasEnded({ expiresAt }: Pick<Certificate, 'expiresAt'>, now: Date): boolean {
  return Date.parse(expiresAt) <= now.getTime();
}

/** From here on a job sees to it that they are revoked, whatever happens to this process. */
export async function noteAsRevoking(
  { certificateBook, health }: Pick<RevocationDeps, 'certificateBook' | 'health'>,
  certificates: readonly Certificate[],
  wantedAt: string,
): Promise<void> {
  if (certificates.length === 0) return;
  const noted = certificates.map(({ hash, username, serial, clientUid, issuedAt, expiresAt }) => ({
    hash,
    username,
    serial,
    clientUid,
    issuedAt,
    expiresAt,
  }));
  await certificateBook.wantRevoked(noted, wantedAt);
  await health.forget('certificates');
}

/** One revocation at a time. Rejects as the core does. */
export function revokeAtCore(
  { core, coreLock }: Pick<RevocationDeps, 'core' | 'coreLock'>,
  hash: string,
): Promise<CoreCertificate> {
  return coreLock('revocation', () => core.revoke(hash));
}

/** For the audit log. */
export async function revocationDetail(
  { certificateBook }: Pick<RevocationDeps, 'certificateBook'>,
  { hash, serial, username, clientUid }: Pick<Certificate, 'hash' | 'serial' | 'username' | 'clientUid'>,
): Promise<Attributes> {
  const made = (await certificateBook.made([username])).find((each) => each.hash === hash);
  return { hash, serial, file: certificateFile({ hash, username, clientUid }, made) };
}
