import { certificateBookContract, enrollmentTokensContract } from '../contract/certificate-book.ts';
import { fakeCertificateBook, fakeEnrollmentTokens } from '../fakes/certificate-book.ts';

certificateBookContract('in memory', fakeCertificateBook);
enrollmentTokensContract('in memory', fakeEnrollmentTokens);
