// One writer per key: in one process, and in two over a real database.

import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { serializeByKey } from '@holdfast/kit/concurrency';
import { type DatabaseOptions, freshConnections, keptDatabase, type RunSql } from '@holdfast/kit/kept-database';
import type { Sql } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import { httpIdentity } from '../../shared/identity/authentik/http.ts';
import { exclusiveByDatabase } from '../../shared/identity/exclusive.ts';
import type { Exclusive } from '../../shared/identity/port.ts';
import { alertDatabase } from '../e2e/embedded/alert-database.ts';
import { query } from '../e2e/embedded/embedded.ts';
import { identityServer } from './fake-identity-server.ts';

const OPTIONS: DatabaseOptions = {
  name: 'exclusive-test',
  called: 'our own database',
  variable: 'DATABASE_URL',
  withinMs: 20_000,
};

/** A system without locks and versions: who reads and then writes loses what others wrote meanwhile. */
function register(): { value: number; most: number; increment: () => Promise<void> } {
  let inside = 0;
  const it = { value: 0, most: 0, increment };
  async function increment(): Promise<void> {
    inside += 1;
    it.most = Math.max(it.most, inside);
    const read = it.value;
    await delay(1);
    it.value = read + 1;
    inside -= 1;
  }
  return it;
}

describe('a queue per key', () => {
  it('lets one at a time do its work, in order, and forgets keys', async () => {
    const inTurn = serializeByKey({ ms: 5_000, late: 'The work before' });
    const order: number[] = [];
    const place = register();
    await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        inTurn('one', async () => {
          await place.increment();
          order.push(index);
        }),
      ),
    );
    expect([place.value, place.most]).toEqual([50, 1]);
    expect(order).toEqual(Array.from({ length: 50 }, (_, index) => index));
    await delay(0);
    expect(inTurn.size()).toBe(0);
  });

  it('goes on after a failure, which passes through', async () => {
    const inTurn = serializeByKey({ ms: 5_000, late: 'The work before' });
    const failure = new Error('mine');
    const first = inTurn('one', () => Promise.reject(failure));
    const second = inTurn('one', () => Promise.resolve(2));
    await expect(first).rejects.toBe(failure);
    expect(await second).toBe(2);
    await delay(0);
    expect(inTurn.size()).toBe(0);
  });

  it('lets nobody wait for ever, nor overtake those before', async () => {
    const inTurn = serializeByKey({ ms: 50, late: 'The work before' });
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const first = inTurn('one', () => held);
    let begun = false;
    const impatient = inTurn('one', async () => {
      begun = true;
    });
    await expect(impatient).rejects.toMatchObject({ code: 'unavailable' });
    const place = register();
    const later = inTurn('one', () => place.increment());
    await delay(10);
    expect(place.value).toBe(0);
    release();
    await Promise.all([first, later]);
    expect([begun, place.value]).toEqual([false, 1]);
    await delay(0);
    expect(inTurn.size()).toBe(0);
  });
});

describe('one writer per key, over a database', () => {
  const database = alertDatabase();
  const url = (): string => database.stateUrl();
  const pool = (options: Partial<DatabaseOptions> = {}): RunSql =>
    keptDatabase(new Secret(url()), { ...OPTIONS, ...options });
  const kill = (name: string): Promise<object[]> =>
    query(url(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '${name}'`);

  it.each([
    ['kept connections', (): Exclusive => exclusiveByDatabase(pool())],
    [
      'fresh connections, without a queue',
      (): Exclusive => exclusiveByDatabase(freshConnections(new Secret(url()), OPTIONS), { queued: false }),
    ],
  ])('loses no update of two processes: %s', async (_, make) => {
    const place = register();
    const times = Array.from({ length: 100 });
    await Promise.all(
      [make(), make()].map(async (exclusive) => {
        // Ten at a time: each a connection of its own, where connections are fresh.
        const rest = times.values();
        const work = async (): Promise<void> => {
          for (const _ of rest) await exclusive('account:7', () => place.increment());
        };
        await Promise.all(Array.from({ length: 10 }, work));
      }),
    );
    expect([place.value, place.most]).toEqual([200, 1]);
  });

  it('loses no attribute that two processes write to one account of an identity provider', async () => {
    const server = await identityServer();
    try {
      const token = new Secret(server.token);
      const both = [pool(), pool()].map((run) =>
        httpIdentity({ url: server.url, token, fetch, exclusive: exclusiveByDatabase(run) }),
      );
      const account = await both[0]?.accounts.create({ username: 'ada', name: '' });
      const id = account?.id ?? 0;
      const names = both.map((_, which) => Array.from({ length: 100 }, (_, index) => `app_${which}_${index}`));
      await Promise.all(
        both.map(async ({ accounts }, which) => {
          for (const name of names[which] ?? []) await accounts.changeAttributes(id, { [name]: 1 });
        }),
      );
      expect(Object.keys(server.users.get(id)?.attributes ?? {}).toSorted()).toEqual(names.flat().toSorted());
    } finally {
      server.close();
    }
  });

  it('does not stop with more keys than connections, nor when the work needs a connection too', async () => {
    const run = pool();
    const exclusive = exclusiveByDatabase(run);
    const other = exclusiveByDatabase(pool());
    const keys = Array.from({ length: 20 }, (_, index) => `key:${index}`);
    const work = async (): Promise<number> => {
      const [row] = await run((sql) => sql<{ one: number }[]>`SELECT 1 AS one FROM pg_sleep(0.005)`);
      return row?.one ?? 0;
    };
    const done = await Promise.all([...keys, ...keys].flatMap((key) => [exclusive(key, work), other(key, work)]));
    expect(done).toEqual(Array.from({ length: 80 }, () => 1));
  });

  it('works on two keys at once', async () => {
    const exclusive = exclusiveByDatabase(pool());
    const { promise: met, resolve: meet } = Promise.withResolvers<void>();
    await Promise.all([exclusive('left', () => met), exclusive('right', async () => meet())]);
  });

  it('lets failures of the work through untouched, and holds no lock afterwards', async () => {
    const exclusive = exclusiveByDatabase(pool());
    for (const failure of [
      new Error('mine'),
      new AppError('conflict', 'taken'),
      Object.assign(new Error(), { code: 'ECONNRESET' }),
    ]) {
      await expect(exclusive('one', () => Promise.reject(failure))).rejects.toBe(failure);
    }
    const thrown = new Error('at once');
    const throws = exclusive('one', () => {
      throw thrown;
    });
    await expect(throws).rejects.toBe(thrown);
    expect(await exclusiveByDatabase(pool())('one', async () => 'free')).toBe('free');
  });

  it('says that the database is lost, and does nothing then', async () => {
    let begun = false;
    const work = async (): Promise<void> => {
      begun = true;
    };
    const nobody = keptDatabase(new Secret('postgres://nobody@127.0.0.1:1/none'), { ...OPTIONS, withinMs: 2_000 });
    await expect(exclusiveByDatabase(nobody)('one', work)).rejects.toMatchObject({ code: 'unavailable' });
    const nowhere = keptDatabase(undefined, OPTIONS);
    await expect(exclusiveByDatabase(nowhere)('one', work)).rejects.toMatchObject({ code: 'unavailable' });
    expect(begun).toBe(false);
  });

  it('gives up waiting for another process, and then never begins', async () => {
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const { promise: isHeld, resolve: entered } = Promise.withResolvers<void>();
    const holder = exclusiveByDatabase(pool())('one', () => {
      entered();
      return held;
    });
    await isHeld;
    let begun = false;
    const waiter = exclusiveByDatabase(pool({ withinMs: 500 }))('one', async () => {
      begun = true;
    });
    try {
      await expect(waiter).rejects.toMatchObject({ code: 'unavailable' });
    } finally {
      release();
    }
    await holder;
    await delay(300);
    expect(begun).toBe(false);
  });

  it('never begins when the lock is given after it gave up', async () => {
    const { promise: locked, resolve: lock } = Promise.withResolvers<void>();
    const sql = { begin: async (use: (transaction: () => Promise<void>) => Promise<void>) => use(() => locked) };
    const lost = new AppError('unavailable', 'timed out');
    const run: RunSql = async (use) => {
      void use(sql as unknown as Sql);
      throw lost;
    };
    let begun = false;
    const work = async (): Promise<void> => {
      begun = true;
    };
    await expect(exclusiveByDatabase(run)('one', work)).rejects.toBe(lost);
    lock();
    await delay(10);
    expect(begun).toBe(false);
  });

  it('answers as the work does when the connection dies meanwhile, and nobody of this process begins before', async () => {
    const exclusive = exclusiveByDatabase(pool({ name: 'exclusive-victim' }));
    const order: string[] = [];
    const first = exclusive('one', async () => {
      await kill('exclusive-victim');
      await delay(300);
      order.push('first');
      return 'written';
    });
    const second = exclusive('one', async () => order.push('second'));
    expect(await first).toBe('written');
    await second;
    expect(order).toEqual(['first', 'second']);
  });

  it('answers as the work does when the work takes longer than the database allows', async () => {
    const exclusive = exclusiveByDatabase(pool({ withinMs: 400 }));
    // Connecting is no part of it.
    await expect.poll(() => exclusive('one', async () => 'connected').catch(() => '')).toBe('connected');
    expect(await exclusive('one', () => delay(900, 'late'))).toBe('late');
    expect(await exclusive('one', async () => 'again')).toBe('again');
  });
});
