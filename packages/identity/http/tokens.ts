// Serves /core/tokens/: list, create, read, change, delete. Callers who aren't superusers see only
// their own.

import { z } from 'zod';
import { DAY_MS } from '@holdfast/kit/time';
import { newKey } from '../model/keys.ts';
import { readDuration } from '../model/names.ts';
import type { StoredAccount } from '../store/account-rows.ts';
import { FieldRefusal } from '../store/database.ts';
import type { IdentityStore } from '../store/store.ts';
import { type Intent, INTENTS, type StoredToken } from '../store/tokens.ts';
import {
  filledText,
  type IdentityApiOptions,
  type IdentityContext,
  type IdentityRoute,
  notFound,
  pkSchema,
  readJson,
  text,
  timeSchema,
} from './body.ts';
import { envelope, queryOf } from './query.ts';
import { toTokenView } from './resource-views.ts';

const CEILING_ATTRIBUTE = 'goauthentik.io/user/token-maximum-lifetime';
const EXPIRING_ATTRIBUTE = 'goauthentik.io/user/token-expires';
const USUAL_MS = DAY_MS;

/**
 * Of an app password in ms: the largest value of the attribute on the user and its groups, else one
 * day.
 */
export function ceilingMs({ attributes, groups }: Pick<StoredAccount, 'attributes' | 'groups'>): number {
  const given = [attributes, ...groups.map((group) => group.attributes)].flatMap((each) => {
    return readDuration(each[CEILING_ATTRIBUTE]) ?? [];
  });
  return given.length === 0 ? USUAL_MS : Math.max(...given);
}

/** True for superusers and for accounts that have been allowed tokens without an end. */
export function mayBePermanent({ is_superuser, attributes }: StoredAccount): boolean {
  return is_superuser || attributes[EXPIRING_ATTRIBUTE] === false;
}

export interface ExpiryInput {
  intent: Intent;
  expiring: boolean;
  /** Not heard for API tokens: their end cannot be chosen. In the past it is accepted. */
  wanted: Date | undefined;
  owner: StoredAccount;
  now: Date;
}

/** Rejects a wish beyond the ceiling with a FieldRefusal on `expires`. */
export function expiryOf({ intent, expiring, wanted, owner, now }: ExpiryInput): Date | null {
  const usual = new Date(now.getTime() + USUAL_MS);
  if (!expiring) return wanted ?? null;
  if (intent === 'api') return usual;
  const ceiling = new Date(now.getTime() + ceilingMs(owner));
  if (wanted === undefined) return ceiling < usual ? ceiling : usual;
  if (wanted <= ceiling) return wanted;
  throw new FieldRefusal({ expires: `Token expires exceeds maximum lifetime (${ceiling.toISOString()} UTC).` });
}

const IDENTIFIER = /^[-a-zA-Z0-9_]{1,255}$/;
const NOT_CREATED = ['verification', 'recovery'] as const;

const identifierSchema = filledText(255).refine(
  (value) => value === '' || IDENTIFIER.test(value),
  'Enter a valid “slug” consisting of letters, numbers, underscores or hyphens.',
);
const intentSchema = z.enum([...INTENTS, ...NOT_CREATED]).transform((intent, issues) => {
  const made = INTENTS.find((each) => each === intent);
  if (made !== undefined) return made;
  issues.addIssue(`Invalid intent ${intent}`);
  return z.NEVER;
});

const wholeSchema = z.object({
  identifier: identifierSchema,
  intent: intentSchema.optional(),
  user: pkSchema.optional(),
  description: text(10_000).optional(),
  expires: timeSchema.nullable().optional(),
  expiring: z.boolean().optional(),
  managed: filledText(255).nullable().optional(),
});
const partSchema = wholeSchema.partial();
type Given = z.infer<typeof partSchema>;

export function tokenRoutes({ store, now }: IdentityApiOptions): IdentityRoute[] {
  async function listTokens(c: IdentityContext): Promise<Response> {
    const caller = c.get('caller');
    const query = queryOf(c);
    const paging = query.paging();
    const filter = {
      owner: caller.is_superuser ? undefined : caller.pk,
      search: query.text('search'),
      identifier: query.text('identifier'),
      intent: query.choices('intent', [...INTENTS, ...NOT_CREATED]).at(-1),
      username: query.text('user__username'),
      description: query.text('description'),
      expires: query.time('expires'),
      expiring: query.flag('expiring'),
      managed: query.text('managed'),
    };
    const found = await store.tokens.list(filter, paging);
    return c.json(envelope(found, paging, (token) => toTokenView(token, store.keys)));
  }

  async function createToken(c: IdentityContext): Promise<Response> {
    const caller = c.get('caller');
    const given = await readJson(c, wholeSchema);
    const owner = caller.is_superuser ? await ownerIn(given, caller) : caller;
    const { identifier, intent = 'api', description = '', managed = null } = given;
    const expiring = (given.expiring ?? true) || !mayBePermanent(caller);
    const expires = expiryOf({ intent, expiring, wanted: given.expires ?? undefined, owner, now: now() });
    const values = { identifier, intent, accountPk: owner.pk, description, managed, expires, expiring };
    return c.json(toTokenView(await store.tokens.create(values, newKey()), store.keys), 201);
  }

  async function ownerIn({ user }: Given, caller: StoredAccount): Promise<StoredAccount> {
    const owner = user === undefined ? caller : await store.accounts.get(user);
    if (owner !== undefined) return owner;
    throw new FieldRefusal({ user: `Invalid pk "${user}" - object does not exist.` });
  }

  const change = (schema: z.ZodType<Given>) =>
    async function changeToken(c: IdentityContext): Promise<Response> {
      const { uuid } = await tokenOf(c, store);
      const given = await readJson(c, schema);
      const token = await store.tokens.change(uuid, (before) => afterChange(before, given, c.get('caller'), now()));
      return c.json(toTokenView(existing(token), store.keys));
    };

  return [
    { path: '/core/tokens/', handlers: { GET: listTokens, POST: createToken } },
    {
      path: '/core/tokens/:identifier/',
      handlers: {
        GET: async (c) => c.json(toTokenView(await tokenOf(c, store), store.keys)),
        PUT: change(wholeSchema),
        PATCH: change(partSchema),
        DELETE: async function deleteToken(c) {
          const { uuid } = await tokenOf(c, store);
          if (!(await store.tokens.delete(uuid))) throw notFound();
          return c.body(null, 204);
        },
      },
    },
  ];
}

/** What a token is after a change that was asked for. */
function afterChange(before: StoredToken, given: Given, caller: StoredAccount, now: Date) {
  if (given.user !== undefined && given.user !== before.accountPk) {
    throw new FieldRefusal({ user: 'A token stays with its user.' });
  }
  const { identifier = before.identifier, intent = before.intent, description = before.description } = given;
  const expiring = (given.expiring ?? before.expiring) || !mayBePermanent(caller);
  const asBefore = intent === before.intent && expiring === before.expiring;
  const kept = asBefore && (given.expires === undefined || intent === 'api');
  const wanted = given.expires === undefined ? (before.expires ?? undefined) : (given.expires ?? undefined);
  const expires = kept ? before.expires : expiryOf({ intent, expiring, wanted, owner: before.account, now });
  return {
    identifier,
    intent,
    description,
    expires,
    expiring,
    managed: given.managed === undefined ? before.managed : given.managed,
  };
}

/** The token in the path; somebody else's is 404 for a caller that is no superuser. */
export async function tokenOf(c: IdentityContext, store: IdentityStore): Promise<StoredToken> {
  const identifier = c.req.param('identifier') ?? '';
  const caller = c.get('caller');
  const token = IDENTIFIER.test(identifier) ? await store.tokens.get(identifier) : undefined;
  if (token === undefined || (!caller.is_superuser && token.accountPk !== caller.pk)) throw notFound();
  return token;
}

function existing(token: StoredToken | undefined): StoredToken {
  if (token === undefined) throw notFound();
  return token;
}
