// The scripts for operators on the stack in containers, with a `docker` that the test has laid out:
// what they ask of it, what they write, what they refuse; and that no password is in any argument.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NEVER_ROTATED, ROTATED } from '@holdfast/stack/secrets';
import type { Answers, DockerProgram } from '../../packages/setup/test/docker-program.ts';
import { OperatorScripts, type ScriptAnswer } from '../../packages/setup/test/operator-scripts.ts';
import { parseEnvFile } from '../../shared/settings/load.ts';

const REPOSITORY = resolve(import.meta.dirname, '../..');
const LIGHT = 'compose/compose.yaml:compose/compose.light.yaml';
const ENV = `# kept
SERVER_ADDRESS=cot.example.org
DEPLOY_MODE=subdomain
COMPOSE_FILE=${LIGHT}
CORE_WEBADMIN_PASSWORD=OldPasswordOfWebadmin
APP_DB_PASSWORD=OldAppPassword
SESSION_KEY=OldSessionKeyOldSessionKeyOldSes
AUDIT_KEY=OldAuditKey
LDAP_BIND_PASSWORD=
`;

let scripts: OperatorScripts;
let home: string;
let docker: DockerProgram;

beforeEach(() => {
  scripts = new OperatorScripts(ENV);
  ({ home, docker } = scripts);
});
afterEach(() => scripts.remove());

const lay = (different?: Answers): void => scripts.lay(different);
const run = (script: string, args?: readonly string[], input?: string): ScriptAnswer =>
  scripts.run(script, args, input);
const env = (): Record<string, string> => parseEnvFile(readFileSync(join(home, '.env'), 'utf8')).values;
const beside = (): string[] => readdirSync(home).filter((name) => name.startsWith('.env.'));
const executed = (): string[] => docker.calls().filter((call) => call.startsWith('compose exec'));
const SET = 'compose exec -T management node /app/dist/reset-password.js *';

describe('every script for operators', () => {
  it.each([
    'start.sh',
    'stop.sh',
    'reset-password.sh',
    'unlock.sh',
    'rotate-secrets.sh',
    'support-bundle.sh',
    'renew-ca.sh',
  ])('%s explains itself, and needs nothing for that', (script) => {
    rmSync(join(home, '.env'));
    const { code, stdout } = run(script, ['--help']);
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^Usage: \\./scripts/${script}`));
    expect(docker.calls()).toEqual([]);
  });

  it.each([
    ['stop.sh', ['--what']],
    ['stop.sh', ['--yes-delete-everything', 'x']],
    ['reset-password.sh', ['--password']],
    ['reset-password.sh', ['vera', 'secret']],
    ['reset-password.sh', ['']],
    ['unlock.sh', []],
    ['unlock.sh', ['192.0.2.1', '192.0.2.2']],
    ['rotate-secrets.sh', ['AUDIT_KEY']],
    ['rotate-secrets.sh', ['IDENTITY_BOOTSTRAP_TOKEN', 'SESSION_KEY']],
    ['support-bundle.sh', ['more']],
    ['support-bundle.sh', ['--output=']],
    ['renew-ca.sh', ['more']],
  ])('%s refuses %j as a command line', (script, args) => {
    lay();
    const { code } = run(script, args);
    expect(code).toBe(2);
    expect(readFileSync(join(home, '.env'), 'utf8')).toBe(ENV);
  });

  it.each(['reset-password.sh', 'unlock.sh'])('%s says when management does not run', (script) => {
    lay({ 'compose ps --quiet --status running management': { says: '' } });
    expect(run(script, script === 'unlock.sh' ? ['--list'] : ['--generate'])).toMatchObject({
      code: 1,
      output: expect.stringMatching(/management container is not running\.\n.*start\.sh/),
    });
  });
});

describe('stop.sh', () => {
  it('stops the containers, and nothing else', () => {
    lay({ 'compose ps --quiet': { says: 'id\n' } });
    expect(run('stop.sh')).toMatchObject({ code: 0, output: expect.stringContaining('Its data is kept') });
    expect(docker.calls()).toContain('compose stop');
    expect(docker.calls().filter((call) => call.includes('down'))).toEqual([]);
  });

  it('does not say that nothing runs when Compose cannot tell', () => {
    lay({ 'compose ps --quiet': { complains: 'required variable AUDIT_KEY is missing a value\n', code: 1 } });
    const { code, output } = run('stop.sh');
    expect(code).toBe(1);
    expect(output).toMatch(/AUDIT_KEY is missing[^]*Couldn't list the running containers. Nothing was stopped/);
  });

  const volumes: Answers = {
    'system df *': { says: 'holdfast_core-data|12MB\nother|1GB\n' },
    'volume ls *': { says: 'holdfast_core-data\nholdfast_flows-data\n' },
  };

  it('with --remove says which volumes would be lost and what stays, and asks first', () => {
    lay(volumes);
    const { code, output } = run('stop.sh', ['--remove']);
    expect(code).toBe(1);
    expect(output).toMatch(/holdfast_core-data +12MB\n +holdfast_flows-data +size unknown/);
    expect(output).toContain('.env and release/ are kept');
    expect(output).toContain('without a terminal');
    expect(output).not.toContain('other');
    // Docker itself makes a new line of \n, wherever it stands: within an action that is an error.
    expect(docker.calls()).toContain('system df --verbose --format {{range .Volumes}}{{.Name}}|{{.Size}}\\n{{end}}');
    expect(docker.calls().filter((call) => /down|stop/.test(call))).toEqual([]);
  });

  it('deletes for the right address alone', () => {
    lay({ ...volumes, 'compose ps --quiet': { says: 'id\n' } });
    expect(run('stop.sh', ['--remove', '--yes-delete-everything', 'cot.example.com']).code).toBe(1);
    expect(docker.calls().filter((call) => /down|stop/.test(call))).toEqual([]);
    expect(run('stop.sh', ['--remove', '--yes-delete-everything', 'cot.example.org']).code).toBe(0);
    const calls = docker.calls();
    const down = calls.indexOf('compose down --volumes --remove-orphans');
    expect(down).toBeGreaterThan(0);
    // Compose leaves those of services that only another version or layer has.
    expect(calls.slice(down)).toContain('volume rm holdfast_core-data holdfast_flows-data');
    expect(existsSync(join(home, '.env'))).toBe(true);
  });
});

describe('reset-password.sh', () => {
  const NEW = `a "new" pass'word $HOME \\ #1`;

  it('gives webadmin a password by the standard input alone, and writes it into .env first', () => {
    lay({ [SET]: { does: 'cat >"$FAKE/given"; cp "$FAKE/../.env" "$FAKE/env-then"' } });
    expect(run('reset-password.sh', [], `${NEW}\n`).code).toBe(0);
    expect(readFileSync(join(docker.directory, 'given'), 'utf8')).toBe(`${NEW}\n`);
    expect(
      parseEnvFile(readFileSync(join(docker.directory, 'env-then'), 'utf8')).values['CORE_WEBADMIN_PASSWORD'],
    ).toBe(NEW);
    expect(env()).toEqual({ ...parseEnvFile(ENV).values, CORE_WEBADMIN_PASSWORD: NEW });
    expect(executed()).toEqual([
      'compose exec -T management node /app/dist/reset-password.js webadmin --settings-written',
    ]);
    expect(docker.calls().join('\n')).not.toContain('new" pass');
    expect(docker.calls()).toContain('compose up -d --no-deps --no-build --wait --wait-timeout 120 management');
    expect(statSync(join(home, '.env')).mode & 0o777).toBe(0o600);
    expect(beside()).toEqual([]);
  });

  it('leaves .env as it was when the password is refused', () => {
    lay({ [SET]: { does: 'cat >/dev/null', complains: 'too short\n', code: 1 } });
    expect(run('reset-password.sh', [], 'short\n')).toMatchObject({
      code: 1,
      output: expect.stringContaining('too short'),
    });
    expect(readFileSync(join(home, '.env'), 'utf8')).toBe(ENV);
    expect(beside()).toEqual([]);
  });

  it('leaves nothing beside .env when that cannot be written', () => {
    lay();
    const sync = join(docker.directory, 'sync');
    writeFileSync(sync, '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    for (const [script, says] of [
      ['reset-password.sh', "Couldn't write .env. It is unchanged."],
      ['rotate-secrets.sh', "Couldn't copy .env. Nothing was changed."],
    ] as const)
      expect(run(script, [], `${NEW}\n`)).toMatchObject({
        code: 1,
        output: `${says}\n  Remedy: check free disk space (df -h .), then run this again\n`,
      });
    expect(readFileSync(join(home, '.env'), 'utf8')).toBe(ENV);
    expect(beside()).toEqual([]);
  });

  it('says that no password came, also where there is no standard input at all', () => {
    lay();
    const closed = spawnSync('sh', ['-c', `exec '${join(home, 'scripts/reset-password.sh')}' <&-`], {
      encoding: 'utf8',
      env: { PATH: `${docker.directory}:${process.env['PATH'] ?? ''}`, HOME: home },
    });
    for (const message of [closed.stderr, run('reset-password.sh').output])
      expect(message).toBe('No password on standard input.\n  Remedy: run this in a terminal, or with --generate\n');
    expect(executed()).toEqual([]);
  });

  it('does not touch .env for anybody else', () => {
    lay({ [SET]: { does: 'cat >/dev/null' } });
    expect(run('reset-password.sh', ['vera'], `${NEW}\n`).code).toBe(0);
    expect(readFileSync(join(home, '.env'), 'utf8')).toBe(ENV);
    expect(executed()).toEqual(['compose exec -T management node /app/dist/reset-password.js vera']);
  });

  it('makes one with --generate, and prints it once', () => {
    lay({ [SET]: { does: 'cat >"$FAKE/given"' } });
    const { code, stdout } = run('reset-password.sh', ['--generate']);
    expect([code, stdout]).toEqual([0, readFileSync(join(docker.directory, 'given'), 'utf8')]);
    expect(stdout).toMatch(/^[A-HJ-NP-Za-km-z2-9]{32}\n$/);
    expect(env()['CORE_WEBADMIN_PASSWORD']).toBe(stdout.trim());
  });
});

describe('rotate-secrets.sh', () => {
  /** The start that it ends with is tried elsewhere. */
  const startEnds = (code: number): void =>
    writeFileSync(
      join(home, 'scripts/start.sh'),
      `#!/bin/sh\ncp .env "${docker.directory}/env-at-start"\necho "$*" >"${docker.directory}/start-arguments"\nexit ${code}\n`,
      { mode: 0o755 },
    );

  it('names the same secrets as the program of the embedded stack, and those that it never rotates', () => {
    const script = readFileSync(join(REPOSITORY, 'scripts/rotate-secrets.sh'), 'utf8');
    const names = /ROTATED=\(([^)]*)\)/.exec(script)?.[1]?.split(/\s+/);
    expect(names).toEqual([...ROTATED]);
    for (const name of ['AUDIT_KEY', 'IDENTITY_SECRET_KEY', 'FLOWS_CREDENTIAL_KEY']) {
      expect(NEVER_ROTATED[name]).toBeTruthy();
      expect(script).toContain(name);
    }
  });

  it('gives every secret that is set and may be rotated another value, keeps the old file for its owner, and starts', () => {
    lay();
    startEnds(0);
    const { code, output } = run('rotate-secrets.sh');
    expect(code).toBe(0);
    const now = env();
    const before = parseEnvFile(ENV).values;
    for (const name of ['APP_DB_PASSWORD', 'SESSION_KEY']) expect(now[name]).toMatch(/^[A-HJ-NP-Za-km-z2-9]{32}$/);
    expect(now).toEqual({ ...before, APP_DB_PASSWORD: now['APP_DB_PASSWORD'], SESSION_KEY: now['SESSION_KEY'] });
    expect(output).not.toContain(now['APP_DB_PASSWORD']);
    expect(output).not.toContain('OldAppPassword');
    const [kept = ''] = beside();
    expect(kept).toMatch(/^\.env\.before-rotation-\d{8}T\d{6}Z$/);
    expect(readFileSync(join(home, kept), 'utf8')).toBe(ENV);
    expect(statSync(join(home, kept)).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(docker.directory, 'env-at-start'), 'utf8')).toContain(now['SESSION_KEY']);
  });

  it('rotates those that are named alone', () => {
    lay();
    startEnds(0);
    expect(run('rotate-secrets.sh', ['SESSION_KEY']).code).toBe(0);
    expect(env()['APP_DB_PASSWORD']).toBe('OldAppPassword');
    expect(env()['SESSION_KEY']).not.toBe('OldSessionKeyOldSessionKeyOldSes');
  });

  it('leaves alone what says nothing, because that part stands elsewhere', () => {
    writeFileSync(join(home, '.env'), `${ENV}DATABASE_URL=postgres://holdfast:x@elsewhere/holdfast\n`);
    lay();
    startEnds(0);
    expect(run('rotate-secrets.sh').code).toBe(0);
    expect(env()['APP_DB_PASSWORD']).toBe('OldAppPassword');
  });

  it('finishes one that was interrupted, and begins no other', () => {
    writeFileSync(join(home, '.env.before-rotation-20260101T000000Z'), ENV.replace('OldApp', 'OlderApp'));
    lay();
    startEnds(0);
    expect(run('rotate-secrets.sh')).toMatchObject({
      code: 0,
      output: expect.stringContaining('An earlier rotation is incomplete'),
    });
    expect(readFileSync(join(home, '.env'), 'utf8')).toBe(ENV);
  });

  it('takes a copy of the same file for one that had not begun', () => {
    writeFileSync(join(home, '.env.before-rotation-20260101T000000Z'), ENV);
    lay();
    startEnds(0);
    expect(run('rotate-secrets.sh', ['SESSION_KEY']).code).toBe(0);
    expect(beside()).toHaveLength(1);
    expect(beside()).not.toContain('.env.before-rotation-20260101T000000Z');
  });

  it('waits for nobody: one script at a time changes .env', async () => {
    lay();
    startEnds(0);
    const other = spawn('flock', ['-n', home, 'sh', '-c', 'echo begun; cat'], { stdio: ['pipe', 'pipe', 'inherit'] });
    await once(other.stdout, 'data');
    for (const [script, args] of [
      ['rotate-secrets.sh', []],
      ['reset-password.sh', ['--generate']],
    ] as const)
      expect(run(script, args)).toMatchObject({
        code: 1,
        output: expect.stringMatching(/^Another .* is running here\.\n {2}Remedy: wait/),
      });
    expect(readFileSync(join(home, '.env'), 'utf8')).toBe(ENV);
    expect(beside()).toEqual([]);
    other.stdin.end();
    await once(other, 'exit');
    expect(run('rotate-secrets.sh').code).toBe(0);
  });

  it('says how to go back when the stack does not prove itself, and keeps both files', () => {
    lay();
    startEnds(1);
    const { code, output } = run('rotate-secrets.sh');
    expect(code).toBe(1);
    expect(output).toMatch(/To go back: mv '\.env\.before-rotation-\w+' '\.env'/);
    expect(beside()).toHaveLength(1);
  });
});

describe('the others', () => {
  it('unlock.sh and audit.sh ask in the container of management', () => {
    lay({ 'compose exec *': { says: 'done\n', code: 0 } });
    expect(run('unlock.sh', ['192.0.2.1']).code).toBe(0);
    expect(run('unlock.sh', ['--list']).code).toBe(0);
    expect(run('audit.sh', ['verify']).code).toBe(0);
    expect(executed()).toEqual([
      'compose exec -T management node /app/dist/unlock.js 192.0.2.1',
      'compose exec -T management node /app/dist/unlock.js --list',
      'compose exec -T management node /app/dist/audit.js verify',
    ]);
  });

  it('hands on the verdict of the program', () => {
    lay({ 'compose exec *': { code: 1 } });
    expect(run('audit.sh', ['verify']).code).toBe(1);
  });

  it('renew-ca.sh wants the light stack stopped, and renews in the volume of the core', () => {
    for (const service of ['core', 'core-2', 'management', 'management-2']) {
      lay({ 'compose ps --services --status running': { says: `caddy\n${service}\nidentity\n` } });
      expect(run('renew-ca.sh')).toMatchObject({ code: 1, output: expect.stringContaining('stop.sh') });
    }
    lay({ 'compose ps --services --status running': { says: 'core-database\nidentity\n' } });
    expect(run('renew-ca.sh', ['--new-key']).code).toBe(0);
    expect(docker.calls().at(-1)).toBe(
      'compose run --rm --no-deps -T --entrypoint node core /app/dist/renew-ca.js --core-files /var/lib/holdfast/core --new-key',
    );
  });

  it('renew-ca.sh says of production what it cannot do', () => {
    writeFileSync(join(home, '.env'), ENV.replace(':compose/compose.light.yaml', ''));
    lay();
    expect(run('renew-ca.sh')).toMatchObject({
      code: 1,
      output: expect.stringMatching(/can't renew the CA of a TAK Server release[\s\S]*Remedy/),
    });
    expect(docker.calls().filter((call) => call.startsWith('compose run'))).toEqual([]);
  });
});
