// Conditions on attributes as the identity provider reads them.

import { isDeepStrictEqual } from 'node:util';
import type { Attributes, Json } from '@holdfast/kit/json';

type Condition = (value: Json | undefined, wanted: Json) => boolean;

const sameKind = (one: Json | undefined, other: Json): boolean => one !== null && typeof one === typeof other;
const LOOKUPS: Record<string, Condition> = {
  lt: (value, wanted) => sameKind(value, wanted) && (value as number) < (wanted as number),
  lte: (value, wanted) => sameKind(value, wanted) && (value as number) <= (wanted as number),
  gt: (value, wanted) => sameKind(value, wanted) && (value as number) > (wanted as number),
  gte: (value, wanted) => sameKind(value, wanted) && (value as number) >= (wanted as number),
  isnull: (value, wanted) => (value === undefined) === wanted,
  exact: (value, wanted) => isDeepStrictEqual(value, wanted),
};

/** Whether all conditions hold: `{ app_expires__lt: 5, site__name: 'x' }`. */
export function attributesMatch(attributes: Attributes, conditions: Attributes): boolean {
  return Object.entries(conditions).every(([condition, wanted]) => {
    const path = condition.split('__');
    const lookup = LOOKUPS[path.at(-1) ?? ''];
    const names = path.length > 1 && lookup !== undefined ? path.slice(0, -1) : path;
    const test = names === path ? LOOKUPS['exact'] : lookup;
    return test?.(names.reduce<Json | undefined>(memberOf, attributes), wanted) ?? false;
  });
}

function memberOf(value: Json | undefined, name: string): Json | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  return Object.hasOwn(value, name) ? (value as Attributes)[name] : undefined;
}
