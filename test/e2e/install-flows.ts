// Installs the flow engine without starting anything, for the tests that run it: they ask nobody on the internet themselves.

import { resolve } from 'node:path';
import { StackError } from '@holdfast/kit/app-error';
import { installFlows } from '@holdfast/stack/flows/install';

try {
  await installFlows(resolve(import.meta.dirname, '../..'), (text) => void process.stderr.write(text));
} catch (error) {
  if (!(error instanceof StackError)) throw error;
  process.stderr.write(`${error.message}\n  Remedy: ${error.remedy}\n`);
  process.exitCode = 1;
}
