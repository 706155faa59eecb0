// What a program for the terminal says when it fails.

import { expect, it } from 'vitest';
import { failureText } from '@holdfast/kit/command';

it.each(['ENOSPC', 'EDQUOT'])('a full disk (%s) is a sentence with a remedy, wherever the writing failed', (code) => {
  const error = Object.assign(new Error(`${code}: no space left on device, write`), { code });
  expect(failureText(error)).toBe(
    `A disk is full (${error.message}).\n  Remedy: free some space; df -h shows which disk it is\n`,
  );
});
