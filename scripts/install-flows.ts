// Installs the flow engine without starting anything, for the tests that run it: they ask nobody on the internet themselves.

import { resolve } from 'node:path';
import { StackError } from '../compose/embedded/stack-error.ts';
import { installFlows } from './flows.ts';

try {
  await installFlows(resolve(import.meta.dirname, '..'), (text) => void process.stderr.write(text));
} catch (error) {
  if (!(error instanceof StackError)) throw error;
  process.stderr.write(`${error.message}\n  Remedy: ${error.remedy}\n`);
  process.exitCode = 1;
}
