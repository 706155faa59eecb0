import { retentionBookContract } from '../contract/retention-book.ts';
import { fakeRetentionBook } from '../fakes/retention-book.ts';

retentionBookContract('in memory', () => fakeRetentionBook(() => new Date('2026-06-01T00:00:00.000Z')));
