// What every Identity must do with groups.

import { describe, expect, it } from 'vitest';
import type { GroupName } from '../../shared/identity/port.ts';
import { type Bench, NO_ACCOUNT, NO_GROUP, unique } from './identity-bench-contract.ts';

export function identityGroupsContract({ identity, prefix, account, forgetGroup }: Bench): void {
  const groups = () => identity().groups;
  const create = async (name = `${prefix}-${unique()}`): Promise<GroupName> => {
    const made = await groups().create(name);
    forgetGroup(made.id);
    return made;
  };

  describe('groups', () => {
    it('are made empty, and found by id and by name', async () => {
      const made = await create();
      const group = { ...made, members: [] };
      expect(await groups().get(made.id)).toEqual(group);
      expect(await groups().named(made.name)).toEqual(group);
      expect(await groups().list(made.name)).toEqual([made]);
    });

    it('are found by name without regard to case, and only by the whole name', async () => {
      const made = await create(`${prefix}-Blue-${unique()}`);
      expect((await groups().named(made.name.toUpperCase()))?.id).toBe(made.id);
      expect(await groups().named(made.name.slice(0, -1))).toBeUndefined();
      expect(await groups().named('')).toBeUndefined();
    });

    it('have names that are taken in any case', async () => {
      const { name } = await create(`${prefix}-Red-${unique()}`);
      await expect(create(name)).rejects.toMatchObject({ code: 'conflict' });
      await expect(create(name.toLowerCase())).rejects.toMatchObject({ code: 'conflict' });
      expect(await groups().list(name)).toHaveLength(1);
    });

    it('have names', async () => {
      const refused = { code: 'invalid', fields: [{ path: 'name', message: expect.stringMatching(/./) }] };
      await expect(create('')).rejects.toMatchObject(refused);
    });

    it('keep and find names with signs in them', async () => {
      const made = await create(`${prefix}-${unique()} a,b/c?d=ü&e%`);
      expect(await groups().named(made.name)).toEqual({ ...made, members: [] });
      const { id } = await account();
      await groups().addMember(made.id, id);
      expect((await identity().accounts.list({ page: 1, pageSize: 10, group: made.name })).count).toBe(1);
    });

    it('are listed by name, those that contain a word in any case', async () => {
      const word = `G${unique()}`;
      const names = ['c', 'a', 'b'].map((each) => `${prefix}-${word}-${each}`);
      for (const name of names) await create(name);
      expect((await groups().list(word.toLowerCase())).map(({ name }) => name)).toEqual(names.toSorted());
      expect((await groups().list()).map(({ name }) => name)).toEqual(expect.arrayContaining(names));
      expect(await groups().list(`${word}-nothing`)).toEqual([]);
    });

    it('have members, who know their groups', async () => {
      const group = await create();
      const [one, two] = [await account(), await account({ kind: 'service' })];
      await groups().addMember(group.id, one.id);
      await groups().addMember(group.id, two.id);
      await groups().addMember(group.id, one.id);
      const members = (await groups().get(group.id))?.members.toSorted((a, b) => a.id - b.id);
      expect(members).toEqual([one, two].map(({ id, username }) => ({ id, username })));
      expect((await groups().named(group.name))?.members).toHaveLength(2);
      expect((await identity().accounts.get(one.id))?.groups).toEqual([group]);
      await groups().removeMember(group.id, one.id);
      await groups().removeMember(group.id, one.id);
      expect((await groups().get(group.id))?.members).toEqual([{ id: two.id, username: two.username }]);
      expect((await identity().accounts.get(one.id))?.groups).toEqual([]);
    });

    it('find their members, by exactly their name', async () => {
      const group = await create(`${prefix}-Team-${unique()}`);
      const made = await account();
      await groups().addMember(group.id, made.id);
      const listed = (name: string) => identity().accounts.list({ page: 1, pageSize: 10, group: name });
      expect((await listed(group.name)).results).toEqual([await identity().accounts.get(made.id)]);
      expect(await listed(`${group.name}-no-such`)).toEqual({ results: [], count: 0 });
    });

    it('keep their members through changes of an account', async () => {
      const group = await create();
      const { id } = await account();
      await groups().addMember(group.id, id);
      await identity().accounts.change(id, { isActive: false });
      const after = await identity().accounts.changeAttributes(id, { app_note: 'x' });
      expect(after.groups).toEqual([group]);
    });

    it('say when a group or an account is not there', async () => {
      const group = await create();
      const { id } = await account();
      const missing = { code: 'not_found' };
      await expect(groups().addMember(NO_GROUP, id)).rejects.toMatchObject(missing);
      await expect(groups().addMember('..', id)).rejects.toMatchObject(missing);
      await expect(groups().addMember(group.id, NO_ACCOUNT)).rejects.toMatchObject(missing);
      await expect(groups().removeMember(NO_GROUP, id)).rejects.toMatchObject(missing);
      await expect(groups().removeMember(group.id, NO_ACCOUNT)).rejects.toMatchObject(missing);
      for (const none of [NO_GROUP, '', '..', 'a/b']) expect(await groups().get(none)).toBeUndefined();
    });

    it('are deleted with their memberships, and not missed when they are gone', async () => {
      const group = await create();
      const { id } = await account();
      await groups().addMember(group.id, id);
      await groups().delete(group.id);
      await groups().delete(group.id);
      for (const none of [NO_GROUP, '', '..']) await groups().delete(none);
      expect(await groups().get(group.id)).toBeUndefined();
      expect(await groups().named(group.name)).toBeUndefined();
      expect((await identity().accounts.get(id))?.groups).toEqual([]);
    });

    it('lose a member who is deleted', async () => {
      const group = await create();
      const { id } = await account();
      await groups().addMember(group.id, id);
      await identity().accounts.delete(id);
      expect((await groups().get(group.id))?.members).toEqual([]);
    });
  });
}
