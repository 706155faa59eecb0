// A root as setup.sh finds it, with Node and the program that reads archives installed, and a
// `docker` that says what a test wants it to say and writes down what it was called with.

import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { type Answer, ComposeRoot, REPOSITORY } from './compose.ts';

const ARCHITECTURE = process.arch === 'arm64' ? 'arm64' : 'x64';
let program: Uint8Array | undefined;

/** dist/release.js, as the sources are now. */
export function releaseProgram(): Uint8Array {
  program ??= buildSync({
    absWorkingDir: REPOSITORY,
    entryPoints: ['scripts/release.ts'],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    banner: {
      js: "import { createRequire as createRequire_ } from 'node:module'; const require = createRequire_(import.meta.url);",
    },
  }).outputFiles[0]?.contents;
  if (program === undefined) throw new Error('esbuild has made no program');
  return program;
}

export interface DockerAnswers {
  version?: string;
  memoryBytes?: number;
  root?: string;
  /** The build whose command line has this fails, with words. */
  failing?: string;
  buildx?: boolean;
  /** The images that are there already. */
  images?: boolean;
  rootless?: boolean;
}

export class ReleaseWorld extends ComposeRoot {
  readonly programs = join(this.path, 'programs');
  readonly log = join(this.path, 'docker.log');

  constructor() {
    super();
    for (const directory of ['core', 'core-database'])
      mkdirSync(join(this.path, 'compose', directory), { recursive: true });
    mkdirSync(this.programs);
    this.docker();
    this.installNode();
  }

  installNode(): void {
    const bin = join(this.path, `node_modules/node-linux-${ARCHITECTURE}/bin`);
    mkdirSync(bin, { recursive: true });
    symlinkSync(process.execPath, join(bin, 'node'));
    for (const name of ['package-lock.json', 'node_modules/.holdfast-lock'])
      writeFileSync(join(this.path, name), '{}\n');
    mkdirSync(join(this.path, 'dist'));
    writeFileSync(join(this.path, 'dist/package.json'), '{ "type": "module" }\n');
    writeFileSync(join(this.path, 'dist/release.js'), releaseProgram());
    writeFileSync(join(this.path, 'dist/.built'), '');
  }

  docker(answers: DockerAnswers = {}): void {
    const {
      version = '27.3.1',
      memoryBytes = 16 * 1024 ** 3,
      root = '/nowhere/docker',
      failing = 'nothing fails',
    } = answers;
    this.stub(
      'docker',
      `printf '%s\\n' "\${CORE_RELEASE:+CORE_RELEASE=$CORE_RELEASE }$*" >>'${this.log}'
case "$*" in
  *'${failing}'*) for n in $(seq 60); do echo "#9 line $n"; done; echo 'ERROR: no space for this layer' >&2; exit 17 ;;
  'compose version'*) echo 2.26.1 ;;
  'version --format'*) ${version === '' ? 'exit 1' : `echo '${version}'`} ;;
  version) exit 0 ;;
  'buildx version') exit ${answers.buildx === false ? 1 : 0} ;;
  'info --format {{.MemTotal}}'*) echo '${memoryBytes} ${root}' ;;
  'info --format {{.SecurityOptions}}') echo '[name=seccomp${answers.rootless === true ? ' name=rootless' : ''}]' ;;
  'image inspect'*) exit ${answers.images === true ? 0 : 1} ;;
esac`,
    );
  }

  /** .env and release/ as a set-up of another one has left them. */
  become(other: ReleaseWorld): void {
    cpSync(other.envFile, this.envFile);
    cpSync(join(other.path, 'release'), join(this.path, 'release'), { recursive: true });
  }

  stub(name: string, script: string): void {
    const path = join(this.programs, name);
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
  }

  run(...args: string[]): Answer {
    return this.setUp(args, this.programs);
  }

  upgradeDatabase(...args: string[]): Answer {
    return this.setUp(args, this.programs, 'upgrade-database.sh');
  }

  /** As an account that is not root; `root` is given to it. */
  runAs(account: number, ...args: string[]): Answer {
    const environment = { PATH: `${this.programs}:${process.env['PATH'] ?? ''}`, HOME: '/nonexistent' };
    const script = join(this.path, 'scripts/setup.sh');
    const { status, stdout, stderr } = spawnSync(script, args, {
      encoding: 'utf8',
      env: environment,
      uid: account,
      gid: account,
    });
    return { status, stdout, stderr };
  }

  /** What Docker was asked to build or run, in order. */
  request(): string[] {
    if (!existsSync(this.log)) return [];
    const lines = readFileSync(this.log, 'utf8').trimEnd().split('\n');
    return lines.filter((line) => / ?(build|run) /.test(line));
  }

  /**
   * Every file of `place` with its mode and contents; `.env` and `release` unless it is said
   * otherwise.
   */
  tree(...places: string[]): Record<string, string> {
    const wanted = places.length > 0 ? places : ['.env', 'release'];
    return Object.fromEntries(wanted.flatMap((place) => entriesOf(join(this.path, place), place)));
  }
}

function entriesOf(path: string, name: string): [string, string][] {
  const status = lstatSync(path, { throwIfNoEntry: false });
  if (status === undefined) return [];
  const mode = (status.mode & 0o7777).toString(8);
  if (status.isSymbolicLink()) return [[name, `link to ${readlinkSync(path)}`]];
  if (!status.isDirectory()) return [[name, `${mode} ${readFileSync(path, 'latin1')}`]];
  const below = readdirSync(path).toSorted();
  return [[`${name}/`, mode], ...below.flatMap((each) => entriesOf(join(path, each), `${name}/${each}`))];
}
