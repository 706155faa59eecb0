// ./scripts/setup.sh --restore: what it refuses, and that volumes of another stack are never
// removed. Docker is stood in for by a program that writes down how it was called. With real containers:
// test/e2e/containers/light-direct.test.ts.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Answer, ComposeRoot } from '../../packages/setup/test/compose.ts';
import { madeUpRelease } from '../../packages/setup/test/release-archive.ts';
import { ReleaseWorld } from '../../packages/setup/test/release-world.ts';

const RELEASE = '5.7-RELEASE-8';
const RELEASE_ZIP = `takserver-docker-${RELEASE}.zip`;

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
  *' run '*) cat >/dev/null ;;
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

/** A backup of a stack with a TAK Server release, on a machine where setup.sh could read its archive. */
class ProductionMachine extends ReleaseWorld {
  readonly backup = ['backup.age', 'key'].map((name) => join(this.path, name)) as [string, string];

  constructor() {
    super();
    writeFileSync(this.backup[0], 'an archive');
    writeFileSync(this.backup[1], 'a passphrase\n');
    const settings = [
      `# Release archive: ${RELEASE_ZIP} SHA-256 ${'a'.repeat(64)}`,
      'COMPOSE_FILE=compose/compose.yaml',
    ];
    writeFileSync(join(this.path, 'settings'), [...settings, `CORE_RELEASE=${RELEASE}`, ''].join('\n'));
    this.stub(
      'docker',
      `printf '%s\\n' "$*" >>'${this.log}'
case "$*" in
  'compose version'*) echo 2.26.1 ;;
  'version --format'*) echo 27.3.1 ;;
  'info --format {{.MemTotal}}'*) echo '17179869184 /nowhere/docker' ;;
  'run --rm -i'*) cat >/dev/null; cat '${join(this.path, 'settings')}' ;;
  *' run --rm --no-deps'*) cat >/dev/null ;;
  *' config '*) echo '  "name": "holdfast",' ;;
esac`,
    );
  }

  restore(...args: string[]): Answer {
    const [file, key] = this.backup;
    return this.run(...args, '--restore', file, '--passphrase-file', key);
  }

  /** What Compose was told to do with the stack, in order. */
  steps(): string[] {
    return readFileSync(this.log, 'utf8')
      .split('\n')
      .flatMap((line) => / compose\/compose\.restore\.yaml ((?:up|stop|down|run) ?.*)$/.exec(line)?.[1] ?? [])
      .map((step) => step.replace(/^run .* --entrypoint node /, 'run '));
  }
}

describe('a restore of a stack with a TAK Server release', () => {
  let machine: ProductionMachine;
  let archives: string;
  beforeEach(() => {
    machine = new ProductionMachine();
    archives = mkdtempSync(join(tmpdir(), 'holdfast-archives-'));
  });
  afterEach(() => {
    machine.remove();
    rmSync(archives, { recursive: true });
  });

  it('names the archive that it needs too, and refuses another release', () => {
    expect(machine.restore()).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(
        new RegExp(`its archive is needed too: ${RELEASE_ZIP} SHA-256 a{64}\\.[^]*setup\\.sh ${RELEASE_ZIP} --restore`),
      ) as string,
    });
    const other = madeUpRelease({ version: '5.7-RELEASE-9', directory: archives });
    expect(machine.restore(other)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(`with TAK Server ${RELEASE}, but ${basename(other)} is 5.7-RELEASE-9`) as string,
    });
    expect(readdirSync(machine.path).filter((name) => name.startsWith('.env.r') || name === 'release')).toEqual([]);
    expect(machine.steps()).toEqual([]);
  });

  it('puts the files, lets release and authentik make their tables, and loads the rows', () => {
    const { status, stderr } = machine.restore(madeUpRelease({ version: RELEASE, directory: archives }));
    expect([status, stderr]).toEqual([0, expect.stringContaining('is another file than the one')]);
    expect(machine.steps()).toEqual([
      'run restore /app/dist/container-backup.js restore-files',
      'up --detach --wait core-database app-database',
      'up --detach --wait authentik-server',
      'stop authentik-server',
      'run restore /app/dist/container-backup.js restore-rows',
      'down',
    ]);
    expect(machine.readEnv()).toContain(`CORE_RELEASE=${RELEASE}\n`);
    expect(readdirSync(join(machine.path, 'release'))).toEqual([RELEASE]);
  });

  it('needs no archive of a light stack', () => {
    docker({});
    archive = [madeUpRelease({ version: RELEASE, directory: archives }), '--restore', ...archive];
    const { status, stderr } = root.setUp(archive, programs);
    expect([status, stderr]).toEqual([2, expect.stringContaining('uses no release archive')]);
    expect(left()).toEqual([]);
  });
});

/** A volume is a file with the steps that wrote into it; `kill` names the step in which everything is killed. */
const KILLED = String.raw`#!/bin/sh
echo "$*" >>'ROOT/calls'
case "$*" in
  'compose version'*) echo 2.26.1 ;;
  'run --rm -i'*) cat >/dev/null; echo COMPOSE_FILE=compose/compose.yaml:compose/compose.light.yaml ;;
  *' config '*) echo '  "name": "holdfast",' ;;
  'volume ls'*) ls ROOT/volumes ;;
  *' down --volumes'*) rm -f ROOT/volumes/* ;;
  *' run --rm --no-deps'*) cat >/dev/null; for last; do :; done; echo "$last" >>ROOT/volumes/holdfast_core-data ;;
  *' up '*) echo databases >>ROOT/volumes/holdfast_core-data ;;
esac
case "$*" in *"$(cat ROOT/kill 2>/dev/null || echo nothing is killed)") rm ROOT/kill; kill -9 0 ;; esac
`;

describe('a restore into containers that is killed', () => {
  const whole = (): string[] => readFileSync(join(root.path, 'volumes/holdfast_core-data'), 'utf8').trim().split('\n');
  /** In a session of its own, all of which is killed. */
  function restoreKilledIn(step: string): number | null {
    writeFileSync(join(root.path, 'kill'), step);
    const env = { PATH: `${programs}:${process.env['PATH'] ?? ''}` };
    const args = ['--wait', join(root.path, 'scripts/setup.sh'), '--restore', ...archive];
    return spawnSync('setsid', args, { env }).status;
  }

  it.each([
    [['restore-files']],
    [['up --detach --wait core-database app-database']],
    [['restore-rows']],
    [['compose.restore.yaml down']],
    [['restore-rows', 'down --volumes --remove-orphans', 'restore-files']],
  ])('in %j leaves no half stack: the next one begins with empty volumes', (steps) => {
    writeFileSync(join(programs, 'docker'), KILLED.replaceAll('ROOT', root.path), { mode: 0o755 });
    mkdirSync(join(root.path, 'volumes'));
    for (const step of steps) {
      expect(restoreKilledIn(step)).not.toBe(0);
      expect([existsSync(join(root.path, 'kill')), left()]).toEqual([false, ['.env.restoring']]);
    }
    expect(restore()).toMatchObject({ status: 0, stderr: expect.stringContaining('an interrupted restore') as string });
    expect([whole(), left()]).toEqual([['restore-files', 'databases', 'restore-rows'], ['.env']]);
  });
});

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
