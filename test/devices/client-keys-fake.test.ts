import { fakeCore } from '../core/fake-core.ts';
import { clientKeysContract } from './client-keys-contract.ts';

clientKeysContract('the core in memory', () => fakeCore({ now: () => new Date(), accepts: () => true }).clientKeys);
