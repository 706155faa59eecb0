// ./scripts/backup.sh on the stack in containers: which bytes it keeps, what it sends back to be
// proven, and what it says. The backup container is stood in for; with a real one:
// test/e2e/containers/light-direct.test.ts.

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Answer, ComposeRoot } from '../../packages/setup/test/compose.ts';

/** As binary as an archive: newlines, and none at its end. */
const ARCHIVE = 'age\n\0{"name":"not this"}\nlast byte';
const FACTS = '{"name":"b.age","proof":null}';
const PROVEN = '{"name":"b.age","proof":{"level":"serves"}}';

let root: ComposeRoot;
let programs: string;
let key: string;
let output: string;

beforeEach(() => {
  root = new ComposeRoot();
  programs = join(root.path, 'programs');
  mkdirSync(programs);
  [key, output] = ['key', 'b.age'].map((name) => join(root.path, name)) as [string, string];
  writeFileSync(key, 'a passphrase');
  root.writeEnv('COMPOSE_FILE=compose/compose.yaml:compose/compose.light.yaml\n');
  docker();
});
afterEach(() => root.remove());

function docker({ taken = `${ARCHIVE}\n${FACTS}\n`, code = 0 }: { taken?: string; code?: number } = {}): void {
  writeFileSync(join(root.path, 'taken'), taken);
  const program = `#!/bin/sh
case "$*" in
  'compose version'*) echo 2.26.1 ;;
  'compose ps'*) echo 1234 ;;
  *' take '*) cat >'${root.path}/take-input'; cat '${root.path}/taken'; exit ${code} ;;
  *' prove') cat >'${root.path}/proof-input'; echo '${PROVEN}'; exit ${code} ;;
  *' restore '*) echo "$*" >'${root.path}/restore-call'; cat >'${root.path}/restore-input' ;;
esac
`;
  writeFileSync(join(programs, 'docker'), program, { mode: 0o755 });
}

const backup = (...args: string[]): Answer => root.setUp(args, programs, 'backup.sh');
const take = (...args: string[]): Answer => backup('--output', output, '--passphrase-file', key, ...args);
const text = (name: string): string => readFileSync(join(root.path, name), 'utf8');

describe('backup.sh in containers', () => {
  it('keeps the archive to its last byte, its facts beside it, and proves what it wrote', () => {
    expect(take().status).toBe(0);
    expect([text('b.age'), text('b.age.json')]).toEqual([ARCHIVE, `${PROVEN}\n`]);
    expect(text('take-input')).toBe('a passphrase\n');
    expect(text('proof-input')).toBe(`a passphrase\n${FACTS}\n${ARCHIVE}`);
  });

  it.each([
    ['--no-proof', ''],
    ['', 'BACKUP_PROOF=off\n'],
  ])('says how to prove it when it is not to be proven (%s %s)', (option, setting) => {
    root.writeEnv(`${root.readEnv()}${setting}`);
    const { status, stderr } = take(...(option === '' ? [] : [option]));
    expect([status, stderr]).toEqual([
      0,
      expect.stringContaining(`Not proven: nothing was read back. To prove it: ./scripts/backup.sh prove ${output}`),
    ]);
    expect([text('b.age.json'), existsSync(join(root.path, 'proof-input'))]).toEqual([`${FACTS}\n`, false]);
    expect(backup('prove', output, '--passphrase-file', key).status).toBe(0);
    expect(text('b.age.json')).toBe(`${PROVEN}\n`);
  });

  it('keeps a backup that fails its proof, with what the proof found, and ends with 1', () => {
    take('--no-proof');
    docker({ code: 1 });
    expect(backup('prove', output, '--passphrase-file', key).status).toBe(1);
    expect([text('b.age'), text('b.age.json')]).toEqual([ARCHIVE, `${PROVEN}\n`]);
  });

  it('leaves nothing of a backup that was not finished', () => {
    docker({ taken: 'half an archive', code: 1 });
    expect(take().status).toBe(1);
    expect(readdirSync(root.path).filter((name) => name.includes('b.age'))).toEqual([]);
  });

  it('hands an archive and the part that shall come back to the container', () => {
    writeFileSync(output, ARCHIVE);
    expect(backup('restore', output, 'accounts', 'dora', '--passphrase-file', key, '--yes').status).toBe(0);
    expect(text('restore-call')).toContain('container-backup.js restore b.age accounts dora --yes\n');
    expect(text('restore-input')).toBe(`a passphrase\n${ARCHIVE}`);
    expect(backup('prove', output, '--passphrase-file', key)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(`Couldn't read ${output}.json`) as string,
    });
  });
});
