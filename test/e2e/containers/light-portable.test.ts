// The stack suite on the light stack: the files that see what differs in containers, by a process of their own.

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { home, outcomeOf } from '../embedded/embedded.ts';
import { PORTABLE_FILES } from '../embedded/portable.ts';
import { openAuthenticator } from './light-authenticator.ts';
import { obstacle } from './shared-engine.ts';
import { sharedLight } from './shared-light.ts';

interface Results {
  testResults: {
    name: string;
    status: string;
    message: string;
    assertionResults: { fullName: string; status: string; failureMessages: string[] }[];
  }[];
}

describe.skipIf(obstacle !== '')('the stack suite on the light stack', () => {
  let results: Results['testResults'] = [];
  let text = '';

  beforeAll(async () => {
    await using authenticator = await openAuthenticator(await sharedLight());
    const report = join(authenticator.stack.data, 'report.json');
    const reporters = ['--reporter', 'json', '--outputFile', report];
    const program = [
      join(home, 'node_modules/vitest/vitest.mjs'),
      'run',
      '--project',
      'real',
      '--no-file-parallelism',
      '--no-isolate',
    ];
    const env = { ...process.env, HOLDFAST_STACK_FILE: authenticator.stackFile };
    const child = spawn(process.execPath, [...program, ...reporters, ...PORTABLE_FILES], {
      cwd: home,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    ({ output: text } = await outcomeOf(child));
    ({ testResults: results } = JSON.parse(readFileSync(report, 'utf8')) as Results);
  });

  it.each(PORTABLE_FILES)('%s', (file) => {
    const found = results.find(({ name }) => relative(home, name) === file);
    expect(found, text.slice(-3000)).toBeDefined();
    const failed = found?.assertionResults.filter(({ status }) => status === 'failed') ?? [];
    const passed = found?.assertionResults.filter(({ status }) => status === 'passed') ?? [];
    expect(failed.map(({ fullName, failureMessages }) => [fullName, ...failureMessages])).toEqual([]);
    expect([found?.status, found?.message]).toEqual(['passed', '']);
    expect(passed.length).toBeGreaterThan(0);
  });
});
