// The upgrade of a stack in containers without containers: a `docker` that keeps volumes and the record of health as
// files, and can be killed, with all that called it, or find its disk full.

import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Volumes are files of `volumes`; a copy has the words of what it was copied from. */
const DOCKER = String.raw`
printf '%s\n' "$*" >>'LOG'
if [ -f ROOT/kill ] && case "$*" in *"$(cat ROOT/kill)"*) true ;; *) false ;; esac; then rm ROOT/kill; kill -9 0; fi
case "$*" in *"$(cat ROOT/full 2>/dev/null || echo nothing is full)"*) echo 'No space left on device' >&2; exit 1 ;; esac
case "$*" in
  'compose version'*) echo 2.26.1 ;;
  'version --format'*) echo 27.3.1 ;;
  'info --format {{.MemTotal}}'*) echo '17179869184 /nowhere' ;;
  'compose config'*) echo 'name: holdfast' ;;
  'compose --env-file '*' pull '*) for setting in $(cat ROOT/required 2>/dev/null); do printenv "$setting" || exit 1; done ;;
  'volume ls'*com.docker*) ls ROOT/volumes | grep -v before ;;
  'volume ls'*) ls ROOT/volumes | grep before ;;
  'volume rm'*) for last; do :; done; rm -f "ROOT/volumes/$last" ;;
  'compose exec'*--way-back*) cat ROOT/way-back 2>/dev/null || true ;;
  'run '*'upgrade.js record'*)
    from= to= reason= outcome= snapshot= changed=
    while [ $# -gt 0 ]; do case $1 in --from) from=$2 ;; --to) to=$2 ;; --reason) reason=$2 ;; --outcome) outcome=$2 ;;
      --snapshot) snapshot=$2 ;; --schema-changed) changed=$2 ;; esac; shift; done
    echo "$outcome: $from to $to ($reason)" >>ROOT/record
    if [ "$outcome" = upgraded ]; then printf '%s\tan hour ago\t%s\t%s\n' "$from" "$snapshot" "$changed" >ROOT/way-back; fi
    if [ "$outcome" = back ]; then rm ROOT/way-back; fi ;;
  'run '*'/volumes/'*) printf '1000\n99999999999\n1000\n' ;;
  'run '*':/from/'*)
    from=$(echo "$*" | sed 's/.*--volume \([^:]*\):\/from\/.*/\1/') to=$(echo "$*" | sed 's/.*--volume \([^:]*\):\/to\/.*/\1/')
    cp "ROOT/volumes/$from" "ROOT/volumes/$to" ;;
esac`;

export interface Ended {
  /** Null when it was killed. */
  status: number | null;
  output: string;
}

export class UpgradeWorld {
  readonly #path: string;
  readonly #programs: string;

  /** `root`: an installation; `programs`: a directory in it. */
  constructor(root: string, programs: string, volume: string) {
    this.#path = root;
    this.#programs = programs;
    this.#stub('docker', DOCKER.replaceAll('ROOT', root).replaceAll('LOG', join(root, 'docker.log')));
    this.#stub('sync', 'exit 0');
    mkdirSync(join(root, 'volumes'));
    this.write('volumes/holdfast_core-data', `${volume}\n`);
  }

  #stub(name: string, script: string): void {
    const path = join(this.#programs, name);
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.#path, name), text);
  }

  /** Empty if there is no such file. */
  read(name: string): string {
    const path = join(this.#path, name);
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }

  /** In a session of its own, which `docker` may end. */
  run(...args: string[]): Ended {
    const environment = { PATH: `${this.#programs}:${process.env['PATH'] ?? ''}`, HOME: '/nonexistent' };
    const { status, stdout, stderr } = spawnSync('setsid', ['--wait', ...args], { encoding: 'utf8', env: environment });
    return { status, output: `${stdout}${stderr}` };
  }

  upgrade(...args: string[]): Ended {
    return this.run(join(this.#path, 'scripts/upgrade.sh'), ...args);
  }

  /** Who wrote into the volume. */
  data(): string[] {
    return this.read('volumes/holdfast_core-data').trim().split('\n');
  }

  hasCopies(of: string): boolean {
    return existsSync(join(this.#path, `volumes/holdfast_core-data.before-upgrade-${of}`));
  }

  isOpen(): boolean {
    return existsSync(join(this.#path, '.upgrade/containers'));
  }

  calls(word: string): string[] {
    return this.read('docker.log')
      .split('\n')
      .filter((line) => line.includes(word));
  }
}
