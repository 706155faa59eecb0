// The core in memory, held to what every core does, and to what devices meet there.

import { coreContract } from './core-contract.ts';
import { coreDevicesContract } from './core-devices-contract.ts';
import { fakeCore } from './fake-core.ts';

const PASSWORD = 'a password for the contract';

coreContract(
  'in memory',
  async () => {
    const fake = fakeCore({ now: () => new Date(), accepts: (_, password) => password === PASSWORD });
    return {
      core: fake.core,
      coreEnrollment: fake.coreEnrollment,
      person: { username: 'john', password: PASSWORD },
      longerName: { username: 'john-doe', password: PASSWORD },
      async connect(_, callsign) {
        const client = fake.online('john', `uid-${callsign}`);
        client.callsign = callsign;
        return { uid: client.uid, leave: () => undefined };
      },
      end: async () => undefined,
    };
  },
  { signs: false, wrongPasswords: true, longerName: true, connects: true },
);

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
