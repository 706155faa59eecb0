// The calls of open clients over a real database: people of two groups, and events of theirs.

import type postgres from 'postgres';
import { SaxesParser } from 'saxes';
import type { AdminApiOptions } from '../admin/options.ts';
import type { ArchivedEvent } from '../model/stream.ts';
import type { RunSql } from '../store/certificates.ts';
import { cotWriter } from '../store/cot-events.ts';
import { groupStore, GroupVectors } from '../store/groups.ts';
import { history } from '../store/history.ts';
import { archivable } from '../archive/archivable.ts';
import { adminWorld, byCertificate } from './fake-core-admin.ts';
import { archivedEvent } from './fake-core-archive.ts';

/** ada and bob are in Ops, eve is in Med, ron only reads. */
export const ADA = byCertificate('ada');
export const BOB = byCertificate('bob');
export const EVE = byCertificate('eve');
export const RON = byCertificate('ron', 'ROLE_READONLY');
const GROUPS = { ada: 'core_Ops', bob: 'core_Ops', eve: 'core_Med', ron: 'core_Ops' };

export function callsWorld(sql: postgres.Sql, real: (run: RunSql) => Partial<AdminApiOptions> = () => ({})) {
  const run: RunSql = (use) => use(sql);
  const groups = groupStore(run);
  const vectors = new GroupVectors(run);
  const writer = cotWriter(run, vectors);
  const world = adminWorld({ groups, history: history(run), ...real(run) });
  for (const [name, group] of Object.entries(GROUPS)) {
    world.people.addGroup(group);
    world.people.addPerson(name, 'x').groups.push(group);
  }

  async function placesOf(...names: string[]): Promise<number[]> {
    return (await groups.ensure(names)).map(({ bitpos }) => bitpos).toSorted((a, b) => a - b);
  }

  /** Stores them as the archive does. */
  async function stored(...events: Partial<ArchivedEvent>[]): Promise<void> {
    const rows = events.map((event) => archivable(archivedEvent(event))).filter((row) => row !== undefined);
    const ids = await writer.ids(rows.reduce((sum, row) => sum + row.rows, 0));
    let at = 0;
    const whole = rows.map((row) => ({ ...row, ids: ids.slice(at, (at += row.rows)) }));
    await writer.write(whole, false);
  }

  return { ...world, run, placesOf, stored };
}

/** By a parser of somebody else. Throws for what is not well-formed. */
export function wellFormed(xml: string): void {
  const parser = new SaxesParser();
  parser.on('error', (error) => {
    throw error;
  });
  parser.write(xml).close();
}
