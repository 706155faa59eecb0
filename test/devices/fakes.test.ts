// The doubles of what devices need, held to the contracts of their ports.

import { fakeCore } from '../core/fake-core.ts';
import { certificateStoreContract, enrollmentTokensContract } from './certificate-store-contract.ts';
import { clientKeysContract } from './client-keys-contract.ts';
import { fakeCertificateStore, fakeEnrollmentTokens } from './fake-certificate-store.ts';

certificateStoreContract('in memory', fakeCertificateStore);
enrollmentTokensContract('in memory', fakeEnrollmentTokens);
clientKeysContract('the core in memory', () => fakeCore({ now: () => new Date(), accepts: () => true }).clientKeys);
