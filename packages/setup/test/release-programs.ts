// A release whose programs do nothing but live: the script and the command lines are of the right
// shape, every program is a small process that does what a file of its name tells it. Real
// processes, real signals, in a directory of their own.

import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What the programs of a release are started with. */
const STARTS: Record<string, string> = {
  config: '-Dspring.profiles.active=config takserver.war',
  messaging: '-Dspring.profiles.active=messaging takserver.war',
  api: '-Dspring.profiles.active=api -Dkeystore.pkcs12.legacy takserver.war',
  retention: 'takserver-retention.jar',
  plugins: '-Dloader.path=WEB-INF/lib,file:lib/ takserver-pm.jar',
};

export const RELEASE_PROGRAMS = Object.keys(STARTS);

/**
 * Its environment and number into a file, then whatever `NAME.does` says; then it lives until
 * somebody ends it.
 */
const JAVA = `#!/usr/bin/env bash
name=
for arg in "$@"; do
  case "$arg" in
    *active=*) name=\${arg##*=} ;;
    *takserver-retention.jar) name=retention ;;
    *takserver-pm.jar) name=plugins ;;
    *UserManager.jar) exec bash "$RELEASE_HOME/user-manager" "$@" ;;
  esac
done
env > "$RELEASE_HOME/$name.env"
# What makes it quick to end is what it does not wait for.
exec -a java "$NODE" -e '
  const { existsSync, readFileSync, writeFileSync } = require("node:fs");
  const [home, name] = [process.env.RELEASE_HOME, process.argv[1]];
  writeFileSync(home + "/" + name + ".pid", String(process.pid));
  if (existsSync(home + "/" + name + ".does")) (0, eval)(readFileSync(home + "/" + name + ".does", "utf8"));
  setInterval(() => undefined, 1000);
' "$name" "$@"
`;

export interface ReleasePrograms {
  home: string;
  environment: Record<string, string>;
  /** JavaScript that a program runs at its start. */
  does(program: string, code: string): void;
  /** Bash that the user manager is. */
  userManagerIs(script: string): void;
  /** Not before it has begun. */
  pid(program: string): number;
  environmentOf(program: string): Record<string, string>;
  log(): string;
  remove(): void;
}

/** `without`: programs that the script does not start although it names them. */
export function releasePrograms({
  before = '',
  after = 'tail -f /dev/null',
  without = [] as string[],
} = {}): ReleasePrograms {
  const home = mkdtempSync(join(tmpdir(), 'holdfast-release-core-'));
  const at = (name: string): string => join(home, name);
  const bin = at('bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'java'), JAVA);
  chmodSync(join(bin, 'java'), 0o755);
  writeFileSync(at('setenv.sh'), 'export JDK_JAVA_OPTIONS="-Djava.io.tmpdir=/opt/tak"\n');
  const starts = Object.entries(STARTS).map(([name, args]) => {
    const line = `java -jar -Xmx100m ${args} &`;
    return without.includes(name) ? `if false; then\n  ${line}\nfi` : line;
  });
  const script = ['#!/bin/sh', 'cd "$RELEASE_HOME"', '. ./setenv.sh', before, ...starts, after, ''];
  writeFileSync(at('configureInDocker.sh'), script.join('\n'));

  return {
    home,
    environment: { PATH: `${bin}:${process.env['PATH'] ?? ''}`, RELEASE_HOME: home, NODE: process.execPath },
    does: (program, code) => writeFileSync(at(`${program}.does`), code),
    userManagerIs: (text) => writeFileSync(at('user-manager'), text),
    pid: (program) => Number(readFileSync(at(`${program}.pid`), 'utf8')),
    environmentOf: (program) =>
      Object.fromEntries(
        readFileSync(at(`${program}.env`), 'utf8')
          .split('\n')
          .map((line) => [line.split('=', 1)[0] ?? '', line.slice(line.indexOf('=') + 1)]),
      ),
    log: () => (existsSync(at('logs/takserver.log')) ? readFileSync(at('logs/takserver.log'), 'utf8') : ''),
    remove: () => rmSync(home, { recursive: true, force: true }),
  };
}
