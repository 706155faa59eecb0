import { certificateBookContract, enrollmentTokensContract } from './certificate-book-contract.ts';
import { fakeCertificateBook, fakeEnrollmentTokens } from './fake-certificate-book.ts';

certificateBookContract('in memory', fakeCertificateBook);
enrollmentTokensContract('in memory', fakeEnrollmentTokens);
