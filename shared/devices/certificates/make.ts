// Makes a certificate: the core signs a key of ours, which is stored if keys are kept and recorded
// in our database. A recorded certificate is complete; an unrecorded one has no key and opens
// nothing.

import { AppError } from '@holdfast/kit/app-error';
import type { ClientKeys, CoreEnrollment, KeptKey } from '../../core/devices/port.ts';
import type { Core, CoreCertificate } from '../../core/port.ts';
import type { Account } from '../../identity/port.ts';
import { enrollAccount, type OneOffDeps } from '../enroll-account.ts';
import type { CertificateStore, MadeCertificate } from '../port.ts';

export interface MakeCertificateDeps extends OneOffDeps {
  coreEnrollment: Pick<CoreEnrollment, 'enroll'>;
  clientKeys: Pick<ClientKeys, 'keep' | 'remove'>;
  certificateStore: Pick<CertificateStore, 'remember' | 'wantRevoked'>;
}

export interface CertificateOrder {
  /** Of the certificate; empty for the only one of a service account. */
  name: string;
  clientUid: string;
  /** False: the key is handed out once, and kept nowhere. */
  keep: boolean;
}

export interface FreshCertificate {
  made: MadeCertificate;
  key: KeptKey;
}

/** Without audit and without a lock: those are the caller's. Errors as of the ports. */
export async function makeCertificate(
  deps: MakeCertificateDeps,
  account: Pick<Account, 'id' | 'username'>,
  { name, clientUid, keep }: CertificateOrder,
): Promise<FreshCertificate> {
  const { hash, serial, issuedAt, expiresAt, ...key } = await enrollAccount(deps, account, clientUid);
  const made = { hash, username: account.username, name, serial, clientUid, issuedAt, expiresAt };
  try {
    if (keep) await deps.clientKeys.keep(hash, key);
    await deps.certificateStore.remember(made);
  } catch (error) {
    await abandonCertificate(deps, made);
    throw error;
  }
  return { made, key };
}

/** As it will be shown from now on; when the core does not say, as it was made. */
export async function recordedCertificate(
  { core }: { core: Pick<Core, 'certificate'> },
  made: MadeCertificate,
): Promise<Omit<CoreCertificate, 'pem'>> {
  try {
    return (await core.certificate(made.hash)) ?? { ...made, revokedAt: null };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { ...made, revokedAt: null };
  }
}

/**
 * It is signed, and must not be anybody's. False when that could not be noted: then its key stays,
 * because it may be in the book, and whoever finishes what was begun looks.
 */
export async function abandonCertificate(
  { clientKeys, certificateStore, now }: Pick<MakeCertificateDeps, 'clientKeys' | 'certificateStore' | 'now'>,
  made: MadeCertificate,
): Promise<boolean> {
  try {
    await certificateStore.wantRevoked([made], now().toISOString());
    await clientKeys.remove(made.hash);
    return true;
  } catch {
    return false;
  }
}
