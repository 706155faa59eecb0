import { fakeGrowth } from './fake-growth.ts';
import { growthHistoryContract } from './growth-history-contract.ts';

growthHistoryContract('in memory', () => fakeGrowth().growthHistory);
