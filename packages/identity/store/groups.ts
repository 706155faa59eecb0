// Reads and writes groups and their members.

import { randomUUID } from 'node:crypto';
import type { Json } from '@holdfast/kit/json';
import { nameKey } from '../model/names.ts';
import { type AttributeCondition, attributesMatch } from './attribute-query.ts';
import {
  allOf,
  containing,
  countOf,
  FieldRefusal,
  type Found,
  inTransaction,
  noChoice,
  orderBy,
  pageOf,
  type Paging,
  type Piece,
  pointsNowhere,
  refusing,
  type RunSql,
  type Sql,
} from './database.ts';

export interface MemberOfGroup {
  pk: number;
  username: string;
  name: string;
  is_active: boolean;
  /** ISO 8601 as the database writes it. */
  last_login: string | null;
  email: string;
  attributes: Record<string, Json>;
}

export interface StoredGroup {
  uuid: string;
  num_pk: number;
  name: string;
  is_superuser: boolean;
  attributes: Record<string, Json>;
  /** By pk; null when they were not asked for. */
  members: MemberOfGroup[] | null;
}

export interface GroupValues {
  name: string;
  isSuperuser: boolean;
  attributes: Record<string, Json>;
}

export type GroupChange = { [Field in keyof GroupValues]?: GroupValues[Field] | undefined } & {
  /** Pks of accounts: the whole membership from now on. */
  users?: readonly number[] | undefined;
};

/** Every condition that is given must hold. */
export interface GroupFilter {
  search?: string | undefined;
  name?: string | undefined;
  isSuperuser?: boolean | undefined;
  /** Any of them is a member; an unknown one is refused. */
  memberNames?: readonly string[];
  memberPks?: readonly number[];
  attributes?: readonly AttributeCondition[];
}

export interface Groups {
  list(filter: GroupFilter, withMembers: boolean, paging: Paging): Promise<Found<StoredGroup>>;
  get(uuid: string, withMembers: boolean): Promise<StoredGroup | undefined>;
  /** Rejects with a FieldRefusal for a name that is taken and for unknown accounts. */
  create(values: GroupValues & Pick<GroupChange, 'users'>, now: Date): Promise<StoredGroup>;
  /** Undefined when there is no such group; refusals as of `create`. */
  change(uuid: string, change: GroupChange, now: Date): Promise<StoredGroup | undefined>;
  /** False when there was none. */
  delete(uuid: string): Promise<boolean>;
  /** A member already is no error; false when group or account do not exist. */
  addMember(uuid: string, pk: number): Promise<boolean>;
  /** No member is no error; false when group or account do not exist. */
  removeMember(uuid: string, pk: number): Promise<boolean>;
}

const TAKEN = { user_group_name_taken: new FieldRefusal({ name: 'This field must be unique.' }) };

export function groupStore(run: RunSql): Groups {
  async function change(uuid: string, given: GroupChange, now: Date): Promise<StoredGroup | undefined> {
    return inTransaction(run, async (transaction) => {
      const [before] = await transaction<GroupValues[]>`
          SELECT name, is_superuser AS "isSuperuser", attributes FROM user_group WHERE uuid = ${uuid} FOR NO KEY UPDATE`;
      if (before === undefined) return undefined;
      const { name = before.name, isSuperuser = before.isSuperuser, attributes = before.attributes } = given;
      await transaction`
          UPDATE user_group SET name = ${name}, name_key = ${nameKey(name)}, is_superuser = ${isSuperuser},
            attributes = ${JSON.stringify(attributes)}::text::jsonb, changed_at = ${now}
          WHERE uuid = ${uuid}`;
      if (given.users !== undefined) await replaceMembers(transaction, uuid, given.users);
      return readGroup(transaction, uuid, true);
    }).catch(refusing(TAKEN));
  }

  return {
    list: (filter, withMembers, paging) => run((sql) => listGroups(sql, filter, withMembers, paging)),
    get: (uuid, withMembers) => run((sql) => readGroup(sql, uuid, withMembers)),
    create: (values, now) =>
      run((sql) => sql.begin((transaction) => createGroup(transaction, values, now))).catch(refusing(TAKEN)),
    change,
    delete: (uuid) => run(async (sql) => (await sql`DELETE FROM user_group WHERE uuid = ${uuid}`).count > 0),
    addMember: (uuid, pk) =>
      run(async (sql) => {
        if (!(await bothExist(sql, uuid, pk))) return false;
        await sql`INSERT INTO membership (account_pk, group_uuid) VALUES (${pk}, ${uuid}) ON CONFLICT DO NOTHING`;
        return true;
      }).catch((error: unknown) => {
        if (pointsNowhere(error)) return false;
        throw error;
      }),
    removeMember: (uuid, pk) =>
      run(async (sql) => {
        if (!(await bothExist(sql, uuid, pk))) return false;
        await sql`DELETE FROM membership WHERE account_pk = ${pk} AND group_uuid = ${uuid}`;
        return true;
      }),
  };
}

/** Within the caller's transaction; a name that is taken rejects with the database's own error. */
export async function createGroup(
  sql: Sql,
  { users = [], name, isSuperuser, attributes }: GroupValues & Pick<GroupChange, 'users'>,
  now: Date,
): Promise<StoredGroup> {
  const uuid = randomUUID();
  await sql`
    INSERT INTO user_group (uuid, name, name_key, is_superuser, attributes, created_at, changed_at)
    VALUES (${uuid}, ${name}, ${nameKey(name)}, ${isSuperuser}, ${JSON.stringify(attributes)}::text::jsonb, ${now}, ${now})`;
  if (users.length > 0) await replaceMembers(sql, uuid, users);
  const group = await readGroup(sql, uuid, true);
  if (group === undefined) throw new Error(`group ${uuid} cannot be read after it was made`);
  return group;
}

async function bothExist(sql: Sql, uuid: string, pk: number): Promise<boolean> {
  const [row] = await sql<{ both: boolean }[]>`
    SELECT EXISTS (SELECT FROM user_group WHERE uuid = ${uuid}) AND EXISTS (SELECT FROM account WHERE pk = ${pk}) AS both`;
  return row?.both === true;
}

async function replaceMembers(sql: Sql, uuid: string, users: readonly number[]): Promise<void> {
  const wanted = sql`(SELECT value::int AS pk FROM jsonb_array_elements_text(${JSON.stringify(users)}::text::jsonb))`;
  const unknown = (pk: unknown): FieldRefusal =>
    new FieldRefusal({ users: `Invalid pk "${String(pk)}" - object does not exist.` });
  const [missing] = await sql<{ pk: number }[]>`
    SELECT pk FROM ${wanted} AS wanted WHERE pk NOT IN (SELECT pk FROM account)`;
  if (missing !== undefined) throw unknown(missing.pk);
  await sql`DELETE FROM membership WHERE group_uuid = ${uuid} AND account_pk NOT IN (SELECT pk FROM ${wanted} AS wanted)`;
  try {
    await sql`
      INSERT INTO membership (account_pk, group_uuid) SELECT DISTINCT pk, ${uuid}::uuid FROM ${wanted} AS wanted ORDER BY pk
      ON CONFLICT DO NOTHING`;
  } catch (error) {
    if (pointsNowhere(error)) throw unknown('of an account that was just deleted');
    throw error;
  }
}

/**
 * The groups that `chosen` (a statement over the table `user_group`) yields; with their members in
 * the same statement.
 */
function groupsOf(sql: Sql, chosen: Piece, withMembers: boolean): Piece {
  const members = withMembers
    ? sql`(SELECT coalesce(jsonb_agg(jsonb_build_object('pk', a.pk, 'username', a.username, 'name', a.name,
        'is_active', a.is_active, 'last_login', a.last_login, 'email', a.email, 'attributes', a.attributes) ORDER BY a.pk), '[]')
        FROM membership AS m JOIN account AS a ON a.pk = m.account_pk WHERE m.group_uuid = user_group.uuid)`
    : sql`NULL::jsonb`;
  return sql`
    WITH chosen AS MATERIALIZED (${chosen})
    SELECT uuid, num_pk, name, is_superuser, attributes, ${members} AS members FROM chosen AS user_group`;
}

async function readGroup(sql: Sql, uuid: string, withMembers: boolean): Promise<StoredGroup | undefined> {
  const chosen = sql`SELECT * FROM user_group WHERE uuid = ${uuid}`;
  const [group] = await sql<StoredGroup[]>`${groupsOf(sql, chosen, withMembers)}`;
  return group;
}

async function listGroups(
  sql: Sql,
  filter: GroupFilter,
  withMembers: boolean,
  paging: Paging,
): Promise<Found<StoredGroup>> {
  await refuseUnknownMembers(sql, filter);
  const where = allOf(sql, conditionsOf(sql, filter));
  const count = await countOf(sql, sql`FROM user_group WHERE ${where}`);
  if (count === 0) return { results: [], count };
  const columns = {
    pk: sql`user_group.uuid`,
    num_pk: sql`user_group.num_pk`,
    name: sql`user_group.name`,
    is_superuser: sql`user_group.is_superuser`,
  };
  const order = orderBy(sql, paging.ordering, columns, sql`user_group.name`, sql`user_group.num_pk`);
  const chosen = sql`SELECT * FROM user_group WHERE ${where} ${order} ${pageOf(sql, paging)}`;
  return { results: await sql<StoredGroup[]>`${groupsOf(sql, chosen, withMembers)} ${order}`, count };
}

async function refuseUnknownMembers(sql: Sql, { memberNames = [], memberPks = [] }: GroupFilter): Promise<void> {
  if (memberNames.length === 0 && memberPks.length === 0) return;
  const [unknown] = await sql<{ field: string; value: string }[]>`
    SELECT 'members_by_username' AS field, value
    FROM jsonb_array_elements_text(${JSON.stringify(memberNames)}::text::jsonb)
    WHERE value NOT IN (SELECT username FROM account)
    UNION ALL
    SELECT 'members_by_pk', value FROM jsonb_array_elements_text(${JSON.stringify(memberPks)}::text::jsonb)
    WHERE value::int NOT IN (SELECT pk FROM account)`;
  if (unknown !== undefined) throw noChoice(unknown.field, unknown.value);
}

function conditionsOf(sql: Sql, filter: GroupFilter): Piece[] {
  const { search, name, isSuperuser, memberNames = [], memberPks = [], attributes = [] } = filter;
  return [
    ...(search === undefined ? [] : [sql`user_group.name_key LIKE ${containing(nameKey(search))}`]),
    ...(name === undefined ? [] : [sql`(user_group.name_key = ${nameKey(name)} AND user_group.name = ${name})`]),
    ...(isSuperuser === undefined ? [] : [sql`user_group.is_superuser = ${isSuperuser}`]),
    ...(memberNames.length === 0 ? [] : [hasMember(sql, sql`a.username`, memberNames)]),
    ...(memberPks.length === 0 ? [] : [hasMember(sql, sql`a.pk::text`, memberPks)]),
    ...(attributes.length === 0 ? [] : [attributesMatch(sql, sql`user_group.attributes`, attributes)]),
  ];
}

function hasMember(sql: Sql, column: Piece, values: readonly (string | number)[]): Piece {
  return sql`user_group.uuid IN (
    SELECT m.group_uuid FROM membership AS m JOIN account AS a ON a.pk = m.account_pk
    WHERE ${column} IN (SELECT jsonb_array_elements_text(${JSON.stringify(values)}::text::jsonb)))`;
}
