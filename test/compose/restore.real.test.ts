// ./scripts/setup.sh --restore: what it refuses, and that volumes of another stack are never
// removed. Docker is stood in for by a program that writes down how it was called.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Answer, ComposeRoot } from '../../packages/setup/test/compose.ts';

let root: ComposeRoot;
let programs: string;
let archive: string[];

/** `config`: what Compose says of the settings; empty, and it refuses them. */
function docker({ volumes = '', config = '  "name": "holdfast",' }: { volumes?: string; config?: string }): void {
  const program = `#!/bin/sh
echo "$*" >>'${join(root.path, 'calls')}'
case "$*" in
  'compose version'*) echo 2.26.1 ;;
  run*) cat >/dev/null; echo COMPOSE_FILE=compose/compose.yaml:compose/compose.light.yaml ;;
  *' config '*) [ -n '${config}' ] || { echo 'a setting is missing' >&2; exit 1; }; echo '${config}' ;;
  'volume ls'*) printf '%s' '${volumes}' ;;
  *' up '*) exit 1 ;;
esac
`;
  writeFileSync(join(programs, 'docker'), program, { mode: 0o755 });
}

const restore = (): Answer => root.setUp(['--restore', ...archive], programs);
const calls = (): string => readFileSync(join(root.path, 'calls'), 'utf8');
const left = (): string[] =>
  ['.env', '.env.restoring', '.env.restoring.new'].filter((name) => existsSync(join(root.path, name)));

beforeEach(() => {
  root = new ComposeRoot();
  programs = join(root.path, 'programs');
  mkdirSync(programs);
  const [file, key] = ['backup.age', 'key'].map((name) => join(root.path, name)) as [string, string];
  writeFileSync(file, 'an archive');
  writeFileSync(key, 'a passphrase\n');
  archive = [file, '--passphrase-file', key];
});
afterEach(() => root.remove());

describe('a restore into containers', () => {
  it('refuses a machine that has volumes of this stack, and never removes them', () => {
    docker({ volumes: 'holdfast_core-data' });
    for (let attempt = 0; attempt < 2; attempt++) {
      const { status, stderr } = restore();
      expect([status, stderr]).toEqual([
        1,
        expect.stringMatching(/already has volumes of the stack holdfast[^]*Remedy/),
      ]);
      expect(left()).toEqual([]);
    }
    expect(calls()).not.toContain(' down');
  });

  it('removes nothing when it was killed before it knew that the volumes are its own', () => {
    docker({ volumes: 'holdfast_core-data' });
    writeFileSync(join(root.path, '.env.restoring.new'), 'COMPOSE_FILE=compose/compose.yaml\n');
    expect(restore().status).toBe(1);
    expect(calls()).not.toContain(' down');
  });

  it('says that Compose refuses the settings, and leaves nothing', () => {
    docker({ config: '' });
    const { status, stderr } = restore();
    expect([status, stderr]).toEqual([
      1,
      expect.stringMatching(/a setting is missing[^]*rejected the settings of the backup/),
    ]);
    expect(left()).toEqual([]);
  });

  it('removes its own volumes when the databases do not start', () => {
    docker({});
    expect(restore()).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('The databases did not start') as string,
    });
    expect(calls()).toContain('down --volumes');
    expect(left()).toEqual([]);
  });

  it('refuses an existing stack, and a restore without its key or its file', () => {
    docker({});
    const [file = '', option = '', key = ''] = archive;
    archive = [file];
    expect(restore()).toMatchObject({ status: 2, stderr: expect.stringContaining('No key given') as string });
    archive = [`${file}.other`, option, key];
    expect(restore()).toMatchObject({ status: 2, stderr: expect.stringContaining('File not found') as string });
    archive = [file, option, key];
    root.writeEnv('SERVER_ADDRESS=cot.example.org\n');
    expect(restore()).toMatchObject({ status: 1, stderr: expect.stringContaining('.env exists') as string });
  });
});
