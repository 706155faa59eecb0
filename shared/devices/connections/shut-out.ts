// Throws a connected device out for good: its certificate is revoked, then its connection is ended. A core names no certificate
// per connection: it is the one that was enrolled under the uid of the device, else the only one that its user has.

import { AppError } from '@holdfast/kit/app-error';
import { isSameUser } from '@holdfast/kit/names';
import type { Audit } from '../../audit/port.ts';
import type { Core, CoreCertificate } from '../../core/port.ts';
import type { PeopleContext } from '../accounts.ts';
import type { CertificateBook, Revocation } from '../port.ts';
import { revokeCertificate } from '../revocation/revoke.ts';
import { hasEnded } from '../rules.ts';
import { connectedClient, type ConnectedClient, disconnectClient } from './clients.ts';

export interface ShutOutContext extends PeopleContext {
  deps: PeopleContext['deps'] & {
    core: Pick<Core, 'clients' | 'disconnect' | 'certificates'>;
    certificateBook: Pick<CertificateBook, 'revocations'>;
    audit: Pick<Audit, 'intend' | 'conclude'>;
  };
}

export interface ShutOut {
  client: ConnectedClient;
  /** Of its certificates; none: nobody can tell which one it has come with, and nothing was done. */
  revocations: Revocation[];
}

/** `not_found` when it is not connected any more; what cannot be ended at once is ended by the proof of the revocation. */
export async function shutOutDevice(context: ShutOutContext, uid: string): Promise<ShutOut> {
  const { deps, actor } = context;
  const client = await connectedClient(deps, uid);
  const revocations: Revocation[] = [];
  for (const certificate of await certificatesOfDevice(context, client))
    revocations.push(await revokeCertificate(context, certificate));
  if (revocations.length > 0) await disconnectClient(deps, actor, client.connection).catch(leftToTheProof);
  return { client, revocations };
}

async function certificatesOfDevice(
  { deps }: ShutOutContext,
  { uid, username }: ConnectedClient,
): Promise<CoreCertificate[]> {
  const inForce = (await deps.core.certificates(username)).filter(
    (each) => isSameUser(each.username, username) && each.revokedAt === null && !hasEnded(each, deps.now()),
  );
  const own = inForce.filter(({ clientUid }) => clientUid === uid);
  if (own.length > 0) return own;
  return inForce.length === 1 ? inForce : [];
}

/** Rule `leftToTheProof`: the core ends the connection by itself as a rule, and a job looks whether it has. */
function leftToTheProof(error: unknown): void {
  if (!(error instanceof AppError)) throw error;
}
