import { growthBookContract } from '../contract/growth-book.ts';
import { fakeGrowth } from '../fakes/growth.ts';

growthBookContract('in memory', () => fakeGrowth().growthBook);
