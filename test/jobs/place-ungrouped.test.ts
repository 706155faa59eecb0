// Every account that needs a group is in one, whoever changed its groups, and whatever happens in between.

import { beforeEach, describe, expect, it } from 'vitest';
import { KIND, PROBE_GROUP, UNGROUPED_GROUP } from '@holdfast/kit/names';
import { run } from '../../jobs/place-ungrouped.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

let world: PeopleWorld;
beforeEach(async () => {
  world = await peopleWorld();
});

const place = (signal = new AbortController().signal) => run(world.deps, world.around.now, signal);
const groupsOf = async (username: string): Promise<string[]> =>
  (await world.named(username)).groups.map(({ name }) => name);

describe('place-ungrouped', () => {
  it('puts people and programs without a channel into the ungrouped group, once', async () => {
    await world.account({ username: 'ada' });
    await world.account({ username: 'bob', groups: ['core_Blue'] });
    await world.account({ username: 'svc_relay', kind: 'service' });
    const { joined } = await place();
    expect(joined).toEqual(expect.arrayContaining(['ada', 'svc_relay']));
    expect(joined).not.toContain('bob');
    expect([await groupsOf('ada'), await groupsOf('bob')]).toEqual([[UNGROUPED_GROUP], ['core_Blue']]);
    expect(await place()).toEqual({ joined: [], left: [] });
  });

  it('takes out whoever got a channel at the provider itself', async () => {
    const { id } = await world.account({ username: 'ada' });
    await place();
    const { id: blue } = await world.deps.identity.groups.create('core_Blue');
    await world.deps.identity.groups.addMember(blue, id);
    expect(await place()).toEqual({ joined: [], left: ['ada'] });
    expect(await groupsOf('ada')).toEqual(['core_Blue']);
  });

  it('leaves alone programs that administer the core, the probe, the directory account and the inactive', async () => {
    await world.account({ username: 'svc_boss', kind: 'service', attributes: { [KIND]: 'admin' } });
    await world.account({ username: 'svc_api', kind: 'service' });
    await world.account({ username: 'adm_ldapservice', kind: 'service' });
    await world.account({ username: 'svc_probe', kind: 'service', groups: [PROBE_GROUP] });
    const { id } = await world.account({ username: 'gone' });
    await world.deps.identity.accounts.change(id, { isActive: false });
    const { joined } = await place();
    for (const username of ['svc_boss', 'svc_api', 'adm_ldapservice', 'svc_probe', 'gone'])
      expect(joined).not.toContain(username);
  });

  it('makes the group again when somebody has deleted it', async () => {
    await world.account({ username: 'ada' });
    await place();
    await world.deps.identity.groups.delete((await world.deps.identity.groups.named(UNGROUPED_GROUP))?.id ?? '');
    expect((await place()).joined).toContain('ada');
  });

  it('ends between two accounts when its time is over', async () => {
    await world.account({ username: 'ada' });
    expect(await place(AbortSignal.abort())).toEqual({ joined: [], left: [] });
  });
});
