// The questions about containers that may be put to the engine: three kinds of GET. Anything else, in whatever spelling, is
// refused; the socket behind is root on the machine.

import { z } from 'zod';

export type ContainerQuestion =
  | { kind: 'ping' }
  /** `labels` narrow it further down. */
  | { kind: 'list'; all: boolean; labels: string[] }
  | { kind: 'inspect'; id: string };

const LONGEST_TARGET = 4096;
const VERSION = /^\/v1\.\d{1,3}(?=\/)/;
const INSPECT = /^\/containers\/([0-9a-f]{12,64})\/json$/;
const ALL: Record<string, boolean> = { '1': true, true: true, '0': false, false: false };
/** As a list, or as older clients write it. */
const filters = z.strictObject({
  label: z
    .union([z.array(z.string()), z.record(z.string(), z.boolean()).transform((each) => Object.keys(each))])
    .optional(),
});

/** Undefined for what is not let through. `target` is the request target as it came. */
export function questionIn(target: string): ContainerQuestion | undefined {
  // One spelling of each: nothing here is decoded before it is compared.
  if (target.length > LONGEST_TARGET || !/^\/[!-~]*$/.test(target) || target.includes('#')) return undefined;
  const [whole = '', query, more] = target.split('?');
  const path = whole.replace(VERSION, '');
  if (more !== undefined) return undefined;
  if (path === '/containers/json') return listIn(new URLSearchParams(query));
  if (query !== undefined) return undefined;
  if (path === '/_ping') return { kind: 'ping' };
  const id = INSPECT.exec(path)?.[1];
  return id === undefined ? undefined : { kind: 'inspect', id };
}

function listIn(query: URLSearchParams): ContainerQuestion | undefined {
  const names = [...query.keys()];
  if (names.some((name) => name !== 'all' && name !== 'filters') || new Set(names).size < names.length)
    return undefined;
  const all = ALL[query.get('all') ?? '0'];
  const labels = labelsIn(query.get('filters') ?? '{}');
  return all === undefined || labels === undefined ? undefined : { kind: 'list', all, labels };
}

function labelsIn(text: string): string[] | undefined {
  try {
    const read = filters.safeParse(JSON.parse(text));
    return read.success ? (read.data.label ?? []) : undefined;
  } catch {
    return undefined;
  }
}
