// ./scripts/setup.sh with a release archive: what it checks, what it builds, and that whatever
// fails leaves .env and release/ as they were. Docker is stood in for by a program; the archive is
// read by the real one.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { composeObstacle, OUR_IMAGE } from '../../packages/setup/test/compose.ts';
import { madeUpRelease } from '../../packages/setup/test/release-archive.ts';
import { ReleaseWorld } from '../../packages/setup/test/release-world.ts';
import { loadSettings, parseEnvFile } from '../../shared/settings/load.ts';
import { describeProblem } from '../../shared/settings/setting.ts';
import { zipArchive } from '../support/zip-archive.ts';

const asRoot = process.getuid?.() === 0;
const ADDRESS = ['--address', 'cot.example.org'];
const BUILDS = 5;
const obstacle = composeObstacle();

let archives: string;
let older: string;
let archive: string;
let newer: string;
let hardened: string;
let world: ReleaseWorld;
/** What a set-up has left. */
let prepared: ReleaseWorld;

beforeAll(() => {
  archives = mkdtempSync(join(tmpdir(), 'holdfast-archives-'));
  const made = (version: string, variant?: 'hardened'): string =>
    madeUpRelease({ version, directory: archives, ...(variant === undefined ? {} : { variant }) });
  older = made('5.6-RELEASE-30');
  archive = made('5.7-RELEASE-8');
  newer = made('5.7-RELEASE-10');
  hardened = made('5.7-RELEASE-8', 'hardened');
  prepared = new ReleaseWorld();
  prepared.run(archive, ...ADDRESS);
});
afterAll(() => {
  rmSync(archives, { recursive: true });
  prepared.remove();
});
beforeEach(() => {
  world = new ReleaseWorld();
});
afterEach(() => world.remove());

const values = (): Record<string, string> => parseEnvFile(world.readEnv()).values;
const upTo = (version: string): string[] => Object.keys(world.tree('release')).filter((name) => name.includes(version));

describe('the set-up script with a release archive', { timeout: 30_000 }, () => {
  it('takes no archive that was replaced by another release while it was looked at', () => {
    const path = join(world.path, 'replaced.zip');
    cpSync(archive, path);
    world.stub('df', `cp '${newer}' '${path}'; echo Avail; echo 999999999999`);
    const before = world.tree();
    expect(world.run(path, ...ADDRESS)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(
        /replaced\.zip changed while it was read: it was TAK Server 5\.7-RELEASE-8 and is now 5\.7-RELEASE-10\.\n {2}Remedy: /,
      ),
    });
    expect(world.tree()).toEqual(before);
  });

  it('unpacks it, builds its images and ours over them, and writes .env for the stack of production', () => {
    const { status, stderr, stdout } = world.run(archive, ...ADDRESS);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toContain('TAK Server 5.7-RELEASE-8 (docker).');
    const tree = 'release/5.7-RELEASE-8';
    expect(world.request()).toEqual([
      'compose -f compose/program.yaml --progress plain build program',
      `build --progress plain --file ${expectStaging()}/docker/Dockerfile.takserver --tag localhost/holdfast-core-base:5.7-RELEASE-8 ${expectStaging()}`,
      `build --progress plain --file compose/core/Dockerfile --build-arg BASE=localhost/holdfast-core-base:5.7-RELEASE-8 --build-arg HOLDFAST=${OUR_IMAGE} --tag localhost/holdfast-core:5.7-RELEASE-8 ${expectStaging()}`,
      `build --progress plain --file ${expectStaging()}/docker/Dockerfile.takserver-db --tag localhost/holdfast-core-database-base:5.7-RELEASE-8 ${expectStaging()}`,
      `build --progress plain --file compose/core-database/Dockerfile --build-arg BASE=localhost/holdfast-core-database-base:5.7-RELEASE-8 --build-arg HOLDFAST=${OUR_IMAGE} --tag localhost/holdfast-core-database:5.7-RELEASE-8 ${expectStaging()}`,
    ]);
    expect(statSync(world.envFile).mode & 0o777).toBe(0o600);
    expect(values()).toMatchObject({
      SERVER_ADDRESS: 'cot.example.org',
      DEPLOY_MODE: 'subdomain',
      COMPOSE_FILE: 'compose/compose.yaml',
      CORE_RELEASE: '5.7-RELEASE-8',
      CORE_RETENTION_UNIT: 'seconds',
    });
    for (const name of ['IDENTITY_BOOTSTRAP_TOKEN', 'IDENTITY_ADMIN_PASSWORD', 'FLOWS_TOKEN', 'VIDEO_READ_PASSWORD'])
      expect(values()[name]).toMatch(/^[A-HJ-NP-Za-km-z2-9]{32}$/);
    expect(statSync(join(world.path, tree, 'tak/setenv.sh')).mode & 0o777).toBe(0o755);
    expect(statSync(join(world.path, tree, 'tak/takserver.war')).mode & 0o777).toBe(0o644);
    expect(readdirSync(join(world.path, 'release'))).toEqual(['5.7-RELEASE-8']);
    const layer = { source: 'env file', values: { ...values(), DATABASE_URL: 'postgres://a:b@c/d' } } as const;
    expect(loadSettings([layer], 'container').problems.map(describeProblem)).toEqual([]);
  });

  /** Where it is built: beside its place, under a name that nobody knows before. */
  const expectStaging = (): string =>
    world
      .request()
      .find((line) => line.includes('Dockerfile.takserver '))
      ?.split(' ')
      .at(-1) ?? 'no staging';

  it('takes direct mode for an address', () => {
    expect(world.run(archive, '--address', '192.0.2.7').status).toBe(0);
    expect(values()).toMatchObject({ COMPOSE_FILE: 'compose/compose.yaml', DEPLOY_MODE: 'direct' });
  });

  it('run again, with the archive or without it, changes no byte and builds anew', () => {
    world.become(prepared);
    const before = world.tree();
    expect(Object.keys(before).length).toBeGreaterThan(30);
    for (const args of [[archive], []]) {
      const { status, stdout, stderr } = world.run(...args);
      expect([status, stderr]).toEqual([0, '']);
      expect(stdout).toContain('nothing was changed');
      expect(stdout).not.toContain('Unpacking');
      expect(world.tree()).toEqual(before);
    }
    expect(world.request().length).toBe(2 * BUILDS);
  });

  it('with a newer archive is the upgrade: the release alone changes in .env', () => {
    world.become(prepared);
    const before = world.readEnv();
    expect(world.run(newer)).toMatchObject({ status: 0, stderr: '' });
    expect(world.readEnv()).toBe(before.replace('CORE_RELEASE=5.7-RELEASE-8', 'CORE_RELEASE=5.7-RELEASE-10'));
    expect(readdirSync(join(world.path, 'release')).toSorted()).toEqual(['5.7-RELEASE-10', '5.7-RELEASE-8']);
  });

  it('without the archive adds what a later Holdfast needs, and builds from what is unpacked', () => {
    world.become(prepared);
    const full = world.readEnv();
    world.writeEnv(full.replace(/^FLOWS_TOKEN=.*\n/m, ''));
    expect(world.run().status).toBe(0);
    expect(world.readEnv()).toMatch(/\n# Added by .*\nFLOWS_TOKEN=\w{32}\n$/);
  });

  it('unpacks a release anew of which a file is gone, in the place of the damaged one', () => {
    world.become(prepared);
    const before = world.tree();
    rmSync(join(world.path, 'release/5.7-RELEASE-8/tak/setenv.sh'));
    const refused = world.run();
    expect(refused).toMatchObject({ status: 1 });
    expect(refused.stderr).toContain('The release 5.7-RELEASE-8 in release/5.7-RELEASE-8 is incomplete.');
    expect(world.run(archive)).toMatchObject({ status: 0, stderr: '' });
    expect(world.tree()).toEqual(before);
  });

  it.runIf(asRoot)('works for an account that is not root, and does not need its umask to be kind', () => {
    const account = 12_345;
    const open = join(world.path, 'archive');
    mkdirSync(open);
    const own = join(open, basename(archive));
    writeFileSync(own, readFileSync(archive));
    for (const name of ['', ...readdirSync(world.path, { recursive: true, encoding: 'utf8' })])
      if (!name.includes('node_modules/node-linux')) chownSync(join(world.path, name), account, account);
    const umask = process.umask(0o077);
    try {
      expect(world.runAs(account, own, ...ADDRESS)).toMatchObject({ status: 0, stderr: '' });
    } finally {
      process.umask(umask);
    }
    const tree = join(world.path, 'release/5.7-RELEASE-8/tak');
    expect(statSync(tree)).toMatchObject({ uid: account });
    expect(statSync(tree).mode & 0o777).toBe(0o755);
  });

  it('says of a hardened release whose registry it needs, before it builds, and again when that fails', () => {
    expect(world.run(hardened, ...ADDRESS).stderr).toContain(
      'Sign in first as this user: docker login registry1.dso.mil',
    );
    world.docker({ failing: '--tag localhost/holdfast-core-base:' });
    rmSync(world.envFile);
    expect(world.run(hardened, ...ADDRESS).stderr).toContain(
      'A hardened release needs: docker login registry1.dso.mil',
    );
  });
});

describe('a set-up that fails', { timeout: 30_000 }, () => {
  /** What `act` leaves as it was, and says. */
  function refused(status: number, ...args: string[]): string {
    const before = world.tree();
    const answer = world.run(...args);
    expect(world.tree()).toEqual(before);
    expect(answer.status, answer.stdout + answer.stderr).toBe(status);
    expect(answer.stderr).toMatch(/\n {2}Remedy: .+\n$/);
    return answer.stderr;
  }

  it.each([
    ['the Holdfast image', 'compose/program.yaml'],
    ['the release image of core', '--tag localhost/holdfast-core-base:'],
    ['the Holdfast image of core-database', '--tag localhost/holdfast-core-database:'],
  ])('in building %s names the step, shows the last words and leaves nothing', (what, failing) => {
    world.docker({ failing });
    const message = refused(1, archive, ...ADDRESS);
    expect(message).toContain(`Couldn't build ${what} (exit code 17). Nothing was changed.`);
    expect(message).toContain('ERROR: no space for this layer');
    expect(message).not.toContain('line 10\n');
    expect(Object.keys(world.tree())).toEqual([]);
  });

  it('in building an upgrade leaves the stack as it was set up', () => {
    world.become(prepared);
    world.docker({ failing: '--tag localhost/holdfast-core-database:' });
    refused(1, newer);
    expect(upTo('5.10')).toEqual([]);
  });

  it.each([
    [{ version: '' }, 'Docker does not respond to this user.'],
    [{ version: '20.9.1+dfsg1' }, 'Docker 20.9.1+dfsg1 is too old. Version 20.10 or newer'],
    [{ buildx: false }, 'Docker has no buildx plugin'],
    [{ memoryBytes: 6 * 1024 ** 3 - 1 }, 'This machine has 5.9 GiB of memory. A TAK Server with authentik needs 6 GiB'],
  ])('with Docker that says %j is refused before anything is read', (answers, says) => {
    world.docker(answers);
    expect(refused(1, archive, ...ADDRESS)).toContain(says);
    expect(world.request()).toEqual([]);
  });

  it('with little memory names the light stack; with a little more it only says so', () => {
    world.docker({ memoryBytes: 4 * 1024 ** 3 });
    expect(refused(1, archive, ...ADDRESS)).toContain('./scripts/setup.sh --light');
    world.docker({ memoryBytes: 7.5 * 1024 ** 3 });
    expect(world.run(archive, ...ADDRESS)).toMatchObject({
      status: 0,
      stderr: 'Note: 7.5 GiB of memory is tight. 8 GiB is recommended.\n',
    });
  });

  it('on too small a disk says how much there is and how much is needed', () => {
    world.stub('df', 'printf "Avail\\n5900000000\\n"');
    expect(refused(1, archive, ...ADDRESS)).toMatch(
      / has 5\.9 GB free; 6\.0 GB are needed for the release and its images\./,
    );
    expect(Object.keys(world.tree())).toEqual([]);
  });

  it('looks at the disk where Docker keeps images, when that is another one', () => {
    const root = '/dev/shm';
    expect(statSync(root).dev).not.toBe(statSync(world.path).dev);
    world.docker({ root });
    world.stub('df', `case "$*" in *${root}) echo 5900000000 ;; *) echo 1100000000 ;; esac`);
    expect(refused(1, archive, ...ADDRESS)).toContain(
      `The disk of ${root} has 5.9 GB free; 6.0 GB are needed for its images.`,
    );
    world.stub('df', `case "$*" in *${root}) echo 90000000000 ;; *) echo 900000000 ;; esac`);
    expect(refused(1, archive, ...ADDRESS)).toMatch(/ has 0\.9 GB free; 1\.0 GB are needed for the release\./);
  });

  it('does not ask for the room again that a set-up has filled', () => {
    world.become(prepared);
    world.stub('df', 'printf "Avail\\n5900000000\\n"');
    world.docker({ images: true });
    expect(world.run(archive).status).toBe(0);
    expect(world.run().status).toBe(0);
    refused(1, newer);
  });

  it('with an older archive, one of the other variant, or none that is kept, changes nothing', () => {
    world.become(prepared);
    expect(refused(1, older)).toContain("is 5.6-RELEASE-30, older than this stack's release 5.7-RELEASE-8");
    expect(refused(1, hardened)).toContain('is the variant hardened, but this stack uses the variant docker');
    expect(refused(1, '--light')).toContain('This stack was set up from TAK Server 5.7-RELEASE-8');
  });

  it('refuses an archive for a stack that was set up as a light one', () => {
    world.run('--light', ...ADDRESS);
    expect(refused(1, archive)).toContain('This stack was set up as a light stack');
    expect(refused(2)).toContain('This stack was set up as a light stack.\n  Remedy: run ./scripts/setup.sh --light');
  });

  it('refuses days for a core that counts seconds', () => {
    world.writeEnv('CORE_RETENTION_UNIT=days\n');
    expect(refused(1, archive, ...ADDRESS)).toContain(
      'CORE_RETENTION_UNIT is days in .env, but a TAK Server counts seconds.',
    );
  });

  it('refuses an archive that leads out of its folder, in words, and builds nothing', () => {
    const evil = join(world.path, 'takserver-docker-5.7-RELEASE-8.zip');
    writeFileSync(evil, zipArchive([{ name: 'takserver-docker-5.7-RELEASE-8/../../evil', bytes: 'x' }]));
    expect(refused(1, evil, ...ADDRESS)).toContain(
      'takserver-docker-5.7-RELEASE-8.zip: the entry "takserver-docker-5.7-RELEASE-8/../../evil" leads out of its folder.',
    );
    expect(world.request()).toEqual([]);
  });

  it('when .env cannot be written takes the release back', () => {
    world.become(prepared);
    // The last thing that it does, with everything built.
    world.stub('mktemp', 'case "$*" in *.env*) exit 1 ;; *) exec /usr/bin/mktemp "$@" ;; esac');
    expect(refused(1, newer)).toContain("Couldn't write a file next to .env.");
    expect(upTo('5.10')).toEqual([]);
  });

  it('by SIGKILL in the middle is healed by the next one', { timeout: 60_000 }, async () => {
    world.become(prepared);
    const before = world.tree();
    // It hangs in the first build, with the release unpacked beside its place.
    world.stub(
      'docker',
      `case "$*" in 'build --progress'*) echo hangs >>'${world.log}'; exec sleep 600 ;; esac\nexec '${world.programs}/docker.real' "$@"`,
    );
    hangingDocker();
    const child = spawn(join(world.path, 'scripts/setup.sh'), [newer], {
      env: { PATH: `${world.programs}:${process.env['PATH'] ?? ''}` },
      detached: true,
      stdio: 'ignore',
    });
    const hangs = (): boolean => readFileSync(world.log, 'utf8').includes('hangs');
    const ended = once(child, 'exit');
    try {
      await expect.poll(hangs, { timeout: 20_000 }).toBe(true);
    } finally {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
      await ended;
    }
    expect(readdirSync(join(world.path, 'release')).length).toBe(2);
    world.docker();
    expect(world.run()).toMatchObject({ status: 0, stderr: '' });
    expect(world.tree()).toEqual(before);
  });

  /** The usual answers under another name, for a stub that hangs in between. */
  function hangingDocker(): void {
    const hanging = readFileSync(join(world.programs, 'docker'), 'utf8');
    world.docker();
    writeFileSync(join(world.programs, 'docker.real'), readFileSync(join(world.programs, 'docker')), { mode: 0o755 });
    writeFileSync(join(world.programs, 'docker'), hanging, { mode: 0o755 });
  }
});

describe('the set-up script where Node is missing', { timeout: 30_000 }, () => {
  beforeEach(() => rmSync(join(world.path, 'node_modules'), { recursive: true }));

  it.each([
    { rootless: false, account: `${process.getuid?.()}:${process.getgid?.()}` },
    { rootless: true, account: '0:0' },
  ])(
    'lets our image read the archive, without network and with nothing else to see (without root: $rootless)',
    ({ rootless, account }) => {
      world.docker({ rootless });
      const answers = readFileSync(join(world.programs, 'docker'), 'utf8');
      const replies = `case "$*" in
  run*' inspect '*) printf 'version=5.7-RELEASE-8\\nvariant=docker\\ncore_dockerfile=docker/A\\ndatabase_dockerfile=docker/B\\nbytes=9\\nunpacked=no\\n' ;;
  run*' unpack '*) mkdir -p '${world.path}/release/.new-made'; echo directory=.new-made ;;
esac`;
      writeFileSync(join(world.programs, 'docker'), `${answers}${replies}\n`);
      expect(world.run(archive, ...ADDRESS)).toMatchObject({ status: 0, stderr: '' });
      const [own, inspect, unpack] = world.request();
      expect(own).toContain('build program');
      const common = `run --rm --network none --read-only --cap-drop ALL --security-opt no-new-privileges --user ${account} --mount type=bind,"source=${world.path}/release",target=/release --mount type=bind,"source=${archive}","target=/archive/${basename(archive)}",readonly --entrypoint node ${OUR_IMAGE} /app/dist/release.js`;
      expect(inspect).toBe(`${common} inspect /archive/${basename(archive)} --releases /release`);
      expect(unpack).toBe(
        `${common} unpack /archive/${basename(archive)} --releases /release --expected 5.7-RELEASE-8`,
      );
      expect(world.request().length).toBe(BUILDS + 2);
      expect(readdirSync(join(world.path, 'release'))).toEqual(['5.7-RELEASE-8']);
    },
  );
});

describe.skipIf(obstacle !== undefined)('Docker Compose in a root that was set up from a release', () => {
  it('takes what the set-up script wrote, without a word, and knows the images that it built', () => {
    world.become(prepared);
    const { status, stdout, stderr } = world.compose(['config', '--images']);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout.split('\n')).toEqual(
      expect.arrayContaining([
        'localhost/holdfast-core:5.7-RELEASE-8',
        'localhost/holdfast-core-database:5.7-RELEASE-8',
        OUR_IMAGE,
      ]),
    );
  });
});
