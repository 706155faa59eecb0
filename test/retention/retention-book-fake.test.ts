import { fakeRetentionBook } from './fake-retention-book.ts';
import { retentionBookContract } from './retention-book-contract.ts';

retentionBookContract('in memory', () => fakeRetentionBook(() => new Date('2026-06-01T00:00:00.000Z')));
