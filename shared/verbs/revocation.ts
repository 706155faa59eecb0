// What everything shares that has to do with revoking: what it needs, and the one way in which a certificate is noted and
// then revoked at the core.

import { certificateFile, isSameUser } from '../domain/certificate-names.ts';
import { API_ACCOUNT } from '../domain/names.ts';
import type { Actor, Audit } from '../ports/audit.ts';
import type { CertificateBook, MadeCertificate, Revocation } from '../ports/certificate-book.ts';
import type { ClientKeys } from '../ports/client-keys.ts';
import type { Core, CoreCertificate } from '../ports/core.ts';
import type { CoreAuthority } from '../ports/core-authority.ts';
import type { CoreDevices } from '../ports/core-devices.ts';
import type { Exclusive } from '../ports/exclusive.ts';
import type { HealthMemory } from '../ports/job.ts';
import type { Attributes } from '../ports/identity.ts';
import type { Log } from '../ports/log.ts';

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
