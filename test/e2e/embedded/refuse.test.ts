import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  answersPing,
  asRoot,
  eventually,
  lives,
  newDataDirectory,
  newStack,
  outcomeOf,
  query,
  run,
  startArguments,
  stop,
  type TestStack,
} from './embedded.ts';

async function startWith(env: Record<string, string>, args: string[] = []) {
  const data = newDataDirectory();
  return { data, ...(await outcomeOf(run('start.sh', startArguments(data, 0, ['--detach', ...args]), { env }))) };
}

describe('bad settings', () => {
  it.each([
    ['COT_RETENTION_DAYS', 'abc'],
    ['COT_RETENTION_DAYS', '0'],
    ['COT_RETENTION_DAYS', '-1'],
    ['COT_RETENTION_DAYS', '1.5'],
    ['COT_RETENTION_DAYS', '99999'],
    ['RETENTION_CRON', '0 3 * * *'],
    ['CORE_RETENTION_UNIT', 'seconds'],
    ['MON_DISK_WARNIGN', '5'],
    ['MON_CORE_INTERVAL', 'often'],
  ])('%s=%s stops the start with a sentence and a remedy, and nothing is written', async (name, value) => {
    const { code, output, data } = await startWith({ [name]: value });
    expect(code).toBe(1);
    expect(output).toContain(`${name}=${value}: `);
    expect(output).toContain('Remedy: ');
    expect(output).toContain('Nothing was changed.');
    expect(existsSync(data)).toBe(false);
  });

  it('are all listed at once, and secrets are not shown', async () => {
    const { code, output, data } = await startWith({
      DB_AUTOVACUUM_COST_LIMIT: '0',
      SMTP_URL: 'mailpassword@host',
      GEOCHAT_RETENTION_DAYS: 'x',
      MON_X: '1',
    });
    expect(code).toBe(1);
    expect(output).toContain('4 invalid settings');
    for (const name of ['DB_AUTOVACUUM_COST_LIMIT=0', 'SMTP_URL=***', 'GEOCHAT_RETENTION_DAYS=x', 'MON_X=1'])
      expect(output).toContain(name);
    expect(output).not.toContain('mailpassword');
    expect(existsSync(data)).toBe(false);
  });

  it('in an env file are named with their line; a missing file is named', async () => {
    const directory = dirname(newDataDirectory());
    const file = join(directory, 'bad.env');
    writeFileSync(file, 'A=1\nnonsense\n');
    expect((await startWith({}, ['--env', file])).output).toContain(`${file} line 2: isn't NAME=value`);
    expect((await startWith({}, ['--env', `${file}.missing`])).output).toContain(
      `--env=${file}.missing: file not found`,
    );
  });
});

describe('a bad command line', () => {
  it.each([
    [['--embeded'], 'Unknown option: --embeded'],
    [['--embedded', '--ofset', '1'], "Unknown option '--ofset'"],
    [['--offset', '1'], '--offset is an option of the embedded stack'],
    [['--embedded', '--offset', '-1'], '--offset'],
    [['--embedded', '--offset', '70000'], '--offset 70000: must be a whole number from 0 to'],
    [['--embedded', '--listen', 'localhost'], '--listen localhost: must be an IP address'],
    [['--embedded', '--data', ''], '--data needs a directory'],
  ])('%j is refused', async (args, message) => {
    const { code, output } = await outcomeOf(run('start.sh', args));
    expect(code).toBe(2);
    expect(output).toContain(message);
  });

  it('an offset whose port browsers refuse is refused before anything is created', async () => {
    const data = newDataDirectory();
    const { code, output } = await outcomeOf(run('start.sh', ['--embedded', '--data', data, '--offset', '2000']));
    expect([code, existsSync(data)]).toEqual([2, false]);
    expect(output).toContain(
      '--offset 2000: browsers refuse port 10080 (API and console). Use another offset, such as --offset 2100',
    );
  });

  it('--help explains itself', async () => {
    const { code, output } = await outcomeOf(run('start.sh', ['--embedded', '--help']));
    expect([code, output.includes('--offset N')]).toEqual([0, true]);
  });

  it('an address that this machine does not have is said', async () => {
    const stack = await newStack(newDataDirectory());
    const { code, output } = await stack.start(['--listen', '192.0.2.1']);
    expect(code).toBe(1);
    expect(output).toContain('192.0.2.1');
    expect(output).toContain('is not an address of this machine');
  });
});

describe('the directory of one stack', () => {
  let stack: TestStack;
  beforeAll(async () => {
    stack = await newStack(newDataDirectory());
  });

  it('stays empty while a port is taken, which is named with its purpose and its holder', async () => {
    const holder = createServer().listen(8080 + stack.offset, '0.0.0.0');
    await once(holder, 'listening');
    const { code, output } = await stack.start();
    holder.close();
    expect(code).toBe(1);
    expect(output).toContain(`127.0.0.1:${8080 + stack.offset} (API and console) is in use by`);
    expect(output).toContain(`(process ${process.pid})`);
    expect(existsSync(join(stack.data, 'pgdata'))).toBe(false);
    expect((await stack.start()).code).toBe(0);
    await query(stack.file().database, 'CREATE TABLE kept (n int)');
    await stop(stack.data);
  });

  it('of another PostgreSQL major is refused and not touched', async () => {
    const version = join(stack.data, 'pgdata/PG_VERSION');
    writeFileSync(version, '15\n');
    const before = readdirSync(join(stack.data, 'pgdata')).toSorted();
    const { code, output } = await stack.start();
    expect(code).toBe(1);
    expect(output).toContain(
      'was created by PostgreSQL 15, but this Holdfast release uses PostgreSQL 16. Nothing was changed.',
    );
    expect(output).toContain('pg_dump');
    expect(readdirSync(join(stack.data, 'pgdata')).toSorted()).toEqual(before);
    writeFileSync(version, '16\n');
  });

  it.each([
    ['postgres://holdfast:topsecret@127.0.0.1:1/holdfast', 'ECONNREFUSED'],
    ['postgres://holdfast:topsecret@nowhere.invalid/holdfast', 'nowhere.invalid'],
  ])(
    'is not started with a DATABASE_URL that cannot be reached (%s), named without its password, with a remedy',
    async (url, reason) => {
      const { code, output } = await stack.start([], { env: { DATABASE_URL: url } });
      expect(code).toBe(1);
      expect(output).toContain(`Couldn't update the Holdfast database (${new URL(url).host}/holdfast): `);
      expect(output).toContain(reason);
      expect(output).toContain('Remedy: correct DATABASE_URL');
      expect(output).not.toContain('topsecret');
      expect(output).not.toContain('    at ');
      expect(stack.file().pids).toEqual([]);
    },
  );

  it('with damaged secrets is not started with others; without them new ones are made and the data stays', async () => {
    writeFileSync(join(stack.data, 'secrets.json'), '{"CORE_DB_PASS');
    const refused = await stack.start();
    expect(refused.code).toBe(1);
    expect(refused.output).toMatch(/secrets\.json is not a JSON object[^]*Remedy/);
    rmSync(join(stack.data, 'secrets.json'));
    expect((await stack.start()).code).toBe(0);
    expect(await query(stack.file().database, 'SELECT count(*)::int AS n FROM kept')).toEqual([{ n: 0 }]);
  });

  it('whose tables a newer release made is refused unchanged', async () => {
    await query(
      stack.file().state_database,
      "INSERT INTO schema_migration (number, name, checksum) VALUES (99, 'future', 'x')",
    );
    await stop(stack.data);
    const { code, output } = await stack.start();
    expect(code).toBe(1);
    expect(output).toContain('a newer Holdfast has used it');
    expect(output).toContain('Remedy');
    expect(stack.file().pids).toEqual([]);
  });
});

describe('a directory that cannot be used', () => {
  it('with a file in the way is named', async () => {
    const stack = await newStack(newDataDirectory());
    writeFileSync(stack.data, 'a file');
    const { code, output } = await stack.start();
    expect(code).toBe(1);
    expect(output).toContain(stack.data);
    expect(output).toContain('a part of this path is a file, not a directory');
    expect(readFileSync(stack.data, 'utf8')).toBe('a file');
    rmSync(stack.data);
  });

  it.skipIf(!asRoot)('on a full disk is refused with the figures, and nothing is harmed', async () => {
    const stack = await newStack(newDataDirectory());
    mkdirSync(stack.data, { recursive: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=400m', 'tmpfs', stack.data]);
    try {
      expect((await stack.start()).code).toBe(0);
      await query(stack.file().database, 'CREATE TABLE kept AS SELECT generate_series(1, 100) AS n');
      const [filler, management] = [join(stack.data, 'filler'), stack.pid('management')];
      fill(filler);
      process.kill(management, 'SIGKILL');
      await eventually(
        'management is back',
        async () => !lives(management) && (await answersPing(stack.file().api)),
        10_000,
      );
      rmSync(filler);
      await stop(stack.data);

      fill(filler);
      const { code, output } = await stack.start();
      expect(code).toBe(1);
      expect(output).toMatch(/The disk of .* is full: \d+ MB free, \d+ MB needed to start\. No data was changed\./);
      rmSync(filler);
      expect((await stack.start()).code).toBe(0);
      expect(await query(stack.file().database, 'SELECT count(*)::int AS n FROM kept')).toEqual([{ n: 100 }]);
    } finally {
      await stop(stack.data);
      execFileSync('umount', [stack.data]);
    }
  });
});

/** Takes all the space that is left. */
function fill(file: string): void {
  try {
    execFileSync('dd', ['if=/dev/zero', `of=${file}`, 'bs=1M'], { stdio: 'ignore' });
  } catch {
    // dd ends with "no space left", which is the point.
  }
}
