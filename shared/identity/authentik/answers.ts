// Validates the identity provider's responses at run time and, against the provider's own types, at
// compile time. Only required fields are checked: older releases lack some, newer ones have more.

import type {
  Pagination,
  PartialGroup,
  PartialUser,
  Group as ProviderGroup,
  SessionUser,
  Token,
  TokenView,
  User,
  UserSelf,
  Version,
} from '@goauthentik/api';
import { z } from 'zod';
import { AppError, type FieldError } from '@holdfast/kit/app-error';
import type { Attributes, Json } from '@holdfast/kit/json';
import { foreignWords, shortened } from '@holdfast/kit/text';
import type { Account, AppPassword, Group } from '../port.ts';

type Snake<S extends string> = S extends `${infer First}${infer Rest}`
  ? First extends Lowercase<First>
    ? `${First}${Snake<Rest>}`
    : `_${Lowercase<First>}${Snake<Rest>}`
  : S;

/** A model of the provider's client as JSON has it: names with underscores, times as text. */
export type Wire<T> = 0 extends T & 1
  ? Json
  : T extends Date
    ? string
    : T extends readonly (infer Each)[]
      ? Wire<Each>[]
      : T extends object
        ? { [Key in keyof T as Key extends string ? (string extends Key ? string : Snake<Key>) : never]: Wire<T[Key]> }
        : T;

/**
 * The schema, if it requires nothing that the model lacks and accepts every value that the model
 * allows; else never.
 */
type Held<Model, Schema extends z.ZodObject> =
  Exclude<keyof z.input<Schema>, keyof Wire<Model>> extends never
    ? Pick<Required<Wire<Model>>, keyof z.input<Schema> & keyof Wire<Model>> extends z.input<Schema>
      ? Schema
      : never
    : never;

/** Does not compile when the schema and the provider's model have diverged. */
export const heldTo =
  <Model>() =>
  <Schema extends z.ZodObject>(schema: Schema & Held<Model, Schema>): Schema =>
    schema;

/** Any offset becomes UTC, in milliseconds. */
const time = z.iso.datetime({ offset: true }).transform((text) => new Date(text).toISOString());
/** Unchanged: it must be written back as it came. */
const attributes = z.custom<Attributes>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'expected an object',
);
const userPk = z.int().min(1);
/** Becomes part of a path. */
const groupPk = z.guid().toLowerCase();

const pagination = heldTo<Pagination>()(z.object({ next: z.int().min(0), count: z.int().min(0) }));

/** One page of a list. */
export function pageOf<Item extends z.ZodType>(item: Item) {
  return z.object({ pagination, results: z.array(item) });
}

const groupName = heldTo<PartialGroup>()(z.object({ pk: groupPk, name: z.string() }));

const user = heldTo<User>()(
  z.object({
    pk: userPk,
    username: z.string(),
    name: z.string().default(''),
    email: z.string().nullish(),
    // No default: who may sign in, and what a change would write back, is never guessed.
    is_active: z.boolean(),
    attributes,
    groups_obj: z
      .array(groupName)
      .nullable()
      .refine((groups) => groups !== null, 'expected the groups'),
    type: z.string().default('internal'),
    date_joined: time.nullish(),
    last_login: time.nullish(),
  }),
);

const KINDS: Record<string, Account['kind']> = {
  internal: 'person',
  external: 'person',
  service_account: 'service',
  internal_service_account: 'system',
};

/** An account. An unknown type belongs to the provider: no other code touches it. */
export const account = user.transform((read): Account => ({
  id: read.pk,
  username: read.username,
  name: read.name,
  email: read.email ?? '',
  isActive: read.is_active,
  kind: KINDS[read.type] ?? 'system',
  groups: (read.groups_obj ?? []).map(groupNameOf),
  attributes: read.attributes,
  createdAt: read.date_joined ?? null,
  lastLogin: read.last_login ?? null,
}));

/** An account in a list that is only searched for a name. */
export const accountName = heldTo<User>()(z.object({ pk: userPk, username: z.string() }));

/** A group in a list. */
export const listedGroup = groupName.transform(groupNameOf);

const member = heldTo<PartialUser>()(z.object({ pk: userPk, username: z.string() }));

/** A group with its members. */
export const group = heldTo<ProviderGroup>()(
  z.object({
    pk: groupPk,
    name: z.string(),
    users_obj: z
      .array(member)
      .nullable()
      .refine((members) => members !== null, 'expected the members'),
  }),
).transform((read): Group => ({
  ...groupNameOf(read),
  members: (read.users_obj ?? []).map(({ pk, username }) => ({ id: pk, username })),
}));

function groupNameOf({ pk, name }: z.output<typeof groupName>): { id: string; name: string } {
  return { id: pk, name };
}

/** A token of any intent; `owner` is undefined in releases that do not report it. */
export const token = heldTo<Token>()(
  z.object({
    identifier: z.string(),
    intent: z.string(),
    user: userPk,
    user_obj: heldTo<User>()(z.object({ username: z.string() })).optional(),
    description: z.string().default(''),
    expires: time.nullish(),
    expiring: z.boolean(),
  }),
).transform((read) => ({
  isAppPassword: read.intent === 'app_password',
  owner: read.user_obj?.username,
  password: appPasswordOf(read),
}));

interface ReadToken {
  identifier: string;
  user: number;
  description: string;
  expires?: string | null | undefined;
  expiring: boolean;
}

function appPasswordOf({ identifier, user: accountId, description, expires, expiring }: ReadToken): AppPassword {
  return { identifier, accountId, description, expiresAt: expiring ? (expires ?? null) : null };
}

export const tokenKey = heldTo<TokenView>()(z.object({ key: z.string().min(1) }));

const self = heldTo<UserSelf>()(z.object({ username: z.string(), is_superuser: z.boolean() }));
export const session = heldTo<SessionUser>()(z.object({ user: self }));

/**
 * The embedded provider names itself in `build_hash`; authentik leaves it empty or gives a commit.
 */
export const versions = heldTo<Version>()(
  z.object({ version_current: z.string().min(1), build_hash: z.string().optional() }),
);

const MAX_FIELDS = 10;
const MAX_DEPTH = 4;
const MAX_CHARACTERS = 400;

/** Our names of the provider's fields. */
const OURS: Record<string, string> = {
  is_active: 'isActive',
  expires: 'expiresAt',
  user: 'accountId',
  pk: 'accountId',
  groups_by_name: 'group',
  non_field_errors: '',
  detail: '',
};

/** A refusal by the provider: 400. */
export interface Refusal {
  /** `invalid`, with fields by our names. */
  error: AppError;
  /** The fields that it names, by the provider's names. */
  members: readonly string[];
}

/** The text of an error without fields; empty when there is none. */
export function wordsOf(json: unknown): string {
  return isRecord(json) && typeof json['detail'] === 'string' ? json['detail'] : '';
}

export function refusalOf(json: unknown, system: string, secrets: readonly string[]): Refusal {
  const fields: FieldError[] = [];
  collect(json, [], 0);

  function collect(value: unknown, path: readonly string[], depth: number): void {
    if (fields.length >= MAX_FIELDS || depth > MAX_DEPTH) return;
    if (typeof value === 'string') {
      const message = foreignWords(value, secrets);
      const shown = shortened(foreignWords(path.join('.'), secrets), 100);
      if (message !== '') fields.push({ path: shown, message });
    } else if (Array.isArray(value)) {
      for (const each of value.slice(0, MAX_FIELDS)) collect(each, path, depth + 1);
    } else if (isRecord(value)) {
      for (const [name, each] of Object.entries(value).slice(0, MAX_FIELDS)) {
        collect(
          each,
          [...path, nameOf(name, depth)].filter((part) => part !== ''),
          depth + 1,
        );
      }
    }
  }

  const text = fields.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join(' ');
  const message = `${system} refused the change${text === '' ? ' without a reason' : `: ${shortened(text, MAX_CHARACTERS)}`}`;
  return {
    error: new AppError('invalid', message, { fields }),
    members: isRecord(json) ? Object.keys(json) : [],
  };
}

function nameOf(name: string, depth: number): string {
  return depth === 0 ? (Object.hasOwn(OURS, name) ? (OURS[name] ?? name) : name) : name;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
