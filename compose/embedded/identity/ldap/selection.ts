// Which attributes of an entry a search asked for: names, `*`, `+`, `1.1` (RFC 4511, section 4.5.1.8; RFC 3673).

import type { Entry } from './entry.ts';
import type { SentAttribute } from './result.ts';
import { attributeKey, isOperational } from './schema.ts';

export type Selection = (entry: Entry) => SentAttribute[];

/** `wanted` in lower case. */
export function selection(wanted: readonly string[]): Selection {
  const names = new Set(wanted.map(attributeKey));
  const all = wanted.length === 0 || names.has('*');
  const operational = names.has('+');
  return (entry) => {
    const sent: SentAttribute[] = [];
    for (const [key, { name, values }] of entry.attributes) {
      const ofKind = isOperational(key) && entry.operational !== true ? operational : all;
      if (ofKind || names.has(key) || (operational && entry.operational === true)) sent.push({ name, values });
    }
    return sent;
  };
}
