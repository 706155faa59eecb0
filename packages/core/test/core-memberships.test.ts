// From groups of the directory to groups with directions, and how long they are remembered.

import { describe, expect, it } from 'vitest';
import { fakeDirectory } from '../../../test/sign-in/fake-directory.ts';
import { membershipsOf, PeopleGroups } from '../groups/own-groups.ts';

function read(groups: string[] | undefined, never: string[] = []): string[] {
  const found = membershipsOf('core_', never)(groups && { groups });
  return found.map(({ name, direction }) => `${direction} ${name}`).toSorted();
}

describe('memberships', () => {
  it.each<[string, string[] | undefined, string[]]>([
    ['a plain group is both ways', ['core_Ops'], ['IN Ops', 'OUT Ops']],
    ['_READ receives only', ['core_Ops_READ'], ['OUT Ops']],
    ['_WRITE sends only', ['core_Ops_WRITE'], ['IN Ops']],
    ['both suffixes together are both ways', ['core_Ops_READ', 'core_Ops_WRITE'], ['IN Ops', 'OUT Ops']],
    ['the same way twice counts once', ['core_Ops', 'core_Ops_READ'], ['IN Ops', 'OUT Ops']],
    ['the prefix counts in any case', ['CORE_Ops'], ['IN Ops', 'OUT Ops']],
    ['a suffix counts as it is written', ['core_Ops_read'], ['IN Ops_read', 'OUT Ops_read']],
    ['the group of admins is none', ['core_ROLE_ADMIN', 'Core_Role_Admin'], []],
    ['groups without the prefix are none', ['stack_admin', 'Ops', 'xcore_Ops'], []],
    ['nothing is left of a name', ['core_', 'core__READ'], []],
    ['a name that no database keeps is none', ['core_a\0b'], []],
    ['nobody', undefined, []],
    ['nothing', [], []],
  ])('%s', (_, groups, expected) => expect(read(groups)).toEqual(expected));

  it('leaves out what gives a role under another name', () => {
    expect(read(['core_staff', 'core_Ops_READ'], ['CORE_STAFF'])).toEqual(['OUT Ops']);
  });
});

describe('groups of people', () => {
  function setUp() {
    let nowMs = 1_000_000;
    const directory = fakeDirectory();
    let requested = 0;
    const counting = { find: (name: string) => (requested++, directory.find(name)) };
    const people = new PeopleGroups({
      directory: counting,
      memberships: membershipsOf('core_'),
      now: () => new Date(nowMs),
    });
    directory.addGroup('core_Ops');
    directory.addPerson('ada', 'x').groups.push('core_Ops');
    return { directory, people, later: (ms: number) => (nowMs += ms), request: () => requested };
  }

  it('asks the directory once in 20 s, whatever the case of the name', async () => {
    const { people, later, request } = setUp();
    await Promise.all([people.of('ada'), people.of('ADA')]);
    later(19_999);
    await people.of('ada');
    expect(request()).toBe(1);
    later(1);
    expect(await people.of('ada')).toHaveLength(2);
    expect(request()).toBe(2);
  });

  it('forgets on demand', async () => {
    const { people, directory } = setUp();
    await people.of('ada');
    directory.people.get('ada')?.groups.pop();
    people.forget(['Ada']);
    expect(await people.of('ada')).toEqual([]);
  });

  it('does not remember that the directory did not know somebody', async () => {
    const { people, directory } = setUp();
    expect(await people.find('ben')).toBeUndefined();
    directory.addPerson('ben', 'x').groups.push('core_Ops');
    expect(await people.of('ben')).toHaveLength(2);
  });

  it('does not remember that the directory was away', async () => {
    const { people, directory } = setUp();
    directory.mood = 'down';
    await expect(people.of('ada')).rejects.toMatchObject({ code: 'unavailable' });
    directory.mood = 'up';
    expect(await people.of('ada')).toHaveLength(2);
  });

  it('tells nobody from somebody without groups, and shows no groups of the inactive', async () => {
    const { people, directory } = setUp();
    expect(await people.find('nobody')).toBeUndefined();
    expect(await people.of('nobody')).toEqual([]);
    directory.addPerson('bob', 'x').active = false;
    directory.people.get('bob')?.groups.push('core_Ops');
    expect(await people.of('bob')).toEqual([]);
  });
});
