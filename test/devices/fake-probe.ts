// What the probe needs of the world: its account with its group, and a certificate whose key is kept.

import { randomUUID } from 'node:crypto';
import type { Directory } from '@holdfast/kit/directory';
import { PROBE_ACCOUNT, PROBE_GROUP } from '@holdfast/kit/names';
import type { CertificateStore } from '../../shared/devices/port.ts';
import type { FakeCore } from '../core/fake-core.ts';
import type { FakeIdentity } from '../identity/fake-identity.ts';
import type { FakeDirectory } from '../sign-in/fake-directory.ts';

export interface ProbeWorld {
  core: FakeCore;
  provider: FakeIdentity;
  directory: FakeDirectory;
  certificateStore: CertificateStore;
}

/** Everything is there when it returns: the doubles wait for nobody. Resolves with the hash of the certificate. */
export async function addProbe({ core, provider, directory, certificateStore }: ProbeWorld): Promise<string> {
  void provider.accounts.create({ username: PROBE_ACCOUNT, name: 'The probe', kind: 'service' });
  directory.addGroup(PROBE_GROUP);
  directory.addPerson(PROBE_ACCOUNT, randomUUID()).groups.push(PROBE_GROUP);
  return addProbeCertificate({ core, certificateStore });
}

export async function addProbeCertificate({
  core,
  certificateStore,
}: Pick<ProbeWorld, 'core' | 'certificateStore'>): Promise<string> {
  const { hash, pem, serial, clientUid, issuedAt, expiresAt } = core.enrolledByDevice(PROBE_ACCOUNT, PROBE_ACCOUNT);
  void core.clientKeys.keep(hash, { keyPem: 'key', certificatePem: pem, chainPem: [] });
  void certificateStore.remember({ hash, username: PROBE_ACCOUNT, name: '', serial, clientUid, issuedAt, expiresAt });
  return hash;
}

/** A directory that takes the provider's app passwords on the core base, as the real ones do. */
export function signInByProvider(of: Pick<ProbeWorld, 'provider' | 'directory'>): Directory['signIn'] {
  return async (base, username, password) =>
    base === 'core' && of.provider.accepts(username, password)
      ? of.directory.find(username)
      : of.directory.signIn(base, username, password);
}
