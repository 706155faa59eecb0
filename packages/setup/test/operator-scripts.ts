// The scripts for operators in a root of their own, with a .env and a `docker` that the test lays
// out.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Answers, DockerProgram } from './docker-program.ts';

const REPOSITORY = resolve(import.meta.dirname, '../../..');

export interface ScriptAnswer {
  code: number | null;
  output: string;
  stdout: string;
}

export class OperatorScripts {
  readonly home = mkdtempSync(join(tmpdir(), 'holdfast-operate-'));
  readonly docker = new DockerProgram(join(this.home, 'programs'));

  constructor(env: string) {
    mkdirSync(join(this.home, 'compose'));
    for (const name of ['scripts', 'compose/program.yaml'])
      cpSync(join(REPOSITORY, name), join(this.home, name), { recursive: true });
    writeFileSync(join(this.home, '.env'), env, { mode: 0o600 });
  }

  /** With what every script asks first. */
  lay(different: Answers = {}): void {
    const usual: Answers = {
      'compose version --short': { says: '2.26.1\n' },
      'compose ps --quiet --status running management': { says: 'id\n' },
      'compose config': { says: 'name: holdfast\n' },
    };
    const rest = Object.entries(usual).filter(([name]) => !(name in different));
    this.docker.lay({ ...different, ...Object.fromEntries(rest) });
  }

  run(script: string, args: readonly string[] = [], input = ''): ScriptAnswer {
    const { status, stdout, stderr } = spawnSync(join(this.home, 'scripts', script), [...args], {
      cwd: tmpdir(),
      encoding: 'utf8',
      input,
      env: { PATH: `${this.docker.directory}:${process.env['PATH'] ?? ''}`, HOME: this.home },
    });
    return { code: status, output: stdout + stderr, stdout };
  }

  remove(): void {
    rmSync(this.home, { recursive: true, force: true });
  }
}
