// The right of the admin API is asked for, and looked for no longer than it may take.

import { expect, it, onTestFinished, vi } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { type AdminRightDeps, giveAdminRight } from '../../shared/people/service-accounts/admin-right.ts';

const CERTIFICATE = { username: 'svc_backup', hash: 'AA', certificatePem: 'a certificate' };

/** Asks with a clock that only `pass` moves. */
function request(roles: AdminRightDeps['coreDevices']['roles']) {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let end: unknown = 'not yet';
  const given: string[] = [];
  void giveAdminRight(
    { adminGrants: { give: async (username) => void given.push(username) }, coreDevices: { roles } },
    CERTIFICATE,
  ).then(
    () => (end = 'given'),
    (error: unknown) => (end = error),
  );
  return {
    given,
    pass: async (ms: number): Promise<unknown> => {
      await vi.advanceTimersByTimeAsync(ms);
      return end;
    },
  };
}
const after = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const notSeen = (why: RegExp) =>
  expect.objectContaining({ code: 'upstream', message: expect.stringMatching(why) as string }) as unknown;

it('is given as soon as the core lets the certificate do what administrators do', async () => {
  let looks = 0;
  const { given, pass } = request(async () => ((looks += 1) < 3 ? ['ROLE_ANONYMOUS'] : ['ROLE_ADMIN']));
  expect(await pass(999)).toBe('not yet');
  expect([await pass(1), looks, given]).toEqual(['given', 3, ['svc_backup']]);
});

it('is not seen within 10 s: says so then, and looks no more', async () => {
  let looks = 0;
  const { pass } = request(async () => {
    looks += 1;
    return undefined;
  });
  expect(await pass(9_000)).toBe('not yet');
  expect(await pass(1_000)).toEqual(notSeen(/svc_backup within 10 s: check the core's log/));
  const before = looks;
  await pass(60_000);
  expect(looks).toBe(before);
});

it('is waited for no longer where every look takes long', async () => {
  let looks = 0;
  const { pass } = request(async () => {
    looks += 1;
    await after(7_000);
    throw new AppError('unavailable', 'The core does not answer.');
  });
  expect(await pass(9_999)).toBe('not yet');
  expect(await pass(1)).toEqual(notSeen(/within 10 s: The core does not answer\.$/));
  await pass(60_000);
  expect(looks).toBe(2);
});

it('is waited for no longer where a look never ends', async () => {
  const { pass } = request(() => new Promise(() => undefined));
  expect(await pass(10_000)).toEqual(notSeen(/within 10 s: the core did not answer\.$/));
});

it('is not waited for when something else than an answer fails', async () => {
  const { pass } = request(async () => {
    throw new TypeError('a fault of ours');
  });
  expect(await pass(0)).toEqual(new TypeError('a fault of ours'));
});
