import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  answersPing,
  asRoot,
  cleanEnvironment,
  home,
  newDataDirectory,
  newStack,
  outcomeOf,
  run,
  type StackFile,
  startArguments,
  stop,
  type TestStack,
  tuningOf,
} from './embedded.ts';

const NOBODY = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups'];

describe.skipIf(!asRoot)('started as root', () => {
  let stack: TestStack;
  beforeAll(async () => {
    stack = await newStack(newDataDirectory());
  });

  it('runs PostgreSQL as an unprivileged user, also in a directory of mode 0700', async () => {
    expect(statSync(dirname(stack.data)).mode & 0o777).toBe(0o700);
    const { code, output } = await stack.start();
    expect(output).toContain('Holdfast is running');
    expect(code).toBe(0);
    expect(statSync(`/proc/${stack.pid('database')}`).uid).toBe(65534);
    expect(statSync(join(stack.data, 'pgdata')).uid).toBe(65534);
  });

  it('cannot be stopped by an ordinary user, who is told so', async () => {
    chmodSync(dirname(stack.data), 0o755);
    const { code, output } = await stop(stack.data, { under: NOBODY });
    expect(code).toBe(1);
    expect(output).toContain('belongs to another user');
    expect(await answersPing(stack.file().api)).toBe(true);
    await stop(stack.data);
  });

  it('and later as an ordinary user is refused with the reason', async () => {
    const { code, output } = await stack.start([], { under: NOBODY });
    expect(code).toBe(1);
    expect(output).toMatch(/cannot be read or written by this user[^]*Remedy/);
  });

  it('never writes through a link that the database user has made', async () => {
    const target = join(dirname(stack.data), 'target');
    writeFileSync(target, 'precious', { mode: 0o600 });
    for (const name of ['pg_hba.conf', 'postmaster.pid', 'postmaster.opts']) {
      rmSync(join(stack.data, 'pgdata', name), { force: true });
      symlinkSync(target, join(stack.data, 'pgdata', name));
    }
    await stack.start();
    await stop(stack.data);
    expect([readFileSync(target, 'utf8'), statSync(target).uid]).toEqual(['precious', 0]);
  });

  it('from a clone of mode 0700, as in a fresh mktemp directory', async () => {
    const clone = mkdtempSync(join(tmpdir(), 'holdfast-clone-'));
    try {
      copyOf(clone);
      writeFileSync(join(clone, '.env'), 'DB_AUTOVACUUM_COST_LIMIT=777\n');
      const args = ['--embedded', '--offset', String((await newStack(newDataDirectory())).offset), '--detach'];
      const { code, output } = await outcomeOf(
        spawn(join(clone, 'scripts/start.sh'), args, { env: cleanEnvironment(), stdio: ['ignore', 'pipe', 'pipe'] }),
      );
      expect(output).toContain(`embedded, data in ${clone}/data`);
      expect(output).toContain('autovacuum 0.05 / 777 / 256MB');
      expect(output).toContain('Holdfast is running');
      expect(code).toBe(0);
      const { database } = JSON.parse(readFileSync(join(clone, 'data/stack.json'), 'utf8')) as StackFile;
      expect(await tuningOf(database)).toEqual(['0.05', '777', '256MB']);
      await outcomeOf(
        spawn(join(clone, 'scripts/stop.sh'), ['--data', join(clone, 'data')], {
          env: cleanEnvironment(),
          stdio: ['ignore', 'pipe', 'pipe'],
        }),
      );
    } finally {
      rmSync(clone, { recursive: true, force: true });
    }
  });
});

/** A clone with its packages installed, without downloading them again. */
function copyOf(directory: string): void {
  const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: home, encoding: 'utf8' })
    .trim()
    .split('\n');
  for (const file of files) {
    mkdirSync(dirname(join(directory, file)), { recursive: true });
    cpSync(join(home, file), join(directory, file), { recursive: true, verbatimSymlinks: true });
  }
  execFileSync('cp', ['-al', join(home, 'node_modules'), join(directory, 'node_modules')]);
}

describe.skipIf(!asRoot)('started as root', () => {
  it('refuses a directory of somebody else, whose links it would follow', async () => {
    const stack = await newStack(newDataDirectory());
    mkdirSync(stack.data);
    chownSync(stack.data, 65534, 65534);
    const { code, output } = await stack.start();
    expect(code).toBe(1);
    expect(output).toContain(`${stack.data} belongs to user 65534, but you are user 0`);
    expect(readdirSync(stack.data)).toEqual([]);
  });
});

describe.skipIf(!asRoot)('started as an ordinary user', () => {
  it('works, and everything belongs to that user', async () => {
    const stack = await newStack(newDataDirectory());
    chmodSync(dirname(stack.data), 0o777);
    const options = { under: NOBODY, env: { HOME: '/nonexistent' } };
    const { code, output } = await stack.start([], options);
    expect(output).toContain('Holdfast is running');
    expect(code).toBe(0);
    const owners = stack.file().pids.map(({ role, pid }) => [role, statSync(`/proc/${pid}`).uid]);
    expect(owners).toEqual(['supervisor', 'database', 'identity', 'core', 'management'].map((role) => [role, 65534]));
    expect(await answersPing(stack.file().api)).toBe(true);
    expect((await stop(stack.data, options)).code).toBe(0);
    expect((await stack.start([], options)).code).toBe(0);
    await stop(stack.data, options);
  });
});

describe('a directory that this user may not write', () => {
  it.skipIf(!asRoot)('is named', async () => {
    const data = join(dirname(newDataDirectory()), 'closed', 'data');
    mkdirSync(dirname(data), { mode: 0o755 });
    chmodSync(dirname(dirname(data)), 0o755);
    const { code, output } = await outcomeOf(run('start.sh', startArguments(data, 0, ['--detach']), { under: NOBODY }));
    expect(code).toBe(1);
    expect(output).toContain('cannot be read or written by this user');
    expect(output).toContain('Remedy: start as the user that owns it, or choose another place with --data DIR');
  });
});
