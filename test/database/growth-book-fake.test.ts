import { fakeGrowth } from './fake-growth.ts';
import { growthBookContract } from './growth-book-contract.ts';

growthBookContract('in memory', () => fakeGrowth().growthBook);
