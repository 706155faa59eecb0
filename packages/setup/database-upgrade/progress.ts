// Shows how many rows a dump or a restore has copied, from the progress that PostgreSQL reports.

import { say } from '@holdfast/kit/command';
import type { PrivateServer } from './server.ts';

const LOOK_EVERY_MS = 5_000;
const COPYING = `SELECT relid::regclass::text AS name, sum(tuples_processed) AS rows FROM pg_stat_progress_copy
  WHERE datname = 'cot' AND relid <> 0 GROUP BY relid`;
const INDEXING = `SELECT count(*) AS builds FROM pg_stat_progress_create_index`;

/** Counts a table as complete when it is no longer copied. `tables`: rows by qualified name. */
export function copyProgress(
  server: Pick<PrivateServer, 'rows'>,
  verb: string,
  tables: Readonly<Record<string, number>>,
  clockMs: () => number = () => performance.now(),
): { end: () => void } {
  const began = clockMs();
  const all = Object.values(tables).reduce((sum, rows) => sum + rows, 0);
  const seen = new Map<string, number>();
  let isLooking = false;

  async function look(): Promise<void> {
    const copying = await server.rows<{ name: string; rows: number }>('postgres', COPYING);
    const [{ builds } = { builds: 0 }] = await server.rows<{ builds: number }>('postgres', INDEXING);
    const names = new Map(copying.map(({ name, rows }) => [qualified(name), rows]));
    for (const name of seen.keys()) if (!names.has(name)) seen.set(name, tables[name] ?? 0);
    for (const [name, rows] of names) seen.set(name, rows);
    const done = Math.min(
      all,
      [...seen.values()].reduce((sum, rows) => sum + rows, 0),
    );
    say(
      `${progressLine(verb, done, all, (clockMs() - began) / 1000)}${builds > 0 ? ` Building ${builds} indexes.` : ''}\n`,
    );
  }

  const timer = setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    // A server that has just ended answers no more; the work itself reports its failure.
    void look()
      .catch(() => undefined)
      .finally(() => (isLooking = false));
  }, LOOK_EVERY_MS);
  return { end: () => clearInterval(timer) };
}

/** `Exporting: 1,200,000 of 3,400,000 rows (35 %), 40,000 rows/s, about 55 s left.` */
export function progressLine(verb: string, done: number, all: number, seconds: number): string {
  const number = (value: number): string => Math.round(value).toLocaleString('en-US');
  const rate = seconds > 0 ? done / seconds : 0;
  const percent = all === 0 ? 100 : Math.floor((100 * done) / all);
  const left = rate > 0 && done < all ? `, about ${number((all - done) / rate)} s left` : '';
  return `${verb}: ${number(done)} of ${number(all)} rows (${percent} %), ${number(rate)} rows/s${left}.`;
}

/** A table of the search path is named without its schema. */
function qualified(name: string): string {
  return name.includes('.') ? name : `public.${name}`;
}
