// docs/retention.md, done as it says: its commands look, set days, run, and show what was done.

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { asAdministrator } from './devices-api.ts';
import { newStack, query, type TestStack } from './embedded.ts';
import { commandsOf } from './page-commands.ts';
import { RUN, stands } from './running-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await newStack();
  expect((await stack.start()).code).toBe(0);
});
// On a stack that others use too, nothing stays set.
afterAll(() => asAdministrator(() => stack).json('PUT', '/api/retention', { policy: KEEPS_ALL, cron: '-' }));

const KEEPS_ALL = { cot: null, geochat: null, files: null, missionpackages: null, missions: null };

const uids = async (table: string): Promise<string[]> =>
  (await query<{ uid: string }>(stack.file().database, `SELECT uid FROM ${table} WHERE uid LIKE 'PAGE${RUN}-%'`))
    .map(({ uid }) => uid)
    .toSorted();

it('keeps what is younger than the days of the page, and deletes the rest', async () => {
  const { api, webadmin, database } = stack.file();
  await query(
    database,
    `INSERT INTO cot_router (uid, cot_type, servertime) VALUES
       ('PAGE${RUN}-old', 'a-f-G-U-C', now() - interval '31 days'), ('PAGE${RUN}-young', 'a-f-G-U-C', now() - interval '29 days'),
       ('PAGE${RUN}-chat-of-old-releases', 'b-t-f', now() - interval '91 days')`,
  );
  await query(
    database,
    `INSERT INTO cot_router_chat (uid, cot_type, servertime) VALUES
       ('PAGE${RUN}-old-chat', 'b-t-f', now() - interval '91 days'), ('PAGE${RUN}-young-chat', 'b-t-f', now() - interval '31 days')`,
  );
  const commands = commandsOf('retention.md', [
    ['http://127.0.0.1:8080', api],
    ['data/core', join(stack.data, 'core')],
  ]);
  const running = promisify(execFile)('bash', ['-c', commands], { timeout: 60_000 });
  running.child.stdin?.end(`${webadmin.password}\n`);
  const { stdout } = await running;

  expect(await uids('cot_router')).toEqual([`PAGE${RUN}-young`]);
  expect(await uids('cot_router_chat')).toEqual([`PAGE${RUN}-young-chat`]);
  const [before, preview, after, begun, ended, runs, health] = stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(before).toMatchObject({ policy: KEEPS_ALL, cron: '-' });
  expect(preview).toMatchObject({ rows: 3, exact: true, types: { cot: { rows: 1 }, geochat: { rows: 2 } } });
  expect(after).toMatchObject({ policy: { ...KEEPS_ALL, cot: 30, geochat: 90, files: 365 }, cron: '0 0 3 * * ?' });
  expect(begun).toMatchObject({ id: ended?.['id'], kind: 'retention' });
  expect(ended).toMatchObject({ kind: 'retention', state: 'succeeded', progress: 1 });
  const { results, count } = runs as { results: object[]; count: number };
  expect(stands || count === 1).toBe(true);
  expect(results[0]).toMatchObject({ state: 'done', rows: { cot: 1, geochat: 2, files: 0 } });
  expect(health).toMatchObject({
    status: 'ok',
    message: expect.stringMatching(/^Kept: cot 30 days, geochat 90 days/),
  });
  expect(stdout).toMatch(/retention run .* done .*cot 1, geochat 2/);
}, 120_000);
