// An empty database on a server of its own, for the tests of one file that bring a schema of their own.

import { mkdirSync } from 'node:fs';
import { afterAll, beforeAll } from 'vitest';
import { type BareServer, startBareServer } from '../fakes/bare-server.ts';
import { newDataDirectory, query } from './embedded.ts';

export interface EmptyDatabase {
  /** Of the role that owns the database. */
  url: () => string;
  /** Of the role that may only read, as health does. */
  readerUrl: () => string;
  /** Kills the server and starts it again. */
  crash: () => Promise<void>;
  /** A directory for the files of the tests: it goes with them. */
  data: () => string;
  inDatabase: <T extends object>(text: string) => Promise<T[]>;
}

/** Starts the server before the tests of the file, and ends it afterwards. */
export function emptyDatabase(): EmptyDatabase {
  let server: BareServer;
  let data: string;
  const url = (): string => server.url('martiuser');
  beforeAll(async () => {
    server = await startBareServer();
    data = newDataDirectory();
    mkdirSync(data);
  });
  afterAll(() => server.end());
  return {
    url,
    readerUrl: () => server.url('holdfast_ro'),
    crash: () => server.crash(),
    data: () => data,
    inDatabase: (text) => query(url(), text),
  };
}
