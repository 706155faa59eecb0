import { clientKeysContract } from '../contract/client-keys.ts';
import { fakeCore } from '../fakes/core.ts';

clientKeysContract('the core in memory', () => fakeCore({ now: () => new Date(), accepts: () => true }).clientKeys);
