// Every shell script of the repository by shellcheck: a pipe that hides a failure, a name with a
// space in it.

import { spawnSync } from 'node:child_process';
import { lstatSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const SHELL = /^#!(?:\/usr)?\/bin\/(?:env )?(?:ba|da)?sh\b/;

const listed = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
}).stdout;
const scripts = listed
  .split('\0')
  .filter((name) => /(?:\.sh|\/[^./]+)$/.test(name))
  .filter((name) => lstatSync(join(root, name)).isFile())
  .filter((name) => SHELL.test(readFileSync(join(root, name), 'utf8').split('\n', 1)[0] ?? ''));

const version = spawnSync('shellcheck', ['--version'], { encoding: 'utf8' });
const obstacle = version.error === undefined ? '' : 'there is no shellcheck: apt-get install shellcheck';
if (obstacle !== '') process.stderr.write(`\nNo script is checked: ${obstacle}.\n`);

describe.skipIf(obstacle !== '')(obstacle === '' ? 'shell scripts' : `shell scripts: ${obstacle}`, () => {
  it('are found, the one that CI runs among them', () => {
    expect(scripts).toEqual(expect.arrayContaining(['.ci/run', 'scripts/setup.sh', 'scripts/start.sh']));
  });

  // Where another file is sourced, it is looked up beside the script.
  it.each(scripts)('%s gives shellcheck nothing to say', { timeout: 60_000 }, (name) => {
    const options = ['--external-sources', '--source-path=SCRIPTDIR', '--source-path=.', '--severity=style'];
    const { status, stdout } = spawnSync('shellcheck', [...options, '--format=gcc', name], {
      cwd: root,
      encoding: 'utf8',
    });
    expect([status, stdout]).toEqual([0, '']);
  });
});
