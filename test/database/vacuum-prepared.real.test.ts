// A table that a prepared transaction holds: a vacuum does not ask for it, and says how to end what no process holds.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BareServer, startBareServer } from '../../packages/setup/test/bare-server.ts';
import { readerOf } from './vacuum-world.ts';

let server: BareServer;

beforeAll(async () => {
  server = await startBareServer();
  await server.restart({ max_prepared_transactions: '2' });
});
afterAll(() => server?.end());

describe('a prepared transaction', () => {
  const holders = () => readerOf(server.url('holdfast_ro')).holders('full', 'public', 'held');

  it('is who holds a table, with its name, its owner and its time, also after the server was started anew', async () => {
    await server.ask('CREATE TABLE held (n int)', 'BEGIN', 'LOCK held IN SHARE MODE', "PREPARE TRANSACTION 'reads'");
    const [reads] = await holders();
    expect(reads).toMatchObject({ pid: 0, user: 'postgres', application: "'reads'" });
    expect(Math.abs(Date.now() - Date.parse(reads?.since ?? ''))).toBeLessThan(60_000);
    await server.restart({ max_prepared_transactions: '2' });
    expect(await holders()).toEqual([reads]);
    await server.ask("ROLLBACK PREPARED 'reads'");
    expect(await holders()).toEqual([]);
  });
});
