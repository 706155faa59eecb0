// What the person at the keyboard runs on an embedded stack: the private way into management, a
// lost password, other secrets, a bundle for whoever helps, and the end of it all.

import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { formsOf } from '@holdfast/setup/support-bundle/embedded';
import { basic } from '../../http/fake-deps.ts';
import { asAdministrator } from './devices-api.ts';
import {
  cleanEnvironment,
  home,
  newDataDirectory,
  newStack,
  type Outcome,
  outcomeOf,
  query,
  readerUrl,
  run,
  secretsOf,
  stop,
  type TestStack,
} from './embedded.ts';

let stack: TestStack;

beforeAll(async () => {
  stack = await newStack(newDataDirectory());
  expect(await stack.start()).toMatchObject({ code: 0 });
});

const script = (name: string, ...args: string[]): Promise<Outcome> =>
  outcomeOf(run(name, ['--data', stack.data, ...args]));

async function statusOf(username: string, password: string): Promise<number> {
  const headers = { authorization: basic(username, password) };
  return (await fetch(`${stack.file().api}/api/me`, { headers })).status;
}

/**
 * With what it is given on its standard input. Waits without blocking: a connection that the stack closes meanwhile must
 * be seen as closed.
 */
async function typed(name: string, input: string, ...args: string[]): Promise<{ stdout: string } & Outcome> {
  const child = spawn(join(home, 'scripts', name), ['--data', stack.data, ...args], { env: cleanEnvironment() });
  let stdout = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  // It may end before it has read everything.
  child.stdin.on('error', () => undefined).end(input);
  return { ...(await outcomeOf(child)), stdout };
}

describe('a running stack', () => {
  it('lets its owner list and free locked addresses', async () => {
    for (let count = 0; count < 10; count++) await statusOf('webadmin', 'wrong');
    const password = secretsOf(stack)['CORE_WEBADMIN_PASSWORD'] ?? '';
    expect(await statusOf('webadmin', password)).toBe(429);
    expect((await script('unlock.sh', '--list')).output).toMatch(/127\.0\.0\.1 +until .*10 wrong passwords/);
    expect(await script('unlock.sh', '127.0.0.1')).toMatchObject({ code: 0 });
    expect(await statusOf('webadmin', password)).toBe(200);
    expect((await script('unlock.sh', '--list')).output).toContain('No addresses are locked out');
    expect(await script('unlock.sh', '127.0.0.1')).toMatchObject({
      code: 1,
      output: expect.stringContaining('has no failed sign-ins'),
    });
  });

  it('simulates clients, and removes all of it at the end, also of a run that was killed', async () => {
    const few = ['--clients', '4', '--ramp', '0', '--every', '1', '--seconds'];
    const { code, output } = await script('simulate.sh', ...few, '3');
    expect([code, output]).toEqual([0, expect.stringMatching(/^Delivered +([1-9]\d*) of \1$/m)]);
    const left = async (): Promise<[boolean, boolean]> => {
      const headers = { authorization: basic('webadmin', stack.file().webadmin.password) };
      const read = async (path: string): Promise<string> =>
        (await fetch(`${stack.file().api}${path}`, { headers })).text();
      const { results } = JSON.parse(await read('/api/service-accounts')) as {
        results: { username: string; is_active: boolean }[];
      };
      const isActive = results.some((each) => each.username === 'svc_exercise' && each.is_active);
      return [(await read('/api/groups')).includes('core_EXERCISE'), isActive];
    };
    expect(await left()).toEqual([false, false]);
    const killed = run('simulate.sh', ['--data', stack.data, ...few, '60']);
    await new Promise<void>((sending) =>
      killed.stderr?.on('data', (chunk: Buffer) => chunk.includes('They send') && sending()),
    );
    killed.kill('SIGKILL');
    await outcomeOf(killed);
    expect(await left()).toEqual([true, true]);
    expect(await script('simulate.sh', '--clean')).toMatchObject({ code: 0 });
    expect(await left()).toEqual([false, false]);
    expect(await script('simulate.sh', '--clients', '1')).toMatchObject({ code: 2 });
    const closed = run('simulate.sh', ['--data', stack.data, ...few, '60']);
    await new Promise<void>((sending) =>
      closed.stderr?.on('data', (chunk: Buffer) => chunk.includes('They send') && sending()),
    );
    closed.kill('SIGHUP');
    expect(await outcomeOf(closed)).toMatchObject({ code: 1 });
    expect(await left()).toEqual([false, false]);
  });

  it('simulates clients for the console, and stops', async () => {
    const { json } = asAdministrator(() => stack);
    interface Job {
      id: string;
      state: string;
      phase: string | null;
      result: { sent: number; delivered: number; lost: number; core_cpu_share: number } | null;
    }
    const { id } = await json<Job>('POST', '/api/ops/simulation', { clients: 4, minutes: 1, ramp: 1, every: 1 });
    const job = () => json<Job>('GET', `/api/ops/jobs/${id}`);
    await expect.poll(async () => (await job()).phase, { timeout: 30_000 }).toBe('4 clients send');
    await json<Job>('DELETE', '/api/ops/simulation');
    await expect.poll(async () => (await job()).state, { timeout: 30_000 }).toBe('interrupted');
    const { result } = await job();
    expect([(result?.sent ?? 0) > 0, result?.lost]).toEqual([true, 0]);
    expect(result?.delivered).toBe(3 * (result?.sent ?? 0));
    const groups = await json<{ name: string }[]>('GET', '/api/groups');
    expect(groups.map(({ name }) => name)).not.toContain('core_EXERCISE');
  });

  it('prints the emergency sheet, and says that no backups are made', async () => {
    const { code, output } = await script('emergency-sheet.sh');
    expect([code, output]).toEqual([1, expect.stringMatching(/EMERGENCY SHEET: [^]*Remedy: set BACKUP_TARGET/)]);
  });

  it('proves itself', () => {
    const { status, stdout } = spawnSync(
      process.execPath,
      [join(home, 'dist/prove.js'), '--data', stack.data, '--within', '60'],
      { encoding: 'utf8' },
    );
    expect(stdout).toMatch(/ok +bind +\d+ ms/);
    expect(stdout).toContain('A device can enroll, connect and send.');
    expect(status).toBe(0);
  });

  it('gives webadmin another password, which the next start keeps', async () => {
    expect(await typed('reset-password.sh', 'too short\n')).toMatchObject({
      code: 1,
      output: expect.stringContaining('at least 12'),
    });
    expect(await typed('reset-password.sh', 'x'.repeat(150_000_000))).toMatchObject({
      code: 1,
      output: expect.stringContaining('at most 1024 bytes'),
    });
    const old = secretsOf(stack)['CORE_WEBADMIN_PASSWORD'] ?? '';
    const { code, stdout } = await typed('reset-password.sh', '', '--generate');
    const password = stdout.trim();
    expect([code, password.length]).toEqual([0, 32]);
    expect([await statusOf('webadmin', password), await statusOf('webadmin', old)]).toEqual([200, 401]);
    expect(secretsOf(stack)['CORE_WEBADMIN_PASSWORD']).toBe(password);
    // What the supervisor starts again has the settings of before.
    const ready = (): number =>
      readFileSync(join(stack.data, 'logs/management.log'), 'utf8').split('"identity.ready"').length;
    const before = ready();
    process.kill(stack.file().pids.find(({ role }) => role === 'management')?.pid ?? 0, 'SIGKILL');
    await expect.poll(ready, { timeout: 60_000 }).toBeGreaterThan(before);
    expect([await statusOf('webadmin', password), await statusOf('webadmin', old)]).toEqual([200, 401]);
    expect(stack.file()).toMatchObject({ webadmin: { username: 'webadmin', password } });
    const records = await query<{ actor: string; action: string }>(
      stack.file()['state_database'],
      "SELECT actor, action FROM audit_record WHERE action = 'user.password'",
    );
    expect(records[0]).toEqual({ actor: 'operator', action: 'user.password' });
  });

  it('gives out a bundle without any of its secrets', async () => {
    const output = join(dirname(stack.data), 'bundle.tar.gz');
    expect(await script('support-bundle.sh', '--output', output)).toMatchObject({ code: 0 });
    expect(statSync(output).mode & 0o777).toBe(0o600);
    expect(await script('support-bundle.sh', '--output', output)).toMatchObject({
      code: 1,
      output: expect.stringMatching(/already exists\.\n {2}Remedy: choose another file with --output FILE/),
    });
    expect(await script('support-bundle.sh', '--output', '/dev/null/none')).toMatchObject({
      code: 1,
      output: expect.stringMatching(/Couldn't write .*\(ENOTDIR.*\n {2}Remedy: choose another file with --output FILE/),
    });
    const out = join(dirname(stack.data), 'bundle');
    mkdirSync(out);
    spawnSync('tar', ['-C', out, '-xzf', output]);
    const files = readdirSync(out, { recursive: true, encoding: 'utf8' });
    expect(files).toEqual(
      expect.arrayContaining(['CLEANED.txt', 'facts.json', 'machine.txt', 'stack.json', 'logs/management.log']),
    );
    const all = files
      .filter((name) => statSync(join(out, name)).isFile())
      .map((name) => readFileSync(join(out, name), 'utf8'))
      .join('\n');
    for (const value of Object.values(secretsOf(stack)))
      for (const form of formsOf(value)) expect(all).not.toContain(form);
    expect(all).not.toContain('PRIVATE KEY');
    const facts = JSON.parse(readFileSync(join(out, 'facts.json'), 'utf8')) as {
      health: { modules: object };
      database: { migrations: object[] };
    };
    expect(Object.keys(facts.health.modules)).toContain('probe');
    expect(facts.database.migrations.length).toBeGreaterThan(3);
  });

  it('is not given other secrets while it runs, and not deleted without an answer', async () => {
    expect(await script('rotate-secrets.sh')).toMatchObject({
      code: 1,
      output: expect.stringContaining('already uses'),
    });
    expect(await script('rotate-secrets.sh', '__proto__')).toMatchObject({
      code: 2,
      output: expect.stringContaining('__proto__ is not a secret that can be rotated'),
    });
    expect(await script('rotate-secrets.sh', 'AUDIT_KEY')).toMatchObject({
      code: 2,
      output: expect.stringContaining('invalidate every record of the audit log'),
    });
    expect(await script('stop.sh', '--remove')).toMatchObject({
      code: 1,
      output: expect.stringContaining('without a terminal'),
    });
    expect(await script('stop.sh', '--remove', '--yes-delete-everything', '/')).toMatchObject({
      code: 1,
      output: expect.stringContaining('The answer is not'),
    });
    expect(existsSync(stack.file().core === undefined ? '' : join(stack.data, 'pgdata'))).toBe(true);
  });
});

describe('a stopped stack', () => {
  it('takes other secrets into force at its next start, refuses the old ones, and keeps no copy of them', async () => {
    const before = secretsOf(stack);
    const oldReader = readerUrl(stack);
    const oldState = stack.file()['state_database'];
    await stop(stack.data);
    expect(await script('rotate-secrets.sh')).toMatchObject({
      code: 0,
      output: expect.stringContaining('New values for CORE_DB_PASSWORD'),
    });
    const copies = (): string[] => readdirSync(stack.data).filter((name) => name.includes('before-rotation'));
    expect(copies()).toHaveLength(1);
    const after = secretsOf(stack);
    const changed = Object.keys(before).filter((name) => before[name] !== after[name]);
    expect(changed.toSorted()).toEqual(
      expect.arrayContaining([
        'APP_DB_PASSWORD',
        'CORE_DB_PASSWORD',
        'CORE_READER_PASSWORD',
        'IDENTITY_DB_PASSWORD',
        'IDENTITY_TOKEN',
        'LDAP_BIND_PASSWORD',
        'SESSION_KEY',
      ]),
    );
    for (const name of ['AUDIT_KEY', 'IDENTITY_SECRET_KEY', 'CORE_WEBADMIN_PASSWORD'])
      expect(changed).not.toContain(name);
    expect(await stack.start()).toMatchObject({
      code: 0,
      output: expect.stringContaining('Secret rotation is complete'),
    });
    expect(copies()).toEqual([]);
    for (const url of [oldReader, oldState])
      await expect(query(url, 'SELECT 1')).rejects.toThrow(/password authentication failed/);
    expect(await query(readerUrl(stack), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    expect(await statusOf('webadmin', after['CORE_WEBADMIN_PASSWORD'] ?? '')).toBe(200);
    const identity = `http://127.0.0.1:${9000 + stack.offset}/api/v3/core/users/me/`;
    const request = async (token = ''): Promise<number> =>
      (await fetch(identity, { headers: { authorization: `Bearer ${token}` } })).status;
    expect(await request(after['IDENTITY_TOKEN'])).toBe(200);
    expect(await request(before['IDENTITY_TOKEN'])).not.toBe(200);
    expect((await script('audit.sh', 'verify')).code).toBe(0);
    const proof = spawnSync(process.execPath, [join(home, 'dist/prove.js'), '--data', stack.data, '--within', '60'], {
      encoding: 'utf8',
    });
    expect([proof.status, proof.stdout]).toEqual([0, expect.stringContaining('connect and send')]);
  });

  it('is deleted with all that is its own; what others put there, and what a link leads to, stays', async () => {
    const mine = join(stack.data, 'notes.txt');
    writeFileSync(mine, 'mine');
    const elsewhere = join(dirname(stack.data), 'elsewhere');
    mkdirSync(elsewhere);
    writeFileSync(join(elsewhere, 'file'), 'stays');
    symlinkSync(elsewhere, join(stack.data, 'core', 'link'));
    const link = join(dirname(stack.data), 'link-to-data');
    symlinkSync(stack.data, link);
    const remove = (data: string): Promise<Outcome> =>
      outcomeOf(run('stop.sh', ['--data', data, '--remove', '--yes-delete-everything', data]));
    expect(await remove(link)).toMatchObject({ code: 1, output: expect.stringContaining('is a symbolic link') });
    expect(await remove(elsewhere)).toMatchObject({
      code: 1,
      output: expect.stringContaining('is not a data directory'),
    });
    expect(await remove(stack.data)).toMatchObject({
      code: 0,
      output: expect.stringContaining('because it contains other files'),
    });
    expect(readdirSync(stack.data)).toEqual(['notes.txt']);
    expect(readFileSync(join(elsewhere, 'file'), 'utf8')).toBe('stays');
    rmSync(link);
  });
});
