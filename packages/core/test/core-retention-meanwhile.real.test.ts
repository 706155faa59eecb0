// What others do while a run of the embedded core's retention goes on, on a real PostgreSQL:
// nothing that they rely on goes.

import postgres from 'postgres';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import {
  heldTransaction,
  isDeletion,
  LIMIT,
  retentionRows,
  type RetentionWorld,
  retentionWorld,
} from '../../../test/retention/core-retention-world-contract.ts';
import type { RunSql } from '../store/certificates.ts';
import { GroupVectors } from '../store/groups.ts';
import { StoredMissionWrites } from '../store/mission-writes.ts';
import { coreTables } from './core-tables.ts';

const core = coreTables();
const rows = retentionRows(() => core.sql);
let world: RetentionWorld;
let watching: postgres.Sql;

beforeAll(() => {
  watching = postgres(core.url(), { max: 1, fetch_types: false });
});
afterAll(() => watching.end());
beforeEach(async () => {
  await rows.emptied();
  world = retentionWorld(core.sql, core.data());
});

/** Somebody waits for somebody else, or this has come true. */
async function isWaitingOr(other: () => boolean): Promise<void> {
  const isWaiting = async (): Promise<boolean> => {
    const found = await watching`
      SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;
    return found.length > 0 || other();
  };
  await expect.poll(isWaiting, { interval: 5, timeout: 30_000 }).toBe(true);
}

/** Whether it has ended, well or not. */
function endOf(work: Promise<unknown>): () => boolean {
  let isOver = false;
  const over = (): void => void (isOver = true);
  work.then(over, over);
  return () => isOver;
}

describe.each([
  { of: 'no mission', types: ['files'] },
  { of: 'a mission that goes', types: ['missions'] },
] as const)('a file of $of that is put into another mission meanwhile', ({ types }) => {
  let kept: number;
  beforeEach(async () => {
    const file = await rows.file('old');
    if (types[0] === 'missions') await rows.holds(await rows.mission('old'), { file });
    kept = await rows.mission('kept', LIMIT);
  });
  const addedBy = (run: RunSql) =>
    new StoredMissionWrites(run, new GroupVectors(run), () => undefined).addContent(kept, {
      uids: [],
      hashes: ['old'],
      creatorUid: 'somebody',
      sees: 'all',
      now: new Date(),
    });
  const pointingAtNothing = () => core.sql`
    SELECT FROM mission_resource m WHERE NOT EXISTS (SELECT FROM resource f WHERE f.id = m.resource_id)`;

  it('stays', async () => {
    const adding = heldTransaction(core.sql, () => true);
    const added = addedBy(adding.run);
    await adding.reached;
    const ended = world.whole(types);
    await isWaitingOr(endOf(ended));
    adding.end();
    expect((await added).hashes).toEqual(['old']);
    expect(await ended).toMatchObject({ state: 'done', included: { files: 0 } });
    expect([await rows.files(), await rows.missions()]).toEqual([['old'], ['kept']]);
    expect(await pointingAtNothing()).toHaveLength(0);
  });

  it('is not found when it goes first', async () => {
    const deleting = heldTransaction(core.sql, isDeletion);
    const ended = retentionWorld(core.sql, core.data(), { run: deleting.run }).whole(types);
    await deleting.reached;
    const added = addedBy((use) => use(core.sql));
    await isWaitingOr(endOf(added));
    deleting.end();
    await expect(added).rejects.toThrow('No file with the hash old.');
    expect(await ended).toMatchObject({ state: 'done' });
    expect([await rows.files(), await rows.missions()]).toEqual([[], ['kept']]);
    expect(await pointingAtNothing()).toHaveLength(0);
  });
});

it('a batch that is given up, and commits while it is tried again, is counted once', async () => {
  await rows.many(2_500);
  const late = heldTransaction(core.sql, isDeletion);
  let work: Promise<unknown> | undefined;
  const givingUp: RunSql = (use) => {
    const done = late.run(use);
    if (work !== undefined) return done;
    return Promise.race([
      done,
      late.reached.then(() => {
        work ??= done;
        throw new AppError('unavailable', 'no answer in time');
      }),
    ]);
  };
  const ended = retentionWorld(core.sql, core.data(), { run: givingUp }).whole(['cot']);
  await late.reached;
  await isWaitingOr(() => false);
  late.end();
  await work;
  expect(await ended).toMatchObject({ state: 'done', rows: { cot: 2_500 } });
  expect(await rows.uids()).toEqual([]);
});

describe('a mission', () => {
  it.each(['events', 'files'])('that is made invite-only while its %s go keeps the rest, and stays', async (what) => {
    const mission = await rows.mission('old');
    await rows.mission('old too', '2026-02-28T23:59:59.999Z');
    if (what === 'events') {
      await rows.many(10_000);
      await core.sql`INSERT INTO mission_uid SELECT ${mission}, 'many-' || n FROM generate_series(0, 49) n`;
    }
    for (let n = 0; n < 30; n++) await rows.holds(mission, { file: await rows.file(`file ${n}`) });
    const deleting = heldTransaction(core.sql, isDeletion);
    const ended = retentionWorld(core.sql, core.data(), { run: deleting.run }).whole(['missions']);
    await deleting.reached;
    await core.sql`UPDATE mission SET invite_only = true WHERE id = ${mission}`;
    deleting.end();
    const { state, rows: gone, included } = await ended;
    expect([state, gone, await rows.missions()]).toEqual(['done', { missions: 1 }, ['old']]);
    if (what === 'events') expect((await rows.uids()).length).toBe(10_000 - included.cot);
    expect((await rows.files()).length).toBe(what === 'events' ? 30 : 30 - included.files);
    expect(included[what === 'events' ? 'cot' : 'files']).toBeLessThan(what === 'events' ? 6_000 : 30);
  });
});
