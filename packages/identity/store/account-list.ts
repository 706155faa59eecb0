// Lists accounts with filters, search, order and pages.

import { nameKey } from '../model/names.ts';
import { accountsOf, type AccountType, isSuperuser, type StoredAccount } from './account-rows.ts';
import { type AttributeCondition, attributesMatch } from './attribute-query.ts';
import {
  allOf,
  containing,
  countOf,
  type Found,
  noChoice,
  orderBy,
  pageOf,
  type Paging,
  type Piece,
  type Sql,
} from './database.ts';

/** A point in time, or a span. */
export interface TimeFilter {
  exactly?: Date | undefined;
  after?: Date | undefined;
  before?: Date | undefined;
}

/** Every condition that is given must hold. */
export interface AccountFilter {
  pk?: number | undefined;
  /** Part of username, name, email address or uuid, without case. */
  search?: string | undefined;
  username?: string | undefined;
  email?: string | undefined;
  name?: string | undefined;
  isActive?: boolean | undefined;
  isSuperuser?: boolean | undefined;
  uuid?: string | undefined;
  path?: string | undefined;
  pathStart?: string | undefined;
  /** Any of them. */
  types?: readonly AccountType[];
  /** Members of any of them; an unknown one is refused. */
  groupNames?: readonly string[];
  groupUuids?: readonly string[];
  joined?: TimeFilter;
  updated?: TimeFilter;
  login?: TimeFilter & { isNull?: boolean | undefined };
  attributes?: readonly AttributeCondition[];
}

/** Three statements at most, however many accounts there are. */
export async function listAccounts(sql: Sql, filter: AccountFilter, paging: Paging): Promise<Found<StoredAccount>> {
  await refuseUnknownGroups(sql, filter);
  const where = allOf(sql, conditionsOf(sql, filter));
  const count = await countOf(sql, sql`FROM account WHERE ${where}`);
  if (count === 0) return { results: [], count };
  const order = orderBy(sql, paging.ordering, columns(sql), sql`account.username`, sql`account.pk`);
  const chosen = sql`SELECT * FROM account WHERE ${where} ${order} ${pageOf(sql, paging)}`;
  return { results: await sql<StoredAccount[]>`${accountsOf(sql, chosen)} ${order}`, count };
}

function columns(sql: Sql): Record<string, Piece> {
  return {
    pk: sql`account.pk`,
    id: sql`account.pk`,
    uuid: sql`account.uuid`,
    username: sql`account.username`,
    name: sql`account.name`,
    email: sql`account.email`,
    is_active: sql`account.is_active`,
    path: sql`account.path`,
    type: sql`account.type`,
    date_joined: sql`account.date_joined`,
    last_updated: sql`account.last_updated`,
    last_login: sql`account.last_login`,
  };
}

async function refuseUnknownGroups(sql: Sql, { groupNames = [], groupUuids = [] }: AccountFilter): Promise<void> {
  if (groupNames.length === 0 && groupUuids.length === 0) return;
  const [unknown] = await sql<{ field: string; value: string }[]>`
    SELECT 'groups_by_name' AS field, value FROM jsonb_array_elements_text(${JSON.stringify(groupNames)}::text::jsonb)
    WHERE value NOT IN (SELECT name FROM user_group)
    UNION ALL
    SELECT 'groups_by_pk', value FROM jsonb_array_elements_text(${JSON.stringify(groupUuids)}::text::jsonb)
    WHERE value::uuid NOT IN (SELECT uuid FROM user_group)`;
  if (unknown !== undefined) throw noChoice(unknown.field, unknown.value);
}

function conditionsOf(sql: Sql, filter: AccountFilter): Piece[] {
  const { groupNames = [], groupUuids = [], types = [], login = {}, attributes = [] } = filter;
  const given = <T>(value: T | undefined, condition: (value: T) => Piece): Piece[] =>
    value === undefined ? [] : [condition(value)];
  return [
    ...given(filter.pk, (pk) => sql`account.pk = ${pk}`),
    ...given(filter.search, (text) => sql`account.searched LIKE ${containing(nameKey(text))}`),
    ...given(filter.username, (name) => sql`(account.username_key = ${nameKey(name)} AND account.username = ${name})`),
    ...given(filter.email, (email) => sql`(account.email_key = ${nameKey(email)} AND account.email = ${email})`),
    ...given(filter.name, (name) => sql`account.name = ${name}`),
    ...given(filter.isActive, (is) => sql`account.is_active = ${is}`),
    ...given(filter.isSuperuser, (is) => (is ? isSuperuser(sql) : sql`NOT ${isSuperuser(sql)}`)),
    ...given(filter.uuid, (uuid) => sql`account.uuid = ${uuid}::uuid`),
    ...given(filter.path, (path) => sql`account.path = ${path}`),
    ...given(filter.pathStart, (start) => sql`starts_with(account.path, ${start})`),
    ...given(login.isNull, (is) => sql`(account.last_login IS NULL) = ${is}`),
    ...between(sql, sql`account.date_joined`, filter.joined),
    ...between(sql, sql`account.last_updated`, filter.updated),
    ...between(sql, sql`account.last_login`, login),
    ...(types.length === 0
      ? []
      : [sql`account.type IN (SELECT jsonb_array_elements_text(${JSON.stringify(types)}::text::jsonb))`]),
    ...(groupNames.length === 0 ? [] : [memberOf(sql, sql`g.name`, groupNames)]),
    ...(groupUuids.length === 0 ? [] : [memberOf(sql, sql`g.uuid::text`, groupUuids)]),
    ...(attributes.length === 0 ? [] : [attributesMatch(sql, sql`account.attributes`, attributes)]),
  ];
}

function memberOf(sql: Sql, column: Piece, values: readonly string[]): Piece {
  return sql`account.pk IN (
    SELECT m.account_pk FROM membership AS m JOIN user_group AS g ON g.uuid = m.group_uuid
    WHERE ${column} IN (SELECT jsonb_array_elements_text(${JSON.stringify(values)}::text::jsonb)))`;
}

function between(sql: Sql, column: Piece, { exactly, after, before }: TimeFilter = {}): Piece[] {
  return [
    ...(exactly === undefined ? [] : [sql`${column} = ${exactly}`]),
    ...(after === undefined ? [] : [sql`${column} > ${after}`]),
    ...(before === undefined ? [] : [sql`${column} < ${before}`]),
  ];
}
