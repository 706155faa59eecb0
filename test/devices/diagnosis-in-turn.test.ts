// The diagnosis of an enrollment tries its password at the core: never one that is being taken back at that moment.

import { expect, it, onTestFinished, vi } from 'vitest';
import { diagnoseEnrollment } from '../../shared/devices/enrollment/diagnose.ts';
import { issueEnrollment } from '../../shared/devices/enrollment/issue.ts';
import { enrollmentKey, cancelEnrollment } from '../../shared/devices/enrollment/kept.ts';
import { ACTOR, peopleWorld } from '../people/fake-people.ts';

it('a diagnosis asks the core with no password that is taken back meanwhile, which would count as a wrong one of ours', async () => {
  const world = await peopleWorld({ SERVER_ADDRESS: 'cot.example.org' });
  const { deps } = world;
  const ada = await world.account({ username: 'ada', groups: ['core_Team'] });
  const { key } = await issueEnrollment({ deps, actor: ACTOR }, ada);
  let canceled: Promise<void> | undefined;
  deps.directory.signIn = async () => {
    canceled ??= cancelEnrollment({ deps, actor: ACTOR }, ada);
    // As far as it comes.
    for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    return { dn: 'cn=ada', username: 'ada', groups: ['core_Team'], isActive: true };
  };
  const good: boolean[] = [];
  deps.coreEnrollment.rules = async ({ username, password }) => {
    good.push(deps.identity.accepts(username, password));
    return {};
  };
  await diagnoseEnrollment(deps, ada);
  await canceled;
  expect([good, deps.identity.accepts('ada', key)]).toEqual([[true], false]);
});

it('a diagnosis whose turn does not come says so, within ten seconds, and tries nothing then', async () => {
  const world = await peopleWorld({ SERVER_ADDRESS: 'cot.example.org' });
  const { deps } = world;
  const ada = await world.account({ username: 'ada' });
  await issueEnrollment({ deps, actor: ACTOR }, ada);
  let tried = 0;
  deps.directory.signIn = async () => {
    tried += 1;
    return undefined;
  };
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
  const holding = deps.deviceLock(enrollmentKey(ada.id), () => held);
  const requested = diagnoseEnrollment(deps, ada);
  await vi.advanceTimersByTimeAsync(10_000);
  const { checks } = await requested;
  const messages = checks.filter(({ stage }) => ['bind', 'groups', 'signing'].includes(stage));
  expect(messages).toHaveLength(3);
  for (const check of messages)
    expect(check).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/^Not checked: its turn did not come/),
    });
  letGo();
  await holding;
  await deps.deviceLock(enrollmentKey(ada.id), async () => undefined);
  expect(tried).toBe(0);
});
