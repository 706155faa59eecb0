import { fakeSignIns } from './fake-sign-ins.ts';
import { signInsContract } from './sign-ins-contract.ts';

signInsContract('in memory', () => {
  const signIns = fakeSignIns();
  return { signIns, endAllOf: async (username) => signIns.endAllOf(username) };
});
