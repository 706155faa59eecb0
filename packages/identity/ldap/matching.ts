// Matches an entry against a filter: true, false, or undefined if it can't be decided (RFC 4511,
// section 4.5.1.7). Comparison ignores case, but not spaces.

import { parseDistinguishedName } from '@holdfast/kit/distinguished-name';
import type { Attribute, Entry } from './entry.ts';
import type { Filter } from './filter.ts';
import { attributeKey, syntaxOf } from './schema.ts';

export type Truth = boolean | undefined;
export type Match = (entry: Entry) => Truth;

/** Key of a name as a client wrote it; undefined when it is none. */
export type NameKey = (text: string) => string | undefined;

/**
 * Rules of extensible filters that come down to equality here; the last is membership in a chain,
 * and groups do not nest.
 */
const EQUALITY_RULES: ReadonlySet<string> = new Set([
  'caseignorematch',
  '2.5.13.2',
  'caseignoreia5match',
  '1.3.6.1.4.1.1466.109.114.2',
  'distinguishednamematch',
  '2.5.13.1',
  'integermatch',
  '2.5.13.14',
  'objectidentifiermatch',
  '2.5.13.0',
  '1.2.840.113556.1.4.1941',
]);

export function compileFilter(filter: Filter, nameKey: NameKey): Match {
  switch (filter.kind) {
    case 'and':
      return every(filter.parts.map((part) => compileFilter(part, nameKey)));
    case 'or':
      return some(filter.parts.map((part) => compileFilter(part, nameKey)));
    case 'not': {
      const part = compileFilter(filter.part, nameKey);
      return (entry) => negated(part(entry));
    }
    case 'present':
      return leaf(filter.attribute, () => true);
    case 'equal':
      return filter.value === undefined ? () => undefined : equality(filter.attribute, filter.value, nameKey);
    case 'substring':
      return substring(filter);
    case 'extensible':
      return extensible(filter, nameKey);
    case 'atLeast':
    case 'atMost':
    default:
      return filter.value === undefined ? () => undefined : ordering(filter.kind, filter.attribute, filter.value);
  }
}

function negated(truth: Truth): Truth {
  return truth === undefined ? undefined : !truth;
}

function every(parts: readonly Match[]): Match {
  return (entry) => {
    let all: Truth = true;
    for (const part of parts) {
      const truth = part(entry);
      if (truth === false) return false;
      if (truth === undefined) all = undefined;
    }
    return all;
  };
}

function some(parts: readonly Match[]): Match {
  return (entry) => {
    let any: Truth = false;
    for (const part of parts) {
      const truth = part(entry);
      if (truth === true) return true;
      if (truth === undefined) any = undefined;
    }
    return any;
  };
}

/** An entry without the attribute does not match; an attribute that nobody knows cannot be told. */
function leaf(attribute: string, test: (attribute: Attribute) => Truth): Match {
  const key = attributeKey(attribute);
  const absent = syntaxOf(key) === undefined ? undefined : false;
  return (entry) => {
    const found = entry.attributes.get(key);
    return found === undefined ? absent : test(found);
  };
}

export function equality(attribute: string, value: string, nameKey: NameKey): Match {
  const folded = value.toLowerCase();
  let key: { value: string | undefined } | undefined;
  return leaf(attribute, ({ values, keys }) => {
    if (keys === undefined) return values.some((each) => each.toLowerCase() === folded);
    key ??= { value: nameKey(value) };
    return key.value === undefined ? undefined : keys().includes(key.value);
  });
}

function substring(filter: Extract<Filter, { kind: 'substring' }>): Match {
  const initial = filter.initial.toLowerCase();
  const any = filter.any.map((piece) => piece.toLowerCase());
  const final = filter.final.toLowerCase();
  return leaf(filter.attribute, ({ values }) =>
    values.some((value) => {
      const text = value.toLowerCase();
      if (!text.startsWith(initial)) return false;
      let at = initial.length;
      for (const piece of any) {
        const found = text.indexOf(piece, at);
        if (found === -1) return false;
        at = found + piece.length;
      }
      return text.length - final.length >= at && text.endsWith(final);
    }),
  );
}

function ordering(kind: 'atLeast' | 'atMost', attribute: string, value: string): Match {
  const syntax = syntaxOf(attributeKey(attribute));
  const holds = (comparison: number): boolean => (kind === 'atLeast' ? comparison >= 0 : comparison <= 0);
  if (syntax === 'integer') {
    if (!/^-?\d{1,15}$/.test(value)) return () => undefined;
    return leaf(attribute, ({ values }) => values.some((each) => holds(Number(each) - Number(value))));
  }
  const folded = value.toLowerCase();
  return leaf(attribute, ({ values, keys }) =>
    keys === undefined ? values.some((each) => holds(compareText(each.toLowerCase(), folded))) : undefined,
  );
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function extensible(filter: Extract<Filter, { kind: 'extensible' }>, nameKey: NameKey): Match {
  const { attribute, rule, value } = filter;
  if (value === undefined || attribute === undefined) return () => undefined;
  if (rule !== undefined && !EQUALITY_RULES.has(rule)) return () => undefined;
  const own = equality(attribute, value, nameKey);
  if (!filter.dnAttributes) return own;
  const key = attributeKey(attribute);
  const folded = value.toLowerCase();
  return some([
    own,
    (entry) =>
      (parseDistinguishedName(entry.dn) ?? [])
        .flat()
        .some((pair) => attributeKey(pair.type) === key && pair.value.toLowerCase() === folded),
  ]);
}
