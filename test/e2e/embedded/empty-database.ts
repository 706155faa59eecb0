// The stack's databases, empty, on a server of their own, for the tests of one file that bring a
// schema of their own.

import { mkdirSync } from 'node:fs';
import { afterAll, beforeAll } from 'vitest';
import { IDENTITY_DATABASE, STATE_DATABASE, wantedState } from '@holdfast/stack/database/roles';
import { type BareServer, startBareServer } from '../../../packages/setup/test/bare-server.ts';
import { newDataDirectory, query } from './embedded.ts';

export interface EmptyDatabase {
  /** Of the core, as its owner. */
  url: () => string;
  /** Our own, as its owner. */
  stateUrl: () => string;
  /** Of the role that may only read, as health does. */
  readerUrl: () => string;
  /** Kills the server and starts it again. */
  crash: () => Promise<void>;
  /** A directory for the files of the tests: it goes with them. */
  data: () => string;
  inDatabase: <T extends object>(text: string) => Promise<T[]>;
}

/** That server asks nobody for a password. Made once for all files: without the salts. */
const PASSWORDS = { core: 'unasked', app: 'unasked', reader: 'unasked', identity: 'unasked' };
const STATEMENTS = wantedState(PASSWORDS, [STATE_DATABASE, IDENTITY_DATABASE])
  .replaceAll(/PASSWORD '[^']*'/g, 'PASSWORD NULL')
  .split(/;\n\n(?!$)/);

/** Starts the server before the tests of the file, and ends it afterwards. */
export function emptyDatabase(): EmptyDatabase {
  let server: BareServer;
  let data: string;
  const url = (): string => server.url('martiuser');
  beforeAll(async () => {
    server = await startBareServer([], 16, STATEMENTS);
    data = newDataDirectory();
    mkdirSync(data);
  });
  afterAll(() => server.end());
  return {
    url,
    stateUrl: () => server.url('holdfast', 'holdfast'),
    readerUrl: () => server.url('holdfast_ro'),
    crash: () => server.crash(),
    data: () => data,
    inDatabase: (text) => query(url(), text),
  };
}
