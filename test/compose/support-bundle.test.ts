// ./scripts/support-bundle.sh for the stack in containers, with a `docker` that the test has laid
// out: what it collects, and that what could not be cleaned or written leaves nothing.

import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OperatorScripts } from '../../packages/setup/test/operator-scripts.ts';

let scripts: OperatorScripts;

beforeEach(() => {
  scripts = new OperatorScripts('SERVER_ADDRESS=cot.example.org\nCOMPOSE_FILE=compose/compose.yaml\n');
});
afterEach(() => scripts.remove());

describe('support-bundle.sh', () => {
  it('hands everything to the cleaning program, and writes what comes back for its owner alone', () => {
    scripts.lay({
      'compose config --services': { says: 'core\nmanagement\n' },
      'compose ps --all --quiet': { says: 'id-1\n' },
      'run --rm -i *support-bundle.js --clean': {
        does: 'mkdir "$FAKE/came"; tar -xf - -C "$FAKE/came"',
        says: 'an archive',
      },
    });
    const output = join(scripts.home, 'bundle.tar.gz');
    expect(scripts.run('support-bundle.sh', ['--output', output]).code).toBe(0);
    expect([readFileSync(output, 'utf8'), statSync(output).mode & 0o777]).toEqual(['an archive', 0o600]);
    const came = readdirSync(join(scripts.docker.directory, 'came'), { recursive: true, encoding: 'utf8' }).toSorted();
    expect(came).toEqual([
      'config.yaml',
      'containers.txt',
      'facts.json',
      'logs',
      'logs/core.log',
      'logs/management.log',
      'machine.txt',
      'settings',
      'settings/env',
      'versions.txt',
    ]);
    expect(scripts.run('support-bundle.sh', ['--output', output])).toMatchObject({
      code: 1,
      output: expect.stringContaining('already exists'),
    });
  });

  it('says before it collects that it cannot write there, and touches nothing that is there', () => {
    scripts.lay();
    const link = join(scripts.home, 'link.tar.gz');
    symlinkSync(join(scripts.home, 'nowhere'), link);
    for (const [says, output] of [
      [`${link} already exists`, link],
      [`Couldn't write ${join(scripts.home, 'none/bundle.tar.gz')}`, join(scripts.home, 'none/bundle.tar.gz')],
    ] as const)
      expect(scripts.run('support-bundle.sh', ['--output', output])).toMatchObject({
        code: 1,
        output: expect.stringMatching(new RegExp(`^${says}\\.\n  Remedy: choose .*with --output FILE`)),
      });
    expect(scripts.docker.calls().filter((call) => call.includes('logs'))).toEqual([]);
    const other = join(scripts.home, 'bundle.tar.gz.new');
    writeFileSync(other, 'mine');
    scripts.lay({ 'run --rm -i *support-bundle.js --clean': { does: 'cat >/dev/null', says: 'an archive' } });
    expect(scripts.run('support-bundle.sh', ['--output', join(scripts.home, 'bundle.tar.gz')]).code).toBe(0);
    expect(readFileSync(other, 'utf8')).toBe('mine');
  });

  it('writes nothing that could not be cleaned', () => {
    scripts.lay({ 'run --rm -i *support-bundle.js --clean': { does: 'cat >/dev/null', says: 'raw', code: 1 } });
    const output = join(scripts.home, 'bundle.tar.gz');
    expect(scripts.run('support-bundle.sh', ['--output', output]).code).toBe(1);
    expect(readdirSync(scripts.home).filter((name) => name.startsWith('bundle'))).toEqual([]);
  });
});
