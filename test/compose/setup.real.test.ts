// ./scripts/setup.sh: what it writes, what it leaves alone, and what it refuses in which words.
// Docker is stood in for by a program that says a version; what Compose makes of the result is
// asked where it is at hand.

import { spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { GENERATED_NAMES } from '@holdfast/stack/secrets';
import { type Answer, composeObstacle, ComposeRoot, REPOSITORY } from '../../packages/setup/test/compose.ts';
import { loadSettings, parseEnvFile } from '../../shared/settings/load.ts';
import { describeProblem } from '../../shared/settings/setting.ts';

const asRoot = process.getuid?.() === 0;
const SUBDOMAIN = 'compose/compose.yaml:compose/compose.light.yaml';
const ADDRESS = ['--light', '--address', 'cot.example.org'];
const obstacle = composeObstacle();
/** What the containers have besides the secrets of the embedded stack. */
const SECRETS = [...GENERATED_NAMES, 'FLOWS_TOKEN', 'VIDEO_PUBLISH_PASSWORD', 'VIDEO_READ_PASSWORD'];

let root: ComposeRoot;
let programs: string;

/** A `docker` whose Compose has this version; without one it has no Compose. */
function dockerWith(version: string | undefined): void {
  const answer = version === undefined ? 'exit 1' : `[ "$1 $2" = "compose version" ] && echo '${version}'`;
  writeFileSync(join(programs, 'docker'), `#!/bin/sh\n${answer}\n`, { mode: 0o755 });
}

const setUp = (args: readonly string[]): Answer => root.setUp(args, programs);
const values = (): Record<string, string> => parseEnvFile(root.readEnv()).values;

beforeEach(() => {
  root = new ComposeRoot();
  programs = join(root.path, 'programs');
  mkdirSync(programs);
  dockerWith('2.26.1-4');
});
afterEach(() => root.remove());

describe('the set-up script', () => {
  it('writes .env for its owner alone: address, mode, layers and a secret of its own for everything generated', () => {
    const { status, stdout, stderr } = setUp(ADDRESS);
    expect([status, stderr]).toEqual([0, '']);
    expect(statSync(root.envFile).mode & 0o777).toBe(0o600);
    const set = Object.fromEntries(Object.entries(values()).filter(([, value]) => value !== ''));
    const { SERVER_ADDRESS, DEPLOY_MODE, COMPOSE_FILE, ...others } = set;
    expect({ SERVER_ADDRESS, DEPLOY_MODE, COMPOSE_FILE }).toEqual({
      SERVER_ADDRESS: 'cot.example.org',
      DEPLOY_MODE: 'subdomain',
      COMPOSE_FILE: SUBDOMAIN,
    });
    const secrets = SECRETS.map((name) => others[name]);
    expect(Object.keys(others).toSorted()).toEqual(SECRETS.toSorted());
    for (const secret of secrets) expect(secret).toMatch(/^[A-HJ-NP-Za-km-z2-9]{32}$/);
    expect(new Set(secrets).size).toBe(secrets.length);
    expect(stdout).toContain('./scripts/start.sh');
    expect(secrets.filter((secret) => stdout.includes(secret ?? ''))).toEqual([]);
    expect(parseEnvFile(root.readEnv()).problems).toEqual([]);
  });

  it('takes the letters of the embedded stack', () => {
    const lettersIn = (path: string): string | undefined =>
      /LETTERS = ?'?(\w+)|LETTERS=(\w+)/
        .exec(readFileSync(join(REPOSITORY, path), 'utf8'))
        ?.slice(1)
        .find(Boolean);
    expect(lettersIn('scripts/docker.sh')).toBe(lettersIn('packages/stack/secrets.ts'));
  });

  it('keeps the shape of the template: each value stands under the line that explains it, once', () => {
    setUp(ADDRESS);
    const template = readFileSync(join(root.path, '.env.template'), 'utf8');
    const comments = (text: string): string[] => text.split('\n').filter((line) => line.startsWith('# '));
    expect(comments(root.readEnv())).toEqual(expect.arrayContaining(comments(template)));
    const names = root
      .readEnv()
      .split('\n')
      .flatMap((line) => /^([A-Z_]+)=./.exec(line)?.[1] ?? []);
    expect(names.length).toBe(new Set(names).size);
    expect(names.length).toBe(3 + SECRETS.length);
  });

  it('run again it changes nothing', () => {
    setUp(ADDRESS);
    const before = root.readEnv();
    const again = setUp(['--light']);
    expect([again.status, root.readEnv()]).toEqual([0, before]);
    expect(again.stdout).toContain('nothing was changed');
  });

  it('adds what is missing to an .env that is there, and changes nothing that is set', () => {
    const own = `# mine\nSERVER_ADDRESS=fire.example.net\nSESSION_KEY='a $ and a # in quotes, of 32 or more'\nAUDIT_KEY=\n#DEPLOY_MODE=direct\nMON_DISK_WARNING=70\nTZ=Europe/Vienna`;
    root.writeEnv(own);
    expect(setUp(['--light']).status).toBe(0);
    const written = root.readEnv();
    expect(written.replace(/^AUDIT_KEY=\w{32}$/m, 'AUDIT_KEY=').startsWith(`${own}\n`)).toBe(true);
    expect(values()).toMatchObject({
      SERVER_ADDRESS: 'fire.example.net',
      SESSION_KEY: 'a $ and a # in quotes, of 32 or more',
      DEPLOY_MODE: 'subdomain',
      TZ: 'Europe/Vienna',
    });
    expect(Object.keys(values())).toEqual(expect.arrayContaining([...SECRETS, 'COMPOSE_FILE']));
    expect(statSync(root.envFile).mode & 0o777).toBe(0o600);
  });

  it('makes a cluster of a light stack, and one core of it again, whatever other layers there are', () => {
    setUp(ADDRESS);
    const layers = (): string => values()['COMPOSE_FILE'] ?? '';
    const more = `${SUBDOMAIN}:compose/compose.runtime.yaml`;
    root.writeEnv(root.readEnv().replace(/^COMPOSE_FILE=.*$/m, `COMPOSE_FILE=${more}`));
    const { NATS_PASSWORD: none, ...before } = values();
    expect(none).toBe('');
    const added = 'Set in .env: COMPOSE_FILE, NATS_PASSWORD, CONTAINER_RUNTIME_URL';
    expect(setUp(['--light', '--cluster']).stdout).toContain(added);
    expect(layers()).toBe(`${SUBDOMAIN}:compose/compose.cluster.yaml:compose/compose.runtime.yaml`);
    const { NATS_PASSWORD: made = '' } = values();
    expect(made).toMatch(/^\w{32}$/);
    expect(values()).toMatchObject({ ...before, COMPOSE_FILE: layers() });
    for (const again of [['--light', '--cluster'], ['--light']])
      expect(setUp(again).stdout).toContain('nothing was changed');
    expect(setUp(['--light', '--alone']).status).toBe(0);
    const CONTAINER_RUNTIME_URL = 'http://container-proxy:2375';
    expect(values()).toEqual({ ...before, NATS_PASSWORD: made, CONTAINER_RUNTIME_URL });
    expect(setUp(['--light', '--alone']).stdout).toContain('nothing was changed');
  });

  it('begins with a cluster', () => {
    expect(setUp([...ADDRESS, '--cluster']).status).toBe(0);
    expect(values()['COMPOSE_FILE']).toBe(`${SUBDOMAIN}:compose/compose.cluster.yaml`);
    expect(values()['NATS_PASSWORD']).toMatch(/^\w{32}$/);
    expect(values()['CONTAINER_RUNTIME_URL']).toBeUndefined();
  });

  it('writes through a link to where .env really is', () => {
    mkdirSync(join(root.path, 'kept'));
    writeFileSync(join(root.path, 'kept/env'), 'TZ=UTC\n');
    symlinkSync('kept/env', root.envFile);
    expect(setUp(ADDRESS).status).toBe(0);
    expect(readFileSync(join(root.path, 'kept/env'), 'utf8')).toContain('SERVER_ADDRESS=cot.example.org');
  });

  it('fills a setting that stands there twice without a value in both lines, because the last one counts', () => {
    root.writeEnv('APP_DB_PASSWORD=\nTZ=UTC\n\nAPP_DB_PASSWORD=\n\n\n');
    expect(setUp(ADDRESS).status).toBe(0);
    const [first, , , second] = root.readEnv().split('\n');
    expect(first).toMatch(/^APP_DB_PASSWORD=\w{32}$/);
    expect(second).toBe(first);
  });

  it.each(['CORE_DB_PASSWORD: mine', '\uFEFFCORE_DB_PASSWORD=mine', 'export CORE_DB_PASSWORD = mine\r'])(
    'sees the value of %j, as Compose does, and adds no second one',
    (line) => {
      root.writeEnv(`${line}\nTZ=UTC\n`);
      expect(setUp(ADDRESS).status).toBe(0);
      expect(root.readEnv().startsWith(`${line}\nTZ=UTC\n`)).toBe(true);
      expect(root.readEnv().match(/CORE_DB_PASSWORD/g)).toHaveLength(1);
    },
  );

  it('says what is the matter when .env is a directory', () => {
    mkdirSync(root.envFile);
    expect(setUp(ADDRESS)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^\.env is a directory, not a settings file\.\n {2}Remedy/),
    });
  });

  it.runIf(asRoot)('leaves .env to its owner when root runs it, whoever owns the directory', () => {
    root.writeEnv('TZ=UTC\n');
    chownSync(root.envFile, 12_345, 12_345);
    expect(setUp(ADDRESS).status).toBe(0);
    expect(statSync(root.envFile)).toMatchObject({ uid: 12_345, gid: 12_345 });
  });

  it.runIf(asRoot)('on a full disk says so, and leaves .env as it was and nothing beside it', () => {
    const kept = join(root.path, 'kept');
    mkdirSync(kept);
    symlinkSync('kept/env', root.envFile);
    const script = `mount -t tmpfs -o size=4k tmpfs "$1" && echo TZ=UTC >"$1/env" && PATH="$2:$PATH" "$3" --light --address a.example.org; echo "$?"; cat "$1/env"; ls -A "$1"`;
    const args = ['--mount', 'sh', '-c', script, 'sh', kept, programs, join(root.path, 'scripts/setup.sh')];
    const { stdout, stderr } = spawnSync('unshare', args, { encoding: 'utf8' });
    expect(stdout).toBe('1\nTZ=UTC\nenv\n');
    expect(stderr).toMatch(/Couldn't write .*\. It is unchanged\.\n {2}Remedy: check free disk space/);
  });

  it('takes direct mode for an address, and when asked', () => {
    expect(setUp(['--light', '--address=192.0.2.7']).status).toBe(0);
    expect(values()).toMatchObject({ DEPLOY_MODE: 'direct', COMPOSE_FILE: SUBDOMAIN });
    root.writeEnv('');
    expect(setUp([...ADDRESS, '--mode', 'direct']).status).toBe(0);
    expect(values()).toMatchObject({ DEPLOY_MODE: 'direct', COMPOSE_FILE: SUBDOMAIN });
  });

  it('leaves the unit of retention to the light stack, and what it writes is a right configuration', () => {
    setUp(ADDRESS);
    expect(values()).not.toHaveProperty('CORE_RETENTION_UNIT');
    const layer = { source: 'env file', values: { ...values(), DATABASE_URL: 'postgres://a:b@c/d' } } as const;
    expect(loadSettings([layer], 'container').problems.map(describeProblem)).toEqual([]);
  });

  it('makes what is mounted readable for the accounts of the containers', () => {
    const file = join(root.path, 'compose/caddy/any.Caddyfile');
    writeFileSync(file, '', { mode: 0o600 });
    setUp(ADDRESS);
    expect(statSync(file).mode & 0o777).toBe(0o644);
  });

  it.each([
    { args: ['--light', '--frob'], status: 2, says: 'Unknown option: --frob.' },
    { args: ['--light', '--cluster', '--alone'], status: 2, says: '--cluster and --alone contradict each other.' },
    { args: ['--cluster'], status: 2, says: '--cluster is only for our own core.' },
    { args: ['--light', '--address'], status: 2, says: '--address needs a value.' },
    { args: ['--light', '--mode', 'both'], status: 2, says: 'Unknown mode: both.' },
    { args: ['--light'], status: 2, says: 'SERVER_ADDRESS is not set. Devices need it to reach this server.' },
    { args: ['--light', '--address', 'https://a.b'], status: 2, says: "'https://a.b' is not a host name" },
    {
      args: ['--light', '--address', '2001:db8::1'],
      status: 2,
      says: "'2001:db8::1' is not a host name or IPv4 address",
    },
    { args: ['--light', '--address', '300.1.2.3'], status: 2, says: "'300.1.2.3' is not a host name or IPv4 address" },
    { args: ['--light', '--address', '192.0.2'], status: 2, says: "'192.0.2' is not a host name" },
    { args: ['--light', '--address', 'cot..example.org'], status: 2, says: "'cot..example.org' is not a host name" },
    { args: ['--light', '--address', 'server'], status: 2, says: 'Public certificates need a public host name' },
    {
      args: ['--light', '--address', '192.0.2.7', '--mode', 'subdomain'],
      status: 2,
      says: 'Public certificates need a public host name',
    },
    { args: [], status: 2, says: 'No release archive given, and no release in .env.' },
    { args: ['takserver-docker-5.4.zip'], status: 2, says: '/takserver-docker-5.4.zip.' },
    { args: ['--light', 'takserver-docker-5.4.zip'], status: 2, says: 'The light stack has its own core' },
    { args: ['one.zip', 'two.zip'], status: 2, says: 'Two archives given: one.zip and two.zip.' },
  ])('$args is refused with a remedy, and nothing is written', ({ args, status, says }) => {
    const answer = setUp(args);
    expect(answer).toMatchObject({ status, stdout: '' });
    expect(answer.stderr).toContain(says);
    expect(answer.stderr).toMatch(/\n {2}Remedy: .+\n$/);
    expect(() => root.readEnv()).toThrow('ENOENT');
  });

  it('says what it can do', () => {
    const answer = setUp(['--help']);
    expect([answer.status, answer.stderr]).toEqual([0, '']);
    for (const option of ['--light', '--address', '--mode', '--help']) expect(answer.stdout).toContain(option);
  });

  it.each([
    { version: undefined, says: 'Docker has no Compose plugin.' },
    { version: '2.23.3', says: 'Docker Compose 2.23.3 is too old. Version 2.24.4 or newer' },
    { version: '2.24.3', says: 'Docker Compose 2.24.3 is too old. Version 2.24.4 or newer' },
    { version: 'dev', says: "Docker Compose reports an unknown version: 'dev'" },
  ])('Compose $version is refused', ({ version, says }) => {
    dockerWith(version);
    const answer = setUp(ADDRESS);
    expect(answer.status).toBe(1);
    expect(answer.stderr).toContain(says);
  });

  it.each(['2.24.4', 'v2.24.5', '2.40.3', '5.0.0-rc.1', '2.26.1-desktop.1'])('Compose %s will do', (version) => {
    dockerWith(version);
    expect(setUp(ADDRESS).status).toBe(0);
  });

  it.each(['a$b', '"a$b"', 'a$$b', '"a\\\\$b"'])(
    'refuses the value %s, which Compose would change, without showing it',
    (value) => {
      root.writeEnv(`CORE_DB_PASSWORD=${value}\n`);
      const answer = setUp(ADDRESS);
      expect(answer.status).toBe(1);
      expect(answer.stderr).toContain('The value of CORE_DB_PASSWORD in .env has a $ outside single quotes');
      expect(answer.stderr).toContain("CORE_DB_PASSWORD='...'");
      expect(answer.stderr).not.toContain(value);
      expect(root.readEnv()).toBe(`CORE_DB_PASSWORD=${value}\n`);
    },
  );

  it.each([
    { env: 'DEPLOY_MODE=Direct', args: [], says: 'DEPLOY_MODE in .env has an unknown value: Direct.' },
    { env: 'DEPLOY_MODE=direct', args: ['--mode', 'subdomain'], says: 'DEPLOY_MODE is already set to direct' },
    {
      env: 'SERVER_ADDRESS=a.example.org',
      args: ['--address', 'b.example.org'],
      says: 'SERVER_ADDRESS is already set to a.example.org',
    },
    {
      env: 'COMPOSE_FILE=compose/compose.yaml',
      args: [],
      says: 'COMPOSE_FILE in .env lacks compose/compose.light.yaml',
    },
  ])('$env does not go with $args: refused, nothing changed', ({ env, args, says }) => {
    const text = `${env.includes('SERVER_ADDRESS') ? '' : 'SERVER_ADDRESS=cot.example.org\n'}${env}\n`;
    root.writeEnv(text);
    const answer = setUp(['--light', ...args]);
    expect(answer.status).toBe(1);
    expect(answer.stderr).toContain(says);
    expect(root.readEnv()).toBe(text);
  });
});

describe.skipIf(obstacle !== undefined)(
  obstacle === undefined ? 'Docker Compose in the root' : `Docker Compose in the root: not asked, because ${obstacle}`,
  () => {
    it('takes what the set-up script wrote, without a word', () => {
      setUp(ADDRESS);
      expect(root.compose(['config', '--quiet'])).toEqual({ status: 0, stdout: '', stderr: '' });
    });

    it('without secrets names the set-up script', () => {
      root.writeEnv(`SERVER_ADDRESS=cot.example.org\nDEPLOY_MODE=subdomain\nCOMPOSE_FILE=${SUBDOMAIN}\n`);
      const { status, stderr } = root.compose(['config', '--quiet']);
      expect(status).not.toBe(0);
      expect(stderr).toMatch(/required variable \w+ is missing a value: run \.\/scripts\/setup\.sh, which makes one/);
    });

    it('reads quoted values of .env as Holdfast does', () => {
      setUp(ADDRESS);
      const odd = [
        String.raw`RESEND_API_KEY='pa$$ "w"o#rd ${'$'}HOME \n'`,
        String.raw`BREVO_API_KEY="d \$x \\ \" # y"`,
        'METRICS_TOKEN=plain#not-a-comment # a comment',
        "TWILIO_AUTH_TOKEN='quoted' # a comment",
        'export MON_DISK_WARNING = 71',
      ].join('\n');
      root.writeEnv(`${root.readEnv()}${odd}\n`);
      const { environment = {} } = root.config(['base', 'light']).services['management'] ?? {};
      const { values: ours } = parseEnvFile(odd);
      expect(Object.keys(ours).length).toBe(5);
      // In its answer Compose doubles every $.
      for (const [name, value] of Object.entries(ours))
        expect([name, environment[name]?.replaceAll('$$', '$')]).toEqual([name, value]);
      expect(setUp(['--light']).status).toBe(0);
    });
  },
);
