import { fakeSignIns } from '../fakes/sign-ins.ts';
import { signInsContract } from '../contract/sign-ins.ts';

signInsContract('in memory', () => {
  const signIns = fakeSignIns();
  return { signIns, endAllOf: async (username) => signIns.endAllOf(username) };
});
