// ./scripts/start.sh for the stack in containers, with a `docker` that the test has laid out: what
// it refuses before anything is changed, what it says while it waits, when it gives up, and that
// nothing but the probe makes it succeed.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Answers, DockerProgram } from '../../packages/setup/test/docker-program.ts';

const REPOSITORY = resolve(import.meta.dirname, '../..');
const ENV = `SERVER_ADDRESS=192.0.2.7
DEPLOY_MODE=direct
COMPOSE_FILE=compose/compose.yaml:compose/compose.light.yaml:compose/compose.direct.yaml
CORE_WEBADMIN_PASSWORD=never-to-be-shown
`;
const CONFIG = 'name: holdfast\nservices:\n';
const state = (service: string, of: string): string => `${service}|${of}|2026-01-01T00:00:00Z|id-${service}\n`;
const HEALTHY = state('management', 'running|healthy|0|0|unless-stopped|false');
const PROOF = 'Connection check:\n  ok   bind 12 ms\nA device can enroll, connect and send.\n';

let home: string;
let docker: DockerProgram;
let listening: Server | undefined;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'holdfast-start-'));
  for (const name of ['scripts', 'compose/program.yaml', 'monitor/config']) {
    mkdirSync(join(home, name, '..'), { recursive: true });
    cpSync(join(REPOSITORY, name), join(home, name), { recursive: true });
  }
  writeFileSync(join(home, '.env'), ENV, { mode: 0o600 });
  docker = new DockerProgram(join(home, 'programs'));
});
afterEach(() => {
  listening?.close();
  listening = undefined;
  rmSync(home, { recursive: true, force: true });
});

/** Of a machine on which everything goes well, with what is different. */
function lay(different: Answers = {}): void {
  const usual: Answers = {
    'compose version --short': { says: '2.26.1\n' },
    'compose config --format json': { says: '{}' },
    'compose config': { says: CONFIG },
    'image inspect *': {},
    'run --rm -i *preflight.js --of-compose': { does: 'cat >/dev/null' },
    'compose --ansi never * up -d --remove-orphans': {},
    'compose ps --all --quiet*': { says: 'id-management\n' },
    'inspect --format *': { says: HEALTHY },
    'compose exec -T management node /app/dist/prove.js *': { says: PROOF },
  };
  // The first pattern that fits counts.
  docker.lay({ ...different, ...Object.fromEntries(Object.entries(usual).filter(([name]) => !(name in different))) });
}

const environment = (): Record<string, string> => ({
  PATH: `${docker.directory}:${process.env['PATH'] ?? ''}`,
  HOME: home,
});

function start(...args: string[]): { code: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(join(home, 'scripts/start.sh'), args, {
    cwd: tmpdir(),
    encoding: 'utf8',
    env: environment(),
  });
  return { code: status, output: stdout + stderr };
}

const wasStarted = (): boolean => docker.calls().some((call) => call.includes(' up -d'));

describe('a start that goes well', () => {
  it('brings the stack up without orphans, proves it, and says where everything is but not the password', () => {
    lay();
    const { code, output } = start();
    expect(output).toContain('A device can enroll, connect and send.');
    expect(output).toMatch(/management +healthy/);
    expect(output).toContain('Portal       https://192.0.2.7/');
    expect(output).toContain(`CORE_WEBADMIN_PASSWORD in ${join(home, '.env')}`);
    expect(output).not.toContain('never-to-be-shown');
    expect(code).toBe(0);
    expect(docker.calls().filter((call) => call.includes('up -d'))).toEqual([
      'compose --ansi never --progress plain up -d --remove-orphans',
    ]);
  });

  it('names the four hosts of subdomain mode', () => {
    writeFileSync(join(home, '.env'), ENV.replace('192.0.2.7', 'cot.example.org').replace('=direct', '=subdomain'));
    lay();
    const { code, output } = start('--no-dns-check');
    expect(code).toBe(0);
    for (const host of ['', 'monitor.', 'nodered.', 'takserver.'])
      expect(output).toContain(`https://${host}cot.example.org/`);
  });

  it('waits for whoever is still starting, a line for each step, with the phases of the core', () => {
    const of = (health: string): string => HEALTHY + state('core', `running|${health}|0|0|unless-stopped|false`);
    lay({
      'inspect --format *': { says: [of('starting'), of('starting'), of('healthy')] },
      'logs --tail 60 id-core': { says: '{"event":"core.phase","phase":"waiting for the database"}\n' },
    });
    const { code, output } = start();
    expect(code).toBe(0);
    const lines = output.split('\n').filter((line) => /^ +\d+:\d\d +core/.test(line));
    expect(lines.map((line) => line.replace(/^ +\d+:\d\d +core +/, ''))).toEqual([
      'starting',
      '... waiting for the database',
      'healthy',
    ]);
  });

  it('finishes a rotation of secrets, and deletes what was kept for it', () => {
    const kept = join(home, '.env.before-rotation-20260101T000000Z');
    writeFileSync(kept, ENV);
    lay();
    expect(start()).toMatchObject({ code: 0, output: expect.stringContaining('Secret rotation is complete') });
    expect(existsSync(kept)).toBe(false);
  });
});

describe('a start that is refused', () => {
  it('says both ways of a set-up where there is no .env', () => {
    rmSync(join(home, '.env'));
    lay();
    const { code, output } = start();
    expect([code, wasStarted()]).toEqual([1, false]);
    expect(output).toMatch(/\.env is missing.*\n.*setup\.sh ARCHIVE.*setup\.sh --light/);
  });

  it.each([
    [['--timeout', '0'], /--timeout '0' is not a number of minutes/],
    [['--timeout'], /--timeout '' is not a number/],
    [['--data', '/x'], /--data is an option of the embedded stack/],
    [['--flows'], /--flows is an option of the embedded stack/],
    [['--what'], /Unknown option: --what/],
  ])('does not understand %j', (args, message) => {
    lay();
    const { code, output } = start(...args);
    expect([code, wasStarted()]).toEqual([2, false]);
    expect(output).toMatch(message);
  });

  it('says what Compose does not take', () => {
    lay({ 'compose config': { complains: 'required variable AUDIT_KEY is missing a value\n', code: 1 } });
    const { code, output } = start();
    expect([code, wasStarted()]).toEqual([1, false]);
    expect(output).toContain('AUDIT_KEY is missing');
  });

  it('says every problem at once, each with its remedy, and starts nothing', async () => {
    listening = createServer().listen(0, '0.0.0.0');
    await new Promise((begun) => listening?.once('listening', begun));
    const { port } = listening.address() as { port: number };
    writeFileSync(
      join(home, '.env'),
      `${ENV.replace('192.0.2.7', 'cot.invalid').replace('=direct', '=subdomain').replace(':compose/compose.light.yaml', '')}CORE_RELEASE=5.4-RELEASE-19\n`,
    );
    lay({
      'compose config': { says: `${CONFIG}        published: "${port}"\n        published: "1"\n` },
      'image inspect localhost/holdfast-core:5.4-RELEASE-19': { code: 1 },
      'run --rm -i *preflight.js --of-compose': {
        does: 'cat >/dev/null',
        complains: 'AUDIT_KEY=***: is short\n    Remedy: another\n',
        code: 1,
      },
    });
    const { code, output } = await outcomeOf(spawn(join(home, 'scripts/start.sh'), [], { env: environment() }));
    expect([code, wasStarted()]).toEqual([1, false]);
    expect(output).toContain('nothing was changed');
    expect(output).toContain('The image localhost/holdfast-core:5.4-RELEASE-19 is missing.');
    expect(output).toMatch(new RegExp(`Port ${port} is in use by \\S+ \\(process ${process.pid}\\)`));
    expect(output).not.toContain('Port 1 ');
    for (const name of ['cot.invalid', 'monitor.cot.invalid', 'nodered.cot.invalid', 'takserver.cot.invalid'])
      expect(output).toContain(`${name} does not resolve in DNS.`);
    expect(output).toContain('AUDIT_KEY=***: is short');
    expect(output.match(/Remedy: /g)?.length).toBe(7);
  });

  it('names the container that has a port, and lets the stack keep its own', () => {
    const published = { 'compose config': { says: `${CONFIG}        published: "443"\n` } };
    lay({ ...published, 'ps --filter publish=443 *': { says: 'other-web-1\n' } });
    expect(start()).toMatchObject({
      code: 1,
      output: expect.stringContaining('Port 443 is in use by the container other-web-1'),
    });
    lay({ ...published, 'ps --quiet --filter label=* --filter publish=443': { says: 'id-caddy\n' } });
    expect(start().code).toBe(0);
  });

  it('says that a set-up is missing where production has no release', () => {
    writeFileSync(join(home, '.env'), ENV.replace(':compose/compose.light.yaml', ''));
    lay();
    expect(start()).toMatchObject({
      code: 1,
      output: expect.stringMatching(/CORE_RELEASE is not set.*\n.*setup\.sh ARCHIVE/),
    });
  });
});

it('refuses a start without the file of the thresholds, and tells Compose when it has changed', () => {
  const file = join(home, 'monitor/config/thresholds.yml');
  lay({
    'compose config': {
      does: 'echo "sum=$HOLDFAST_THRESHOLDS" >>"$HOME/sums"; printf "name: holdfast\\nservices:\\n"',
    },
  });
  start();
  writeFileSync(file, `${readFileSync(file, 'utf8')}\n# edited\n`);
  start();
  const sums = new Set(readFileSync(join(home, 'sums'), 'utf8').match(/[0-9a-f]{64}/g));
  expect(sums.size).toBe(2);
  rmSync(file);
  expect(start()).toMatchObject({
    code: 1,
    output: expect.stringContaining('git checkout monitor/config/thresholds.yml'),
  });
});

describe('a start that fails', () => {
  const failing = (
    of: string,
    logs = '{"level":"info","event":"core.listening"}\n{"level":"error","event":"core.failed","error":"no database"}\n',
  ): void => lay({ 'inspect --format *': { says: HEALTHY + of }, 'logs *': { says: logs } });

  it.each([
    [
      'a one-shot that ended now',
      `configuration|exited|none|1|0|no|false|2099-01-01T00:00:00Z|id-configuration\n`,
      'configuration exited with code 1',
    ],
    [
      'a container that ends again and again',
      'core|restarting|starting|1|9|unless-stopped|false|2099-01-01T00:00:00Z|id-core\n',
      '',
    ],
  ])('at once for %s', (_, of, says) => {
    if (says === '') {
      const at = (count: number): string => HEALTHY + of.replace('|9|', `|${count}|`);
      lay({
        'inspect --format *': { says: [at(0), at(1), at(3)] },
        'logs *': { says: '{"level":"error","event":"core.failed"}\n' },
      });
    } else failing(of);
    const { code, output } = start();
    expect(code).toBe(1);
    expect(output).toContain(says === '' ? 'core was restarted 3 times and exited each time' : says);
    expect(output).toMatch(/Last log lines:\n {4}\{"level":"error","event":"core.failed"/);
    expect(output).not.toContain('core.listening');
    expect(output).toMatch(/Remedy: .*docker compose logs (?:core|configuration)/);
  });

  it('names the memory where a container had too little', () => {
    failing('core|exited|none|137|0|no|true|2099-01-01T00:00:00Z|id-core\n');
    expect(start().output).toMatch(/core exited with code 137[\s\S]*ran out of memory: .*CORE_MEMORY/);
  });

  it('takes a one-shot of an earlier start for what it was', () => {
    lay({
      'inspect --format *': {
        says: [
          `${HEALTHY}configuration|exited|none|1|0|no|false|2020-01-01T00:00:00Z|id-c\n`,
          `${HEALTHY}configuration|exited|none|0|0|no|false|2099-01-01T00:00:00Z|id-c\n`,
        ],
      },
    });
    expect(start()).toMatchObject({ code: 0, output: expect.stringMatching(/configuration +completed/) });
  });

  it('shows the words of whoever Compose has waited for in vain', () => {
    lay({
      'compose --ansi never * up -d --remove-orphans': {
        complains: 'dependency failed to start: container holdfast-core-database-1 is unhealthy\n',
        code: 1,
      },
      'inspect --format * holdfast-core-database-1': { says: 'core-database\n' },
      'logs *': { says: 'no room\n' },
    });
    expect(start()).toMatchObject({
      code: 1,
      output: expect.stringMatching(/core-database did not become healthy\. Last log lines:\n {4}no room/),
    });
  });

  it('shows what Compose said of anything else', () => {
    lay({
      'compose --ansi never * up -d --remove-orphans': {
        complains: 'Pool overlaps with other one on this address space\n',
        code: 1,
      },
    });
    expect(start()).toMatchObject({ code: 1, output: expect.stringContaining('Pool overlaps') });
  });

  it('when the probe does not come through, and keeps what a rotation needs', () => {
    const kept = join(home, '.env.before-rotation-20260101T000000Z');
    writeFileSync(kept, ENV);
    lay({ 'compose exec -T management node /app/dist/prove.js *': { says: 'The probe failed.\n', code: 1 } });
    const { code, output } = start();
    expect(code).toBe(1);
    expect(output).toContain('the connection check failed');
    expect(readFileSync(kept, 'utf8')).toBe(ENV);
  });
});

async function outcomeOf(child: ChildProcess): Promise<{ code: number | null; output: string }> {
  let output = '';
  child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | null>((ended) => child.once('close', ended));
  return { code, output };
}
