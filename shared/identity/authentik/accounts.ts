// Reads and changes accounts at the identity provider.

import type { PatchedUserRequest, UserPasswordSetRequest, UserRequest } from '@goauthentik/api';
import { AppError } from '@holdfast/kit/app-error';
import type { Attributes, Json, Page } from '@holdfast/kit/json';
import type { Account, AccountChange, AccountQuery, Accounts, Exclusive, NewAccount } from '../port.ts';
import { accountLists, accountNames, PATH } from './account-lists.ts';
import { account, type Wire } from './answers.ts';
import { type IdentityProvider, type Outcome, valueOf } from './request.ts';

/** The account to create. */
const TYPE_OF = { person: 'internal', service: 'service_account' } as const;
const MAX_ID = 2 ** 31 - 1;

export class IdentityAccounts implements Accounts {
  readonly #provider: IdentityProvider;
  readonly #exclusive: Exclusive;
  readonly #list: (query: AccountQuery) => Promise<Page<Account>>;

  constructor(provider: IdentityProvider, exclusive: Exclusive) {
    this.#provider = provider;
    this.#exclusive = exclusive;
    this.#list = accountLists(provider);
  }

  /**
   * The provider writes an account as a whole, even when a call names one field of it. Every change
   * of an account or its password therefore goes through here.
   */
  async #asWriter<T>(id: number, work: () => Promise<T>): Promise<T> {
    return this.#exclusive(`identity-account:${id}`, work);
  }

  async get(id: number): Promise<Account | undefined> {
    return isId(id) ? this.#provider.read(`${PATH}/${id}`, account) : undefined;
  }

  async named(username: string): Promise<Account | undefined> {
    if (username === '') return undefined;
    const without = { include_groups: 'false', include_roles: 'false' };
    const lower = username.toLowerCase();
    // A search for a short name matches half of all accounts, so likely spellings are tried first.
    for (const spelling of new Set([username, lower])) {
      const query = { ...without, username: spelling };
      const found = await this.#provider.first(PATH, accountNames, query, (each) => each.username === spelling);
      if (found !== undefined) return this.get(found.pk);
    }
    const query = { ...without, search: username };
    const found = await this.#provider.first(
      PATH,
      accountNames,
      query,
      (each) => each.username.toLowerCase() === lower,
    );
    return found && this.get(found.pk);
  }

  async create(wanted: NewAccount): Promise<Account> {
    const { username } = wanted;
    return this.#exclusive(`identity-username:${username.toLowerCase()}`, async () => {
      if ((await this.named(username)) !== undefined) throw taken(username);
      const outcome = await this.#provider.exchange('POST', PATH, account, { body: userOf(wanted) });
      // Another request may have been faster; the wording of the refusal isn't reliable.
      const isName = 'refused' in outcome && outcome.refused.members.includes('username');
      if (isName && (await this.named(username)) !== undefined) throw taken(username);
      return existing(outcome, 'There is no list of accounts');
    });
  }

  async #patch(id: number, body: Wire<PatchedUserRequest>): Promise<Account> {
    return existing(await this.#provider.exchange('PATCH', `${PATH}/${id}`, account, { body }), noAccount(id));
  }

  async change(id: number, { name, email, isActive, kind }: AccountChange): Promise<Account> {
    const body: Wire<PatchedUserRequest> = {
      ...(name === undefined ? {} : { name }),
      ...(email === undefined ? {} : { email }),
      ...(isActive === undefined ? {} : { is_active: isActive }),
      ...(kind === undefined ? {} : { type: TYPE_OF[kind] }),
    };
    if (Object.keys(body).length === 0) return this.#present(id);
    mustBeId(id);
    return this.#asWriter(id, () => this.#patch(id, body));
  }

  async #present(id: number): Promise<Account> {
    const found = await this.get(id);
    if (found === undefined) throw new AppError('not_found', noAccount(id));
    return found;
  }

  /**
   * Changes attributes based on their current values; resolves with the account as it is
   * afterwards.
   */
  async writeAttributes(id: number, changesOf: (now: Attributes) => Attributes): Promise<Account> {
    mustBeId(id);
    return this.#asWriter(id, async () => {
      const now = await this.#present(id);
      const attributes = merged(now.attributes, changesOf(now.attributes));
      return sameJson(now.attributes, attributes) ? now : this.#patch(id, { attributes });
    });
  }

  async setPassword(id: number, password: string): Promise<void> {
    mustBeId(id);
    const body: Wire<UserPasswordSetRequest> = { password };
    const call = { body, secrets: [password] };
    await this.#asWriter(id, async () => {
      const outcome = await this.#provider.act('POST', `${PATH}/${id}/set_password`, call);
      if ('refused' in outcome && outcome.refused.error.fields.length === 0) throw badPassword();
      existing(outcome, noAccount(id));
    });
  }

  async delete(id: number): Promise<void> {
    if (isId(id)) valueOf(await this.#provider.act('DELETE', `${PATH}/${id}`));
  }

  list(query: AccountQuery): Promise<Page<Account>> {
    return this.#list(query);
  }

  changeAttributes(id: number, changes: Attributes): Promise<Account> {
    return this.writeAttributes(id, () => changes);
  }
}

function userOf({ username, name, email, kind = 'person', attributes }: NewAccount): Wire<UserRequest> {
  return {
    username,
    name,
    type: TYPE_OF[kind],
    ...(email === undefined ? {} : { email }),
    ...(attributes === undefined ? {} : { attributes }),
  };
}

/** The result; throws the refusal, and `not_found` with that text when something is missing. */
export function existing<T>(outcome: Outcome<T>, text: string): T {
  if ('missing' in outcome) throw new AppError('not_found', text);
  if ('refused' in outcome) throw outcome.refused.error;
  return outcome.done;
}

export function noAccount(id: number): string {
  return `There is no account with the id ${id}`;
}

export function isId(id: number): boolean {
  return Number.isInteger(id) && id > 0 && id <= MAX_ID;
}

function mustBeId(id: number): void {
  if (!isId(id)) throw new AppError('not_found', noAccount(id));
}

function taken(username: string): AppError {
  return new AppError(
    'conflict',
    `The username ${JSON.stringify(username)} is already taken. Names ignore case; the account may be deactivated.`,
  );
}

function badPassword(): AppError {
  const message =
    'The identity provider refused this password without a reason. It may be empty or too weak; choose another.';
  return new AppError('invalid', message, { fields: [{ path: 'password', message: 'refused' }] });
}

/** Null removes an attribute; attributes that are not named stay, even when they are null. */
export function merged(now: Attributes, changes: Attributes): Attributes {
  const all = new Map(Object.entries(now));
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) all.delete(name);
    else all.set(name, value);
  }
  return Object.fromEntries(all);
}

/** The order of members does not count. */
function sameJson(one: Json, other: Json): boolean {
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return one === other;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const others = new Map(Object.entries(other));
  const members = Object.entries(one);
  return (
    members.length === others.size &&
    members.every(([name, value]) => {
      const counterpart = others.get(name);
      return counterpart !== undefined && sameJson(value, counterpart);
    })
  );
}
