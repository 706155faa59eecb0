// An empty database of a real stack, for the tests of one file that bring a schema of their own.

import { afterAll, beforeAll, expect } from 'vitest';
import { newStack, query, stop, type TestStack } from './embedded.ts';

export interface EmptyDatabase {
  /** Of a role that owns the database. */
  url: () => string;
  /** The data directory of its stack: what is put there goes with it. */
  data: () => string;
  inDatabase: <T extends object>(text: string) => Promise<T[]>;
}

/** Starts a stack before the tests of the file, empties its core database, and stops it afterwards. */
export function emptyDatabase(): EmptyDatabase {
  let stack: TestStack;
  const inDatabase = <T extends object>(text: string): Promise<T[]> => query<T>(stack.file().database, text);
  beforeAll(async () => {
    stack = await newStack();
    expect((await stack.start()).code).toBe(0);
    await inDatabase('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
  });
  afterAll(async () => {
    await stop(stack.data);
  });
  return { url: () => stack.file().database, data: () => stack.data, inDatabase };
}
