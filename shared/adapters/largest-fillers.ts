// The types and the UIDs that took up most, out of rows that stand for others.

import { oneLine, shortened } from '../domain/plain-text.ts';
import type { Filler, Fillers } from '../ports/growth-facts.ts';
import type { Arrival } from './arrived-rows.ts';

const LARGEST = 10;
const LONGEST_NAME = 200;
const NO_NAME = '(none)';

export interface LargestFillers {
  found: Omit<Fillers, 'uids'>;
  /** Without callsigns. */
  uids: Filler[];
  /** The newest row of each of those UIDs that was looked at, by the name of the filler. */
  newest: Map<string, Arrival>;
}

interface Sum {
  name: string;
  rows: number;
  bytes: number;
  newest: Arrival;
  rowsOfType: Map<string, number>;
}

export function largestFillers(arrived: readonly Arrival[], seconds: number): LargestFillers {
  const [types, uids] = [new Map<string, Sum>(), new Map<string, Sum>()];
  let [rows, bytes] = [0, 0];
  for (const each of arrived) {
    rows += each.weight;
    bytes += each.weight * each.bytes;
    add(types, typeOf(each), each);
    add(uids, senderOf(each), each);
  }
  const largest = (of: ReadonlyMap<string, Sum>): Sum[] =>
    [...of.values()].toSorted((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1)).slice(0, LARGEST);
  const filler = (sum: Sum): Filler => ({
    name: sum.name,
    share: sum.bytes / bytes,
    rows: Math.round(sum.rows),
    bytes: Math.round(sum.bytes),
  });
  const heaviest = largest(uids);
  return {
    found: {
      seconds,
      sampled: arrived.length,
      rows: Math.round(rows),
      bytes: Math.round(bytes),
      types: largest(types).map(filler),
    },
    uids: heaviest.map((sum) => ({ ...filler(sum), cot_type: mostOf(sum.rowsOfType) })),
    newest: new Map(heaviest.map(({ name, newest }) => [name, newest])),
  };
}

function add(sums: Map<string, Sum>, name: string, arrival: Arrival): void {
  const sum = sums.get(name) ?? { name, rows: 0, bytes: 0, newest: arrival, rowsOfType: new Map<string, number>() };
  sum.rows += arrival.weight;
  sum.bytes += arrival.weight * arrival.bytes;
  if (arrival.at_ms > sum.newest.at_ms) sum.newest = arrival;
  const type = typeOf(arrival);
  sum.rowsOfType.set(type, (sum.rowsOfType.get(type) ?? 0) + arrival.weight);
  sums.set(name, sum);
}

function mostOf(rowsOfType: ReadonlyMap<string, number>): string | null {
  return [...rowsOfType].toSorted(([, a], [, b]) => b - a)[0]?.[0] ?? null;
}

function typeOf({ cot_type: type }: Arrival): string {
  return fit(type);
}

/** A chat message has a UID of its own, in which that of its sender stands. */
function senderOf({ uid }: Arrival): string {
  return fit(/^GeoChat\.([^.]+)\./.exec(uid ?? '')?.[1] ?? uid);
}

/** What anybody may send comes out on one line and bounded. */
export function fit(text: string | null): string {
  const line = shortened(oneLine(text ?? ''), LONGEST_NAME);
  return line === '' ? NO_NAME : line;
}
