import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MIGRATIONS } from '../../../shared/runtime/migrations/index.ts';
import { emptyDatabase } from '../../../test/e2e/embedded/empty-database.ts';
import { migrate, type Migration } from '../postgres/migrate.ts';
import { connect, type Sql } from '../postgres/postgres.ts';
import { Secret } from '../secret.ts';

const database = emptyDatabase();
let sql: Sql;

const ONE: Migration = { number: 1, name: 'one', sql: 'CREATE TABLE one (n int); INSERT INTO one VALUES (1);' };
const TWO: Migration = { number: 2, name: 'two', sql: 'ALTER TABLE one ADD COLUMN m int;' };

beforeAll(() => {
  sql = connect(new Secret(database.stateUrl()), { name: 'test' });
});

afterAll(() => sql.end());

beforeEach(async () => {
  await sql.unsafe('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
});

describe('migrations', () => {
  it('apply in order, once', async () => {
    expect(await migrate(sql, [ONE, TWO])).toEqual([1, 2]);
    expect(await migrate(sql, [ONE, TWO])).toEqual([]);
    expect(await sql`SELECT number, name FROM schema_migration ORDER BY number`).toEqual([
      { number: 1, name: 'one' },
      { number: 2, name: 'two' },
    ]);
  });

  it('apply only what is new', async () => {
    await migrate(sql, [ONE]);
    expect(await migrate(sql, [ONE, TWO])).toEqual([2]);
  });

  it('roll one back that fails, keep those before, and can go on later', async () => {
    const broken = { ...TWO, sql: 'CREATE TABLE half (n int); SELECT nonsense();' };
    await expect(migrate(sql, [ONE, broken])).rejects.toThrow(/nonsense/);
    expect(await sql`SELECT to_regclass('half') AS half, to_regclass('one') IS NOT NULL AS one`).toEqual([
      { half: null, one: true },
    ]);
    expect(await migrate(sql, [ONE, TWO])).toEqual([2]);
  });

  it('run by several processes at once are applied once', async () => {
    const others = [1, 2, 3].map(() => connect(new Secret(database.stateUrl()), { name: 'test' }));
    const results = await Promise.all(others.map((other) => migrate(other, [ONE, TWO])));
    await Promise.all(others.map((other) => other.end()));
    expect(results.flat().toSorted((a, b) => a - b)).toEqual([1, 2]);
    expect(await sql`SELECT count(*)::int AS n FROM one`).toEqual([{ n: 1 }]);
  });

  it('refuse a database that a newer release has used', async () => {
    await migrate(sql, [ONE, TWO]);
    await expect(migrate(sql, [ONE])).rejects.toThrow(/newer Holdfast[^]*Remedy/);
  });

  it('refuse a database whose history is not ours', async () => {
    await migrate(sql, [ONE]);
    await expect(migrate(sql, [{ ...ONE, sql: 'CREATE TABLE other ();' }, TWO])).rejects.toThrow(
      /Migration 1 \(one\)[^]*Remedy/,
    );
    expect(await sql`SELECT count(*)::int AS n FROM schema_migration`).toEqual([{ n: 1 }]);
  });

  it('refuse a database with tables of somebody else, and leave it alone', async () => {
    await sql`CREATE TABLE precious (n int)`;
    await expect(migrate(sql, [ONE])).rejects.toThrow(/not Holdfast's[^]*Nothing was changed/);
    expect(await sql`SELECT to_regclass('schema_migration') AS made`).toEqual([{ made: null }]);
  });

  it('of the product are numbered from 1 without gaps, and apply', async () => {
    expect(MIGRATIONS.map(({ number }) => number)).toEqual(MIGRATIONS.map((_, index) => index + 1));
    expect(await migrate(sql, MIGRATIONS)).toEqual(MIGRATIONS.map(({ number }) => number));
  });
});
