// The groups of a person on the stream: from the directory, with places, without those switched
// off.

import { describe, expect, it } from 'vitest';
import { fakeDirectory } from '../../../test/sign-in/fake-directory.ts';
import { streamGroups } from '../core-stream.ts';
import { membershipsOf, PeopleGroups } from '../groups/own-groups.ts';
import type { KnownGroup } from '../model/parts.ts';
import type { GroupState } from '../store/groups.ts';
import { clientCertificate } from './fake-core-admin.ts';

function world() {
  const directory = fakeDirectory();
  const ada = directory.addPerson('ada', 'a password of hers');
  const known: KnownGroup[] = [];
  const requests: string[][] = [];
  const off: GroupState[] = [];
  const groups = streamGroups({
    people: new PeopleGroups({ directory, memberships: membershipsOf('core_'), now: () => new Date() }),
    groups: {
      list: async () => known,
      async ensure(names) {
        requests.push([...names]);
        for (const name of names)
          if (!known.some((group) => group.name === name))
            known.push({ name, bitpos: known.length + 2, created: new Date(), type: 'LDAP' });
        return known.filter(({ name }) => names.includes(name));
      },
    },
    activeGroups: { of: async () => off, set: async () => undefined },
  });
  function putInto(...names: string[]): void {
    for (const name of names) directory.groups.set(name.toLowerCase(), name);
    ada.groups = names;
    groups.forget(['ada']);
  }
  return { directory, ada, groups, putInto, off, asked: requests };
}

const certificate = clientCertificate('ada');

describe('the groups of a person', () => {
  it('have places, and directions by their names', async () => {
    const { groups, putInto } = world();
    putInto('core_Ops', 'core_Med_READ');
    expect(await groups.of(certificate)).toEqual([
      { name: 'Ops', direction: 'IN', place: 2 },
      { name: 'Ops', direction: 'OUT', place: 2 },
      { name: 'Med', direction: 'OUT', place: 3 },
    ]);
  });

  it('are none for somebody in none, and for somebody whom the directory does not know', async () => {
    const { groups, putInto } = world();
    putInto();
    expect(await groups.of(certificate)).toEqual([]);
    expect(await groups.of(clientCertificate('svc_api'))).toEqual([]);
  });

  it('are closed for an account that is not active', async () => {
    const { groups, ada, putInto } = world();
    putInto('core_Ops');
    ada.active = false;
    groups.forget(['ada']);
    expect(await groups.of(certificate)).toBe('closed');
  });

  it('leave out what was switched off, for certificates that can switch', async () => {
    const { groups, putInto, off } = world();
    putInto('core_Ops');
    off.push({ name: 'Ops', direction: 'IN', enabled: false });
    expect(await groups.of(certificate)).toEqual([{ name: 'Ops', direction: 'OUT', place: 2 }]);
    expect(await groups.of(clientCertificate('ada', { channels: false }))).toHaveLength(2);
  });

  it('cannot be said while the directory is away', async () => {
    const { groups, directory } = world();
    directory.mood = 'down';
    await expect(groups.of(certificate)).rejects.toThrow('The directory does not answer');
  });

  it('ask the database for places that were never seen, and no more', async () => {
    const { groups, putInto, asked: requests } = world();
    putInto('core_Ops');
    await groups.of(certificate);
    await groups.of(certificate);
    putInto('core_Ops', 'core_Med');
    await groups.of(certificate);
    expect(requests).toHaveLength(2);
  });
});
