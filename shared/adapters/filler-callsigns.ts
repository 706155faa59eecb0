// The callsigns of those who fill the database, out of one row of each.

import { oneLine, shortened } from '../domain/plain-text.ts';
import type { Arrival, FilledTable, TimedQuery } from './arrived-rows.ts';

/** Where a detail is larger, its contact is not looked for behind that. */
const DETAIL_READ = 20_000;
/** Unpacking what is larger would take too long. */
const LARGEST_DETAIL_BYTES = 100_000;
const LONGEST_CALLSIGN = 200;
const CONTACT = /<contact\s[^<>]*?\bcallsign\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/;
const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** By the names of `newest`; without those whose row has none. */
export async function callsignsOf(
  timed: TimedQuery,
  newest: ReadonlyMap<string, Arrival>,
): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const table of new Set([...newest.values()].map((arrival) => arrival.table))) {
    const names = new Map([...newest].filter(([, of]) => of.table === table).map(([name, { id }]) => [id, name]));
    for (const [id, callsign] of await callsignsIn(timed, table, [...names.keys()])) {
      const name = names.get(id);
      if (name !== undefined && callsign !== '') found.set(name, callsign);
    }
  }
  return found;
}

async function callsignsIn(timed: TimedQuery, table: FilledTable, ids: number[]): Promise<[number, string][]> {
  const { callsign } = table;
  if (callsign === undefined) return [];
  const isDetail = 'detail' in callsign;
  const column = isDetail ? callsign.detail : callsign.column;
  const rows = await timed(
    (tx) => tx<{ id: number; text: string | null }[]>`
      SELECT r.id::float8 AS id,
        CASE WHEN pg_column_size(r.${tx.unsafe(column)}) <= ${LARGEST_DETAIL_BYTES} THEN left(r.${tx.unsafe(column)}, ${DETAIL_READ}) END AS text
      FROM ${tx.unsafe(table.table)} r WHERE r.id = ANY (${`{${ids.join()}}`}::text::bigint[])`,
  );
  return rows.map(({ id, text }) => [id, fit(isDetail ? contactIn(text ?? '') : (text ?? ''))]);
}

function contactIn(detail: string): string {
  const [, double, single] = CONTACT.exec(detail) ?? [];
  return (double ?? single ?? '').replaceAll(/&(\w+);/g, (entity, name: string) => ENTITIES[name] ?? entity);
}

function fit(callsign: string): string {
  return shortened(oneLine(callsign), LONGEST_CALLSIGN);
}
