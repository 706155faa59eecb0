// Builds conditions on free attributes in authentik's syntax: `{"app_expires__lt": 1700000000}`.
// Names and values are always statement parameters.

import type { Json } from '@holdfast/kit/json';
import { isJsonObject, whyNotKept } from '../model/names.ts';
import { allOf, containing, type Piece, type Sql } from './database.ts';

const LOOKUPS = ['exact', 'lt', 'lte', 'gt', 'gte', 'isnull', 'contains', 'icontains', 'in'] as const;
type Lookup = (typeof LOOKUPS)[number];
/**
 * The provider knows these; passing them over as names of keys would find nothing without a word.
 */
const NOT_SERVED = [
  'iexact',
  'startswith',
  'istartswith',
  'endswith',
  'iendswith',
  'regex',
  'iregex',
  'range',
  'contained_by',
  'has_key',
  'has_keys',
  'has_any_keys',
];

export interface AttributeCondition {
  path: string[];
  lookup: Lookup;
  value: Json;
}

/** What is wrong with the query, in a sentence for the one who asked. */
export class AttributeQueryFault extends Error {
  override readonly name = 'AttributeQueryFault';
}

const MAX_CONDITIONS = 20;
const DEEPEST = 10;

/** Throws an AttributeQueryFault when the text is no JSON object of conditions. */
export function readAttributeQuery(text: string): AttributeCondition[] {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    throw new AttributeQueryFault('attributes: Value must be valid JSON.');
  }
  if (!isJsonObject(given)) throw new AttributeQueryFault('attributes: Value must be a JSON object.');
  const why = whyNotKept(given);
  if (why !== undefined) throw new AttributeQueryFault(`attributes: ${why}`);
  const entries = Object.entries(given);
  if (entries.length > MAX_CONDITIONS) {
    throw new AttributeQueryFault(`attributes: At most ${MAX_CONDITIONS} conditions.`);
  }
  return entries.map(([key, value]) => readCondition(key, value));
}

function readCondition(key: string, value: Json): AttributeCondition {
  const parts = key.split('__');
  const last = parts.at(-1) ?? '';
  const lookup = parts.length > 1 ? LOOKUPS.find((each) => each === last) : undefined;
  const path = lookup === undefined ? parts : parts.slice(0, -1);
  if (parts.length > 1 && NOT_SERVED.includes(last)) {
    throw new AttributeQueryFault(`attributes: Unsupported lookup '${last}'. Known: ${LOOKUPS.join(', ')}.`);
  }
  if (path.length > DEEPEST || path.includes('')) throw new AttributeQueryFault(`attributes: '${key}' names no key.`);
  if (lookup === 'isnull' && typeof value !== 'boolean') {
    throw new AttributeQueryFault('attributes: The value of an isnull lookup must be true or false.');
  }
  if (lookup === 'in' && !Array.isArray(value)) {
    throw new AttributeQueryFault('attributes: The value of an in lookup must be an array.');
  }
  if (lookup === 'icontains' && typeof value !== 'string') {
    throw new AttributeQueryFault('attributes: The value of an icontains lookup must be a text.');
  }
  return { path, lookup: lookup ?? 'exact', value };
}

/** All conditions on one column of the type jsonb. */
export function attributesMatch(sql: Sql, column: Piece, conditions: readonly AttributeCondition[]): Piece {
  return allOf(
    sql,
    conditions.map((condition) => matches(sql, column, condition)),
  );
}

function matches(sql: Sql, column: Piece, { path, lookup, value }: AttributeCondition): Piece {
  const steps = sql`ARRAY(SELECT jsonb_array_elements_text(${JSON.stringify(path)}::text::jsonb))`;
  const found = sql`(${column} #> ${steps})`;
  const given = sql`${JSON.stringify(value)}::text::jsonb`;
  /**
   * PostgreSQL puts every number above every text; a number shall only be compared with numbers.
   */
  const sameKind = sql`jsonb_typeof(${found}) = jsonb_typeof(${given})`;
  switch (lookup) {
    case 'exact':
      return sql`${found} = ${given}`;
    case 'lt':
      return sql`(${sameKind} AND ${found} < ${given})`;
    case 'lte':
      return sql`(${sameKind} AND ${found} <= ${given})`;
    case 'gt':
      return sql`(${sameKind} AND ${found} > ${given})`;
    case 'gte':
      return sql`(${sameKind} AND ${found} >= ${given})`;
    case 'isnull':
      return value === true ? sql`${found} IS NULL` : sql`${found} IS NOT NULL`;
    case 'contains':
      return sql`${found} @> ${given}`;
    case 'icontains': {
      const part = typeof value === 'string' ? value : '';
      return sql`lower((${column} #>> ${steps}) COLLATE "und-x-icu") LIKE ${containing(part.toLowerCase())}`;
    }
    case 'in':
    default:
      return sql`EXISTS (SELECT FROM jsonb_array_elements(${given}) AS each(value) WHERE each.value = ${found})`;
  }
}
