import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
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

const ROWS = 'SELECT count(*)::int AS n FROM kept';

let withRows: TestStack | undefined;

/** A stack with rows in its database, as the test before left it running. */
async function runningWithRows(): Promise<TestStack> {
  if (withRows !== undefined) {
    if (!(await answersPing(withRows.file().api))) expect(await withRows.start()).toMatchObject({ code: 0 });
    return withRows;
  }
  const stack = await newStack(newDataDirectory());
  expect((await stack.start()).code).toBe(0);
  await fill(stack);
  withRows = stack;
  return stack;
}

async function fill(stack: TestStack): Promise<void> {
  await query(stack.file().database, 'CREATE TABLE kept (n int); INSERT INTO kept SELECT generate_series(1, 500)');
}

async function databaseAnswers(stack: TestStack): Promise<boolean> {
  return query(stack.file().database, 'SELECT 1').then(
    () => true,
    () => false,
  );
}

/** The guard of a stack: the shell that holds its lock open. */
function guardOf(stack: TestStack): number {
  const holder = readdirSync('/proc').find(
    (entry) => /^\d+$/.test(entry) && holds(entry, join(stack.data, 'run/lock')),
  );
  return Number(holder ?? 0);
}

function holds(pid: string, file: string): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`) === file);
  } catch {
    return false;
  }
}

describe('a supervisor that is killed while it prepares the database', () => {
  it('takes initdb with it, and the next start is clean', async () => {
    const stack = await newStack(newDataDirectory());
    const child = run('start.sh', startArguments(stack.data, stack.offset, []));
    const outcome = outcomeOf(child);
    await eventually('initdb writes', () => existsSync(join(stack.data, 'pgdata.new/base')), 60_000);
    child.kill('SIGKILL');
    await outcome;
    expect(await stack.start()).toMatchObject({ code: 0 });
    expect(existsSync(join(stack.data, 'pgdata.new'))).toBe(false);
    await fill(stack);
    withRows = stack;
  });
});

describe('a killed process', () => {
  it('comes back after pauses that grow, and stack.json names the new one', async () => {
    const stack = await runningWithRows();
    for (const round of [1, 2, 3]) {
      const old = stack.pid('management');
      process.kill(old, 'SIGKILL');
      const isBack = (): boolean => ![0, old].includes(stack.pid('management')) && lives(stack.pid('management'));
      await eventually(`back for the ${round}. time`, isBack, 60_000);
    }
    await eventually('the API answers', () => answersPing(stack.file().api), 60_000);
    const log = readFileSync(join(stack.data, 'logs/supervisor.log'), 'utf8');
    expect(log).toContain('management exited by signal SIGKILL');
    expect(log).toContain('Restarting in 0.5 s');
    expect([...log.matchAll(/"restart_in_ms":(\d+)/g)].map((match) => match[1])).toEqual(['500', '1000', '2000']);
  });

  it('of the database leaves the API answering meanwhile, and nothing is lost', async () => {
    const stack = await runningWithRows();
    const old = stack.pid('database');
    process.kill(old, 'SIGKILL');
    expect(await answersPing(stack.file().api)).toBe(true);
    await eventually(
      'it is back',
      () => ![0, old].includes(stack.pid('database')) && lives(stack.pid('database')),
      60_000,
    );
    await eventually('it answers', () => databaseAnswers(stack), 60_000);
    expect(await query(stack.file().database, ROWS)).toEqual([{ n: 500 }]);
    expect(readFileSync(join(stack.data, 'logs/supervisor.log'), 'utf8')).toContain(
      'database exited by signal SIGKILL',
    );
  });

  it('comes back even when its log was deleted meanwhile', async () => {
    const stack = await runningWithRows();
    for (const role of ['management', 'database']) {
      const old = stack.pid(role);
      rmSync(join(stack.data, 'logs', `${role}.log`));
      process.kill(old, 'SIGKILL');
      await eventually(`${role} is back`, () => ![0, old].includes(stack.pid(role)), 60_000);
    }
    await eventually('the API answers', () => answersPing(stack.file().api), 60_000);
  });
});

describe('a killed supervisor', () => {
  it('takes the others with it, and the next start heals', async () => {
    const stack = await runningWithRows();
    const { pids } = stack.file();
    process.kill(stack.pid('supervisor'), 'SIGKILL');
    await eventually('nothing runs', () => !pids.some(({ pid }) => lives(pid)), 60_000);
    expect((await stack.start()).code).toBe(0);
    expect(await query(stack.file().database, ROWS)).toEqual([{ n: 500 }]);
  });

  it('ends even a process that hangs, and the start that comes at once waits for it', async () => {
    const stack = await runningWithRows();
    const hung = stack.pid('management');
    process.kill(hung, 'SIGSTOP');
    process.kill(stack.pid('supervisor'), 'SIGKILL');
    const { code, output } = await stack.start();
    expect(output).toContain('Waiting for it');
    expect(code).toBe(0);
    expect(lives(hung)).toBe(false);
    expect(await query(stack.file().database, ROWS)).toEqual([{ n: 500 }]);
  });

  it('killed together with its guard leaves processes that the next start ends', async () => {
    const stack = await runningWithRows();
    const { pids } = stack.file();
    const guard = guardOf(stack);
    expect(guard).toBeGreaterThan(0);
    process.kill(guard, 'SIGSTOP');
    process.kill(stack.pid('supervisor'), 'SIGKILL');
    process.kill(guard, 'SIGKILL');
    const { code, output } = await stack.start();
    expect(output).toMatch(/Stopping processes left over from a crash: .*database/);
    expect(code).toBe(0);
    expect(pids.filter(({ pid }) => lives(pid))).toEqual([]);
    expect(await query(stack.file().database, ROWS)).toEqual([{ n: 500 }]);
  });
});

describe('stop.sh after a crash of supervisor and guard', () => {
  it('ends what was left behind and says so', async () => {
    const stack = await runningWithRows();
    const { pids } = stack.file();
    const guard = guardOf(stack);
    process.kill(guard, 'SIGSTOP');
    process.kill(stack.pid('supervisor'), 'SIGKILL');
    process.kill(guard, 'SIGKILL');
    const { code, output } = await stop(stack.data);
    expect([code, output.includes(`Stopped the processes that a crash left in ${stack.data}.`)]).toEqual([0, true]);
    expect(pids.filter(({ pid }) => lives(pid))).toEqual([]);
    expect((await stack.start()).code).toBe(0);
    expect(await query(stack.file().database, ROWS)).toEqual([{ n: 500 }]);
  });
});

describe('a killed guard', () => {
  it('is replaced: the directory stays locked and protected', async () => {
    const stack = await runningWithRows();
    const old = guardOf(stack);
    process.kill(old, 'SIGKILL');
    await eventually('another guard holds the lock', () => ![0, old].includes(guardOf(stack)), 60_000);
    expect((await stack.start()).output).toContain('already uses');
    const { pids } = stack.file();
    process.kill(stack.pid('supervisor'), 'SIGKILL');
    await eventually('nothing runs', () => !pids.some(({ pid }) => lives(pid)), 60_000);
  });
});

describe('kill -9 of everything at any moment', () => {
  it('of the first start and of later ones loses nothing', async () => {
    const stack = await newStack(newDataDirectory());
    for (const delayMs of [150, 300, 450, 600, 750, 900, 1050, 1200]) await killedAfter(stack, delayMs);
    expect((await stack.start()).code).toBe(0);
    const first = stack.file();
    await fill(stack);
    await stop(stack.data);
    for (const delayMs of [100, 200, 300, 400, 500]) await killedAfter(stack, delayMs);
    expect((await stack.start()).code).toBe(0);
    expect({ ...stack.file(), pids: [] }).toEqual({ ...first, pids: [] });
    expect(await query(stack.file().database, ROWS)).toEqual([{ n: 500 }]);
    await stop(stack.data);
  });
});

/**
 * Starts, and after a while kills every process that has the directory in its command line or
 * belongs to the start.
 */
async function killedAfter(stack: TestStack, delayMs: number): Promise<void> {
  const child = run('start.sh', startArguments(stack.data, stack.offset, []));
  const outcome = outcomeOf(child);
  await new Promise((tick) => setTimeout(tick, delayMs));
  const expired = [
    child.pid ?? 0,
    guardOf(stack),
    ...readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 1 && serves(pid, stack)),
  ];
  for (const pid of expired.filter((each) => each > 1)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  }
  await outcome;
}

function serves(pid: number, stack: TestStack): boolean {
  try {
    const inDirectory = readlinkSync(`/proc/${pid}/cwd`).startsWith(stack.data);
    return inDirectory || readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`${stack.data}/`);
  } catch {
    return false;
  }
}

describe('the same start twice at once', () => {
  it('leaves one running and the other with a clear message', async () => {
    const stack = withRows ?? (await runningWithRows());
    await stop(stack.data);
    const outcomes = await Promise.all([stack.start(), stack.start()]);
    expect(outcomes.filter(({ code }) => code === 0)).toHaveLength(1);
    expect(outcomes.filter(({ code }) => code === 1)).toHaveLength(1);
    expect(outcomes.find(({ code }) => code === 1)?.output).toMatch(/already uses .*\n *Remedy: /);
    expect(await answersPing(stack.file().api)).toBe(true);
  });
});

describe('a stale pid file', () => {
  it('that names a living stranger does not stop the start, and the stranger lives on', async () => {
    const stack = withRows ?? (await runningWithRows());
    await stop(stack.data);
    const stranger = spawn('sleep', ['60'], asRoot ? { uid: 65534, gid: 65534 } : {});
    const file = join(stack.data, 'pgdata/postmaster.pid');
    writeFileSync(file, `${stranger.pid}\n${stack.data}/pgdata\n1\n5432\n\n127.0.0.1\n0 0\nready\n`);
    const { code, output } = await stack.start();
    expect(code).toBe(0);
    expect(output).toContain('postmaster.pid left over from a crash');
    expect(lives(stranger.pid ?? 0)).toBe(true);
    stranger.kill();
    expect(await query(stack.file().database, ROWS)).toEqual([{ n: 500 }]);
  });
});

describe('a launcher that is killed before the stack is ready', () => {
  it('leaves nothing running', async () => {
    const stack = await newStack(newDataDirectory());
    const child = run('start.sh', startArguments(stack.data, stack.offset, ['--detach']));
    await eventually('the start has begun', () => existsSync(join(stack.data, 'run/lock')), 60_000);
    child.kill('SIGKILL');
    const log = (): string => readFileSync(join(stack.data, 'logs/supervisor.log'), 'utf8');
    await eventually('everything has ended', () => log().includes('stack.stopped') && guardOf(stack) === 0, 60_000);
    expect(log()).not.toContain('stack.ready');
    expect(existsSync(join(stack.data, 'stack.json')) ? stack.file().pids : []).toEqual([]);
  });
});

describe('our own database', () => {
  it('that refuses to be written leaves the API answering, and heals without a restart', async () => {
    const stack = await runningWithRows();
    const readOnly = (value: 'on' | 'off') =>
      query(
        stack.file().state_database,
        `BEGIN READ WRITE; ALTER ROLE holdfast SET default_transaction_read_only = ${value}; COMMIT`,
      );
    const file = join(stack.data, 'logs/management.log');
    const before = readFileSync(file, 'utf8').length;
    const log = (): string => readFileSync(file, 'utf8').slice(before);
    await readOnly('on');
    const old = stack.pid('management');
    process.kill(old, 'SIGKILL');
    await eventually('management is back', () => ![0, old].includes(stack.pid('management')), 60_000);
    await eventually('it says what is in the way', () => log().includes('"event":"state.not_ready"'), 60_000);
    expect(await answersPing(stack.file().api)).toBe(true);
    await readOnly('off');
    await query(
      stack.file().state_database,
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast'",
    );
    await eventually(
      'it is ready',
      () => log().lastIndexOf('state.ready') > log().lastIndexOf('state.not_ready'),
      60_000,
    );
  });
});

describe('a terminal that goes away', () => {
  it('does not take the stack with it when there is something to say', async () => {
    const stack = withRows ?? (await runningWithRows());
    await stop(stack.data);
    const file = join(stack.data, 'logs/supervisor.log');
    const before = readFileSync(file, 'utf8').length;
    const child = run('start.sh', startArguments(stack.data, stack.offset, []));
    await eventually('ready', () => readFileSync(file, 'utf8').slice(before).includes('stack.ready'), 60_000);
    child.stderr?.destroy();
    child.stdout?.destroy();
    const old = stack.pid('management');
    process.kill(old, 'SIGKILL');
    await eventually('management is back', () => ![0, old].includes(stack.pid('management')), 60_000);
    await eventually('the API answers', () => answersPing(stack.file().api), 60_000);
    expect((await stop(stack.data)).code).toBe(0);
  });
});
