import { fakeRetentionHistory } from './fake-retention-history.ts';
import { retentionHistoryContract } from './retention-history-contract.ts';

retentionHistoryContract('in memory', () => fakeRetentionHistory(() => new Date('2026-06-01T00:00:00.000Z')));
