import { coreDevicesContract } from './core-devices-contract.ts';
import { fakeCore } from './fake-core.ts';

coreDevicesContract('in memory', async () => {
  const theCore = fakeCore({ now: () => new Date(), accepts: () => true });
  return {
    devices: theCore.coreDevices,
    async enrolled(username) {
      const { hash, ...key } = await theCore.coreEnrollment.enroll({ username, password: 'x', clientUid: username });
      await theCore.clientKeys.keep(hash, key);
      return hash;
    },
    revoke: async (hash) => void (await theCore.core.revoke(hash)),
    kill: async () => void (theCore.mood = 'down'),
  };
});
