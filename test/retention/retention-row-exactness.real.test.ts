// What is said beforehand and what the embedded core then deletes, in random worlds: the same rows, and just those of the rules.

import { randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { Secret } from '@holdfast/kit/secret';
import { coreTables } from '../../packages/core/test/core-tables.ts';
import { retentionFacts } from '../../shared/retention/facts.ts';
import type { RetentionFacts } from '../../shared/retention/port.ts';
import { FIGURES } from '../../shared/runtime/both-hosts.ts';
import { retentionRows, retentionWorld } from './core-retention-world-contract.ts';
import { goingByHand, idsOf, readRows } from './fake-retention-by-hand.ts';
import { randomWorld } from './fake-retention-random-world.ts';

const tables = coreTables();
const SEEDS = Array.from({ length: Number(process.env['HOLDFAST_TEST_WORLDS'] ?? 12) }, (_, n) => n + 1);
let facts: RetentionFacts;
beforeAll(() => {
  facts = retentionFacts(keptDatabase(new Secret(tables.url()), FIGURES));
});
beforeEach(() => retentionRows(() => tables.sql).emptied());

const HANGING = ['uid', 'resource', 'keyword', 'uid_keyword', 'resource_keyword', 'subscription'];

/** What hangs on events and missions, by itself. */
async function hanging() {
  const read = async (text: string) => Array.from(await tables.sql.unsafe(text));
  const parts = HANGING.map(
    (each) => `SELECT '${each}' AS of, h.mission_id::int, to_json(h)::text AS row FROM mission_${each} h`,
  );
  return {
    images: await read('SELECT id, cot_id::int FROM cot_image ORDER BY id'),
    thumbnails: await read('SELECT id, cot_id::int, cot_image_id FROM cot_thumbnail ORDER BY id'),
    links: await read('SELECT id, containing_event::int FROM cot_link ORDER BY id'),
    parents: await read('SELECT id::int, parent_mission_id::int AS parent FROM mission ORDER BY id'),
    ofMissions: await read(`SELECT * FROM (${parts.join(' UNION ALL ')}) parts ORDER BY 1, 2, 3`),
  };
}

describe('a preview and the run after it', () => {
  it.each(SEEDS)('agree to the row, and what stays is what the rules leave: world %d', async (seed) => {
    const { sql, pointing, limits, exemptKeywords } = randomWorld(seed);
    if (Object.keys(limits).length === 0) return;
    await tables.sql.unsafe(`${sql}${pointing} ANALYZE`);
    const [before, hung] = [await readRows(tables.sql), await hanging()];
    const question = { core: 'embedded', limits, exemptKeywords, withinMs: 20_000 } as const;
    const going = goingByHand(before, question);
    const reply = await facts.expired(question);

    const world = retentionWorld(tables.sql, tables.data());
    world.exempt.push(...exemptKeywords);
    const { id } = await world.service.begin({ id: randomUUID(), limits, maxRows: null });
    const run = await world.ended(id);
    const reportedRows = Object.fromEntries(Object.entries(reply).map(([type, each]) => [type, each.rows]));
    expect(run).toMatchObject({ state: 'done', error: null, limits, rows: reportedRows });
    expect(run.included).toEqual(reply.missions?.included ?? { cot: 0, files: 0 });
    const all = Object.values(run.rows).reduce((sum, each) => sum + each, run.included.cot + run.included.files);
    expect(run.expected).toBe(all);

    expect(idsOf(await readRows(tables.sql))).toEqual(idsOf(before, going));
    const goneEvents = [...going.cot, ...going.legacyChat, ...going.withMissions.events];
    const gone = new Set(goneEvents.map((each) => each.id));
    const goneMissions = new Set(going.missions.map((each) => each.id));
    const images = hung.images.filter((each) => !gone.has(each['cot_id']));
    const imageIds = new Set(images.map((each) => each['id']));
    expect(await hanging()).toEqual({
      images,
      thumbnails: hung.thumbnails.filter(
        (each) => !gone.has(each['cot_id']) && (each['cot_image_id'] === null || imageIds.has(each['cot_image_id'])),
      ),
      links: hung.links.filter((each) => !gone.has(each['containing_event'])),
      parents: hung.parents
        .filter((each) => !goneMissions.has(each['id']))
        .map(({ id: child, parent }) => ({ id: child, parent: goneMissions.has(parent) ? null : parent })),
      ofMissions: hung.ofMissions.filter((each) => !goneMissions.has(each['mission_id'])),
    });
    expect(await facts.left(question)).toEqual({ left: [], unknown: [] });
    expect(
      await world.service.begin({ id: randomUUID(), limits, maxRows: 0 }).then((next) => world.ended(next.id)),
    ).toMatchObject({ state: 'done', expected: 0 });
  });
});
