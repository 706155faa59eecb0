// Free JSON values as the database can keep them unchanged.

import type { Json } from '../../../shared/ports/identity.ts';
import { isKeepable } from './names.ts';

const DEEPEST = 32;

/** Why a parsed JSON value cannot be kept: in words, undefined when it can. */
export function whyNotKept(value: unknown, depth = 0): string | undefined {
  if (depth > DEEPEST) return `Nested deeper than ${DEEPEST} levels.`;
  if (typeof value === 'string')
    return isKeepable(value) ? undefined : 'Null characters and broken text are not allowed.';
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : 'A number is out of range.';
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, each] of Object.entries(value)) {
    const why = whyNotKept(key, depth) ?? whyNotKept(each, depth + 1);
    if (why !== undefined) return why;
  }
  return undefined;
}

/** True for an object that is no array. */
export function isJsonObject(value: unknown): value is Record<string, Json> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
