// When tokens end: the default, the ceiling for app passwords, and what raises it.

import { readDuration } from '../duration.ts';
import type { StoredAccount } from '../store/account-rows.ts';
import { FieldRefusal } from '../store/database.ts';
import type { Intent } from '../store/tokens.ts';

const CEILING_ATTRIBUTE = 'goauthentik.io/user/token-maximum-lifetime';
const EXPIRING_ATTRIBUTE = 'goauthentik.io/user/token-expires';
const USUAL_MS = 86_400_000;

/** Of an app password in ms: the largest value of the attribute on the user and its groups, else one day. */
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

export interface ExpiryWish {
  intent: Intent;
  expiring: boolean;
  /** Not heard for API tokens: their end cannot be chosen. In the past it is accepted. */
  wanted: Date | undefined;
  owner: StoredAccount;
  now: Date;
}

/** Rejects a wish beyond the ceiling with a FieldRefusal on `expires`. */
export function expiryOf({ intent, expiring, wanted, owner, now }: ExpiryWish): Date | null {
  const usual = new Date(now.getTime() + USUAL_MS);
  if (!expiring) return wanted ?? null;
  if (intent === 'api') return usual;
  const ceiling = new Date(now.getTime() + ceilingMs(owner));
  if (wanted === undefined) return ceiling < usual ? ceiling : usual;
  if (wanted <= ceiling) return wanted;
  throw new FieldRefusal({ expires: `Token expires exceeds maximum lifetime (${ceiling.toISOString()} UTC).` });
}
