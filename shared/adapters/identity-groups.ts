// Groups at the identity provider.

import type { GroupRequest, UserAccountRequest } from '@goauthentik/api';
import { AppError } from '../domain/app-error.ts';
import type { Exclusive } from '../ports/exclusive.ts';
import type { Group, GroupName, Groups } from '../ports/identity.ts';
import { existing, isId } from './identity-accounts.ts';
import { group, listedGroup, pageOf, type Wire } from './identity-answers.ts';
import { type Provider, type Query, valueOf } from './identity-request.ts';

const PATH = 'core/groups';
const ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

const groupPage = pageOf(listedGroup);

export function identityGroups(provider: Provider, exclusive: Exclusive): Groups {
  /** Without members: much cheaper. */
  function found(query: Query): Promise<GroupName[]> {
    return provider.all(PATH, groupPage, { ordering: 'name', include_users: 'false', ...query });
  }

  async function list(search = ''): Promise<GroupName[]> {
    const groups = await found(search === '' ? {} : { search });
    const wanted = search.toLowerCase();
    return groups
      .filter(({ name }) => name.toLowerCase().includes(wanted))
      .toSorted((one, other) => (one.name < other.name ? -1 : 1));
  }

  async function get(id: string): Promise<Group | undefined> {
    return ID.test(id) ? provider.read(`${PATH}/${id}`, group) : undefined;
  }

  async function nameOf(name: string): Promise<GroupName | undefined> {
    if (name === '') return undefined;
    const wanted = name.toLowerCase();
    return (
      (await found({ name })).find((each) => each.name === name) ??
      (await found({ search: name })).find((each) => each.name.toLowerCase() === wanted)
    );
  }

  async function named(name: string): Promise<Group | undefined> {
    const known = await nameOf(name);
    return known && get(known.id);
  }

  async function create(name: string): Promise<GroupName> {
    return exclusive(`identity-group-name:${name.toLowerCase()}`, async () => {
      if ((await nameOf(name)) !== undefined) throw taken(name);
      const body: Wire<GroupRequest> = { name };
      const outcome = await provider.exchange('POST', PATH, listedGroup, { body });
      const isName = 'refused' in outcome && outcome.refused.members.includes('name');
      if (isName && (await nameOf(name)) !== undefined) throw taken(name);
      return existing(outcome, 'There is no list of groups');
    });
  }

  async function remove(id: string): Promise<void> {
    if (ID.test(id)) valueOf(await provider.act('DELETE', `${PATH}/${id}`));
  }

  async function change(id: string, accountId: number, action: 'add_user' | 'remove_user'): Promise<void> {
    const missing = `There is no group with the id ${id}, or no account with the id ${accountId}`;
    if (!ID.test(id) || !isId(accountId)) throw new AppError('not_found', missing);
    const body: Wire<UserAccountRequest> = { pk: accountId };
    existing(await provider.act('POST', `${PATH}/${id}/${action}`, { body }), missing);
  }

  return {
    list,
    get,
    named,
    create,
    delete: remove,
    addMember: (id, accountId) => change(id, accountId, 'add_user'),
    removeMember: (id, accountId) => change(id, accountId, 'remove_user'),
  };
}

function taken(name: string): AppError {
  return new AppError('conflict', `There is a group with the name ${JSON.stringify(name)}, in some case, already`);
}
