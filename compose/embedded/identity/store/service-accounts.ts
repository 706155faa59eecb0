// An account of a program with its app password, and a group of its own where that is asked for: all or nothing.

import type { IdentityKeys } from '../keys.ts';
import { createAccount } from './accounts.ts';
import { FieldRefusal, refusing, type RunSql } from './database.ts';
import { createGroup } from './groups.ts';
import { createToken } from './tokens.ts';

export interface NewServiceAccount {
  name: string;
  createGroup: boolean;
  expires: Date;
  expiring: boolean;
}

export interface MadeServiceAccount {
  pk: number;
  username: string;
  /** Undefined when none was asked for. */
  groupUuid: string | undefined;
}

export interface ServiceAccounts {
  /** Rejects with a FieldRefusal for a name that is taken. `key` becomes its app password. */
  create(account: NewServiceAccount, key: string, now: Date): Promise<MadeServiceAccount>;
}

const PATH = 'goauthentik.io/service-accounts';

const TAKEN = {
  account_username_taken: new FieldRefusal({ name: 'User with this name already exists.' }),
  user_group_name_taken: new FieldRefusal({ name: 'Group with this name already exists.' }),
  token_identifier_taken: new FieldRefusal({ non_field_errors: 'A token of this name already exists.' }),
};

export function serviceAccountStore(run: RunSql, keys: IdentityKeys): ServiceAccounts {
  return {
    create: ({ name, createGroup: withGroup, expires, expiring }, key, now) =>
      run((sql) =>
        sql.begin(async (transaction) => {
          const values = {
            username: name,
            name,
            email: '',
            isActive: true,
            path: PATH,
            type: 'service_account',
          } as const;
          const attributes = { 'goauthentik.io/user/token-expires': expiring };
          const { pk } = await createAccount(transaction, { ...values, attributes }, now);
          const identifier = `service-account-${slugOf(name)}-password`;
          const token = { intent: 'app_password', accountPk: pk, description: '', managed: null } as const;
          await createToken(transaction, keys, { ...token, identifier, expires, expiring }, key);
          const group = { name, isSuperuser: false, attributes: {}, users: [pk] };
          const made = withGroup ? await createGroup(transaction, group, now) : undefined;
          return { pk, username: name, groupUuid: made?.uuid };
        }),
      ).catch(refusing(TAKEN)),
  };
}

/** A name in the letters of an identifier: `Näh Maschine_2` -> `nah-maschine_2`. */
export function slugOf(name: string): string {
  return name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9_\s-]/g, '')
    .trim()
    .replaceAll(/[\s-]+/g, '-')
    .replaceAll(/^[-_]+|[-_]+$/g, '');
}
