// What a client wants its certificate written in, by the header Accept (RFC 9110, 12.5.1), read as leniently as old clients
// need: `*; q=.2` stands for everything.

export type Representation = 'json' | 'xml';

/** What each range stands for, the usual one first. `text/plain` is what some clients ask for that read JSON. */
const RANGES: ReadonlyMap<string, readonly Representation[]> = new Map([
  ['application/json', ['json']],
  ['application/xml', ['xml']],
  ['text/plain', ['json']],
  ['text/*', ['json']],
  ['application/*', ['json', 'xml']],
  ['*/*', ['json', 'xml']],
  ['*', ['json', 'xml']],
]);

/** Wanted most comes first; undefined when nothing is wanted that can be given. */
export function wantedRepresentation(accept: string | undefined): Representation | undefined {
  if (accept === undefined || accept.trim() === '') return 'json';
  const ranges = accept.split(',').map(readRange);
  const refused = new Set(ranges.filter(({ weight }) => weight === 0).map(({ type }) => type));
  const [best] = ranges
    .filter(({ weight }) => weight > 0)
    .toSorted((a, b) => b.weight - a.weight || precision(b.type) - precision(a.type))
    .flatMap(({ type }) => RANGES.get(type) ?? [])
    .filter((representation) => !refused.has(`application/${representation}`));
  return best;
}

function readRange(text: string): { type: string; weight: number } {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => /^q\s*=/.test(parameter))?.replace(/^q\s*=\s*/, '');
  return { type, weight: weight === undefined ? 1 : readWeight(weight) };
}

/** What is no weight counts as none given. */
function readWeight(text: string): number {
  return /^(?:[01](?:\.\d*)?|\.\d+)$/.test(text) ? Math.min(1, Number(text)) : 1;
}

function precision(type: string): number {
  return type.includes('*') ? 0 : 1;
}
