// Calls the identity provider's HTTP API, version 3. Runs on Node and in workerd.

import type { GroupRequest, UserAccountRequest } from '@goauthentik/api';
import { AppError } from '@holdfast/kit/app-error';
import type { Exclusive, Group, GroupName, Groups, Identity } from '../port.ts';
import { existing, IdentityAccounts, isId } from './accounts.ts';
import { group, listedGroup, pageOf, session, versions, type Wire } from './answers.ts';
import { IdentityAppPasswords } from './app-passwords.ts';
import { IdentityProvider, type ProviderOptions, type Query, valueOf } from './request.ts';

const PATH = 'core/groups';
const ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

const groupPage = pageOf(listedGroup);

export class IdentityGroups implements Groups {
  readonly #provider: IdentityProvider;
  readonly #exclusive: Exclusive;

  constructor(provider: IdentityProvider, exclusive: Exclusive) {
    this.#provider = provider;
    this.#exclusive = exclusive;
  }

  /** Without members: much cheaper. */
  #found(query: Query): Promise<GroupName[]> {
    return this.#provider.all(PATH, groupPage, { ordering: 'name', include_users: 'false', ...query });
  }

  async list(search: string = ''): Promise<GroupName[]> {
    const groups = await this.#found(search === '' ? {} : { search });
    const wanted = search.toLowerCase();
    return groups
      .filter(({ name }) => name.toLowerCase().includes(wanted))
      .toSorted((one, other) => (one.name < other.name ? -1 : 1));
  }

  async get(id: string): Promise<Group | undefined> {
    return ID.test(id) ? this.#provider.read(`${PATH}/${id}`, group) : undefined;
  }

  async #nameOf(name: string): Promise<GroupName | undefined> {
    if (name === '') return undefined;
    const wanted = name.toLowerCase();
    return (
      (await this.#found({ name })).find((each) => each.name === name) ??
      (await this.#found({ search: name })).find((each) => each.name.toLowerCase() === wanted)
    );
  }

  async named(name: string): Promise<Group | undefined> {
    const known = await this.#nameOf(name);
    return known && this.get(known.id);
  }

  async create(name: string): Promise<GroupName> {
    return this.#exclusive(`identity-group-name:${name.toLowerCase()}`, async () => {
      if ((await this.#nameOf(name)) !== undefined) throw taken(name);
      const body: Wire<GroupRequest> = { name };
      const outcome = await this.#provider.exchange('POST', PATH, listedGroup, { body });
      const isName = 'refused' in outcome && outcome.refused.members.includes('name');
      if (isName && (await this.#nameOf(name)) !== undefined) throw taken(name);
      return existing(outcome, 'There is no list of groups');
    });
  }

  async delete(id: string): Promise<void> {
    if (ID.test(id)) valueOf(await this.#provider.act('DELETE', `${PATH}/${id}`));
  }

  async #change(id: string, accountId: number, action: 'add_user' | 'remove_user'): Promise<void> {
    const missing = `There is no group with the id ${id}, or no account with the id ${accountId}`;
    if (!ID.test(id) || !isId(accountId)) throw new AppError('not_found', missing);
    const body: Wire<UserAccountRequest> = { pk: accountId };
    existing(await this.#provider.act('POST', `${PATH}/${id}/${action}`, { body }), missing);
  }

  addMember(id: string, accountId: number): Promise<void> {
    return this.#change(id, accountId, 'add_user');
  }

  removeMember(id: string, accountId: number): Promise<void> {
    return this.#change(id, accountId, 'remove_user');
  }
}

function taken(name: string): AppError {
  return new AppError('conflict', `The group name ${JSON.stringify(name)} is already taken. Names ignore case.`);
}

export interface HttpIdentityOptions extends ProviderOptions {
  /** Keeps writers of one account, and creators of one name, apart. */
  exclusive: Exclusive;
  /** Decides which app passwords are long-lived; default: the system's clock. */
  now?: () => Date;
}

/**
 * `url` is the provider's address (`http://127.0.0.1:9000`, `https://host/prefix`). One request
 * takes at most 5 s and 8 MB, and a method a few of them; lists end after 10 000 entries or 20 s.
 */
export function httpIdentity({ exclusive, now = () => new Date(), ...options }: HttpIdentityOptions): Identity {
  const provider = new IdentityProvider(options);
  const accounts = new IdentityAccounts(provider, exclusive);

  async function me(): Promise<{ username: string; isSuperuser: boolean }> {
    const outcome = await provider.exchange('GET', 'core/users/me', session);
    if (!('done' in outcome)) throw provider.nonsense('does not know the account of our token');
    const { username, is_superuser: isSuperuser } = outcome.done.user;
    return { username, isSuperuser };
  }

  async function version(): Promise<string> {
    const outcome = await provider.exchange('GET', 'admin/version', versions);
    if (!('done' in outcome)) throw provider.nonsense('does not report its version');
    const { version_current: release, build_hash: build = '' } = outcome.done;
    const own = /^holdfast-(.+)$/.exec(build)?.[1];
    if (own === undefined) return release;
    const [year, month] = release.split('.');
    return `Holdfast identity provider ${own}, authentik API ${year}.${month}`;
  }

  return {
    me,
    version,
    accounts,
    groups: new IdentityGroups(provider, exclusive),
    appPasswords: new IdentityAppPasswords(provider, accounts, now),
  };
}
