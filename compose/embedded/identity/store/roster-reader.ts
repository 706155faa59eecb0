// What the LDAP tree shows, read at every call.

import type { IdentityKeys } from '../keys.ts';
import { nameKey } from '../names.ts';
import type { GroupsWhere, PeopleWhere, Person, Roster, TreeGroup } from '../roster.ts';
import { accountsOf, type StoredAccount } from './account-rows.ts';
import { allOf, type Piece, type RunSql, type Sql } from './database.ts';

export function rosterReader(run: RunSql, keys: IdentityKeys): Roster {
  function shown(account: StoredAccount): Person {
    return {
      pk: account.pk,
      uid: keys.uid(account.pk),
      username: account.username,
      name: account.name,
      email: account.email,
      isActive: account.is_active,
      isSuperuser: account.is_superuser,
      attributes: account.attributes,
      groups: account.groups.map(({ name }) => ({ name })),
      createdAt: account.date_joined,
      changedAt: account.last_updated,
      passwordChangedAt: account.password_changed_at ?? undefined,
    };
  }

  async function people(where: PeopleWhere, after: number, limit: number): Promise<Person[]> {
    const accounts = await run((sql) => {
      const chosen = sql`
        SELECT * FROM account WHERE ${allOf(sql, peopleWhere(sql, where))} AND pk > ${after} ORDER BY pk LIMIT ${limit}`;
      return sql<StoredAccount[]>`${accountsOf(sql, chosen)} ORDER BY pk`;
    });
    return accounts.map(shown);
  }

  return {
    person: async (username) => (await people({ username }, 0, 1))[0],
    people,
    groups: (where, after, limit) =>
      run((sql) => {
        const chosen = sql`
          SELECT * FROM user_group WHERE ${allOf(sql, groupsWhere(sql, where))} AND num_pk > ${after}
          ORDER BY num_pk LIMIT ${limit}`;
        return sql<TreeGroup[]>`
          WITH chosen AS MATERIALIZED (${chosen})
          SELECT uuid, num_pk AS "numPk", name, is_superuser AS "isSuperuser", attributes, created_at AS "createdAt",
            changed_at AS "changedAt", (
              SELECT coalesce(jsonb_agg(jsonb_build_object('username', a.username) ORDER BY a.username), '[]')
              FROM membership AS m JOIN account AS a ON a.pk = m.account_pk WHERE m.group_uuid = chosen.uuid
            ) AS members
          FROM chosen ORDER BY num_pk`;
      }),
  };
}

/** Names are parameters that PostgreSQL must be able to read; one with NUL is nobody's. */
const asked = (name: string): string => nameKey(name).replaceAll('\0', '\u{1}');

function peopleWhere(sql: Sql, { username, email, group }: PeopleWhere): Piece[] {
  return [
    ...(username === undefined ? [] : [sql`username_key = ${asked(username)}`]),
    ...(email === undefined ? [] : [sql`email_key = ${asked(email)}`]),
    ...(group === undefined
      ? []
      : [
          sql`pk IN (SELECT m.account_pk FROM membership AS m JOIN user_group AS g ON g.uuid = m.group_uuid
            WHERE g.name_key = ${asked(group)})`,
        ]),
  ];
}

function groupsWhere(sql: Sql, { name, member }: GroupsWhere): Piece[] {
  return [
    ...(name === undefined ? [] : [sql`name_key = ${asked(name)}`]),
    ...(member === undefined
      ? []
      : [
          sql`uuid IN (SELECT m.group_uuid FROM membership AS m JOIN account AS a ON a.pk = m.account_pk
            WHERE a.username_key = ${asked(member)})`,
        ]),
  ];
}
