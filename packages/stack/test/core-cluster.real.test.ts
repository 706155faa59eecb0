// What a node of several waits for before it starts, in a real database.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { CORE_DATABASE_MIGRATED, CORE_MIGRATIONS, sessionName, workingNodes } from '@holdfast/core';
import type { CoreHandover } from '@holdfast/core/handover';
import type { RunSql } from '@holdfast/kit/kept-database';
import { migrate } from '@holdfast/kit/migrate';
import { connect, type Sql } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import { ensureServerCertificate } from '@holdfast/pki/server-certificate';
import { emptyDatabase } from '../../../test/e2e/embedded/empty-database.ts';
import { filesOfFirstNode } from '../../core/first-node.ts';
import { firstNode, onlyProcess } from '../core-cluster.ts';

const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
const database = emptyDatabase();
let sql: Sql;
let directory: string;
const run: RunSql = (use) => use(sql);
const waiting = (): Promise<void> => firstNode({ directory } as CoreHandover, run, log);

beforeAll(() => {
  sql = connect(new Secret(database.url()), { name: 'test' });
});
afterAll(() => sql.end());
beforeEach(async () => {
  await sql.unsafe('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
  directory = mkdtempSync(join(tmpdir(), 'holdfast-cluster-'));
  await ensureServerCertificate(directory, ['core'], new Date());
  for (const file of filesOfFirstNode(directory)) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, '', { flag: 'a' });
  }
});
afterEach(() => rmSync(directory, { recursive: true }));

it('waits until the first node has applied the last migration', async () => {
  await migrate(sql, CORE_MIGRATIONS.slice(0, -1), CORE_DATABASE_MIGRATED);
  let isReady = false;
  const ready = waiting().then(() => (isReady = true));
  await sql`SELECT pg_sleep(1)`;
  expect(isReady).toBe(false);
  await migrate(sql, CORE_MIGRATIONS, CORE_DATABASE_MIGRATED);
  expect(await ready).toBe(true);
});

it('refuses a database that a newer release has migrated, with the sentence of the first node', async () => {
  const next = { number: CORE_MIGRATIONS.length + 1, name: 'next', sql: 'CREATE TABLE next ();' };
  await migrate(sql, [...CORE_MIGRATIONS, next], CORE_DATABASE_MIGRATED);
  const ofFirst = await migrate(sql, CORE_MIGRATIONS, CORE_DATABASE_MIGRATED).catch((error: unknown) => error);
  await expect(waiting()).rejects.toEqual(ofFirst);
  expect(ofFirst).toMatchObject({ message: expect.stringMatching(/database cot[^]*newer Holdfast[^]*Remedy/) });
});

it('refuses a database whose migrations are not those of this release', async () => {
  const others = CORE_MIGRATIONS.map((each) => (each.number === 2 ? { ...each, sql: `${each.sql}\n` } : each));
  await migrate(sql, others, CORE_DATABASE_MIGRATED);
  await expect(waiting()).rejects.toThrow(/Migration 2[^]*Remedy/);
});

it('starts no node that another process is already, until that one has ended', async () => {
  const [node, working] = ['core-2', workingNodes(run)];
  const sessions = ['first', 'second'].map((name) =>
    connect(new Secret(database.url()), { name: sessionName({ node, run: name }) }),
  );
  for (const session of sessions) await session`SELECT 1`;
  let ms = 0;
  const clock = { now: () => (ms += 20_000), pause: () => Promise.resolve() };
  await expect(onlyProcess({ node, run: 'second' }, working, log, clock)).rejects.toThrow(
    'After 1 min there is no place for node core-2: another process is this node.',
  );
  await onlyProcess({ node: 'core-3', run: 'third' }, working, log, clock);
  let isAlone = false;
  const alone = onlyProcess({ node, run: 'second' }, working, log).then(() => (isAlone = true));
  await sql`SELECT pg_sleep(1)`;
  expect(isAlone).toBe(false);
  await sessions[0]?.end();
  expect(await alone).toBe(true);
  await sessions[1]?.end();
});
