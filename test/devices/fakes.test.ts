// The doubles of what devices need, held to the contracts of their ports.

import { fakeCore } from '../core/fake-core.ts';
import { certificateBookContract, enrollmentTokensContract } from './certificate-book-contract.ts';
import { clientKeysContract } from './client-keys-contract.ts';
import { fakeCertificateBook, fakeEnrollmentTokens } from './fake-certificate-book.ts';

certificateBookContract('in memory', fakeCertificateBook);
enrollmentTokensContract('in memory', fakeEnrollmentTokens);
clientKeysContract('the core in memory', () => fakeCore({ now: () => new Date(), accepts: () => true }).clientKeys);
