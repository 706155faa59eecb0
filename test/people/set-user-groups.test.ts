import { expect, it, onTestFinished, vi } from 'vitest';
import { UNGROUPED_GROUP } from '@holdfast/kit/names';
import { setUserGroups } from '../../shared/people/channel-membership.ts';
import { ACTOR, peopleWorld } from './fake-people.ts';

async function adaInRed() {
  const world = await peopleWorld();
  const { id } = await world.account({ username: 'ada', groups: ['core_Red'] });
  await world.deps.identity.groups.create('core_Blue');
  return { ...world, id, set: (groups: string[]) => setUserGroups({ deps: world.deps, actor: ACTOR }, { id, groups }) };
}

it('has the core take new groups at once, and does not ask it where nothing changed', async () => {
  const { deps, set } = await adaInRed();
  await set(['Blue']);
  expect(deps.theCore.regrouped).toEqual(['ada']);
  await set(['core_Blue']);
  expect(deps.theCore.regrouped).toEqual(['ada']);
});

it('succeeds without the core, which takes them by itself a little later', async () => {
  const { deps, set } = await adaInRed();
  deps.theCore.mood = 'down';
  expect((await set(['Blue'])).groups.map(({ name }) => name)).toEqual(['core_Blue']);
  expect(deps.log.events.map(({ event }) => event)).toContain('core.regroup.failed');
});

it('waits a second at most for a core that hangs', async () => {
  const { deps, set } = await adaInRed();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const { promise: requested, resolve: ask } = Promise.withResolvers<void>();
  deps.core.regroup = () => {
    ask();
    return new Promise(() => undefined);
  };
  const setting = set(['Blue']);
  await requested;
  await vi.advanceTimersByTimeAsync(1_000);
  expect((await setting).groups.map(({ name }) => name)).toEqual(['core_Blue']);
  expect(deps.log.events.map(({ event }) => event)).toContain('core.regroup.failed');
});

it('joins the ungrouped group that another process creates at the same moment', async () => {
  const { deps, set } = await adaInRed();
  const { groups } = deps.identity;
  const create = groups.create.bind(groups);
  groups.create = async (name) => {
    await create(name);
    return create(name);
  };
  expect((await set([])).groups.map(({ name }) => name)).toEqual([UNGROUPED_GROUP]);
});
