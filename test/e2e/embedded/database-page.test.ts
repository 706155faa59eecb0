// docs/database.md, done as it says: its commands look at what a vacuum would give back, vacuum,
// and ask who fills the disk. And docs/health.md: how one is superuser of the embedded database.

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { newStack, query, stop, type TestStack } from './embedded.ts';
import { commandsOf } from './page-commands.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await newStack();
  expect((await stack.start()).code).toBe(0);
});
afterAll(async () => {
  await stop(stack.data);
});

const LARGE = 5_000_000;

it('gives the room of deleted rows back to the disk', async () => {
  const { api, webadmin, database } = stack.file();
  await query(
    database,
    `INSERT INTO cot_router (uid, cot_type, detail)
     SELECT 'PAGE-' || n % 7, 'a-f-G-U-C', repeat('x', 500) FROM generate_series(1, 20000) AS n;
     DELETE FROM cot_router WHERE uid <> 'PAGE-1';
     SELECT pg_stat_force_next_flush()`,
  );
  await query(database, 'ANALYZE cot_router');
  const running = promisify(execFile)('bash', ['-c', commandsOf('database.md', [['http://127.0.0.1:8080', api]])], {
    timeout: 90_000,
  });
  running.child.stdin?.end(`${webadmin.password}\n`);
  const { stdout } = await running;

  const [preview = {}, begun, ended = {}, disk, size] = stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const [largest] = preview['tables'] as { table: string; bytes: number; reclaimable_bytes: number }[];
  expect(largest?.table).toBe('cot_router');
  expect(largest?.reclaimable_bytes).toBeGreaterThan(LARGE);
  expect(preview).toMatchObject({ enough_disk: true, running: null });
  expect(begun).toMatchObject({ id: ended['id'], kind: 'vacuum' });
  expect(ended).toMatchObject({ state: 'succeeded', progress: 1, result: { mode: 'full' } });
  const { bytes_given_back: back } = ended['result'] as { bytes_given_back: number };
  expect(back).toBeGreaterThan(LARGE);
  expect(disk).toHaveProperty('data.mounts');
  expect(size).toMatchObject({ locked_tables: [], growth_basis: 'none' });
  const [left] = await query<{ count: string }>(database, `SELECT count(*) FROM cot_router WHERE uid LIKE 'PAGE%'`);
  expect(Number(left?.count)).toBe(2858);
}, 120_000);

it('lets a superuser work on the embedded database while the stack stands still', async () => {
  const page = commandsOf('health.md', [['realpath data', `realpath ${stack.data}`]]);
  const running = promisify(execFile)('bash', ['-c', page], { timeout: 60_000 });
  running.child.stdin?.end(
    "ALTER SYSTEM SET fsync = 'off';\nALTER SYSTEM RESET ALL;\nALTER SYSTEM SET log_lock_waits = on;\nSELECT pg_reload_conf();\n",
  );
  const { stdout, stderr } = await running;
  expect(`${stdout}${stderr}`).not.toContain('ERROR');
  const set = readFileSync(join(stack.data, 'pgdata/postgresql.auto.conf'), 'utf8');
  expect(set).toContain("log_lock_waits = 'on'");
  expect(set).not.toContain('fsync');
  expect((await stack.start()).code).toBe(0);
}, 120_000);
