// renew-ca.sh on a real stack: refused while it runs, done when it is stopped.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { newDataDirectory, newStack, outcomeOf, run, stop } from './embedded.ts';

const renew = async (...args: string[]) => outcomeOf(run('renew-ca.sh', args));

it('a running stack is left alone; afterwards the CA is renewed, or replaced', async () => {
  const stack = await newStack();
  expect((await stack.start()).code).toBe(0);
  const files = join(stack.data, 'core/certs/files');
  const read = (name: string): string => readFileSync(join(files, name), 'utf8');
  const before = { ca: read('ca.pem'), key: read('ca-do-not-share.key') };

  const refused = await renew('--data', stack.data, '--new-key');
  expect(refused.code).toBe(1);
  expect(refused.output).toMatch(/A Holdfast stack \(process \d+\) already uses .*\n\s+Remedy: .*stop\.sh/);
  expect({ ca: read('ca.pem'), key: read('ca-do-not-share.key') }).toEqual(before);
  await stop(stack.data);

  const prolonged = await renew('--data', stack.data);
  expect([prolonged.code, prolonged.output]).toEqual([0, expect.stringContaining('for the same key and name')]);
  expect(read('ca-do-not-share.key')).toBe(before.key);
  expect(read('ca.pem')).not.toBe(before.ca);

  const replaced = await renew('--data', stack.data, '--new-key');
  expect([replaced.code, replaced.output]).toEqual([0, expect.stringContaining('then enroll again')]);
  const [, kept = ''] = /was moved to (\S+)/.exec(replaced.output) ?? [];
  expect(readFileSync(join(kept, 'ca-do-not-share.key'), 'utf8')).toBe(before.key);
  expect(read('ca-do-not-share.key')).not.toBe(before.key);
});

it('a directory without a CA and words that mean nothing are refused, and nothing is made', async () => {
  const data = newDataDirectory();
  const missing = await renew('--data', data);
  expect([missing.code, missing.output]).toEqual([1, expect.stringMatching(/No CA found in .*\n\s+Remedy: give the/)]);
  expect(existsSync(data)).toBe(false);
  expect([(await renew('--newkey')).code, (await renew('--help')).code]).toEqual([2, 0]);
});
