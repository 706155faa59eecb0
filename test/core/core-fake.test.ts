// The core in memory, held to what every core does.

import { coreContract } from './core-contract.ts';
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
