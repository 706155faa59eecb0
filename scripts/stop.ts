// Entry of stop.sh: asks the supervisor of a data directory to stop, and waits until nothing of it runs any more.

import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Layout, layoutOf } from '../compose/embedded/layout.ts';
import { runningSupervisor } from '../compose/embedded/ownership.ts';
import { isAlive } from '../compose/embedded/process-table.ts';
import { parseStopArguments, STOP_USAGE, UsageError } from './start-arguments.ts';

const STOP_WITHIN_MS = 90_000;

async function main(): Promise<number> {
  const data = readArguments();
  if (typeof data === 'number') return data;
  const layout = layoutOf(data);
  const closed = whyClosed(layout);
  if (closed !== undefined) {
    say(closed);
    return 1;
  }
  const supervisor = runningSupervisor(layout);
  if (supervisor === undefined) {
    const freed = waitForLock(layout, 15);
    say(freed ? `Nothing runs on ${data}.\n` : `A stack on ${data} is starting or ending; try again in a moment.\n`);
    return freed ? 0 : 1;
  }
  try {
    process.kill(supervisor.pid, 'SIGTERM');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EPERM') {
      say(
        `The stack on ${data} (process ${supervisor.pid}) belongs to another user. Remedy: stop it as that user or as root.\n`,
      );
      return 1;
    }
  }
  const deadline = Date.now() + STOP_WITHIN_MS;
  while (isAlive(supervisor) && Date.now() < deadline) await new Promise((tick) => setTimeout(tick, 50));
  if (isAlive(supervisor) || !waitForLock(layout, 15)) {
    say(`The stack on ${data} (process ${supervisor.pid}) did not stop in time; see ${layout.logs}/supervisor.log\n`);
    return 1;
  }
  say(`The stack on ${data} has stopped.\n`);
  return 0;
}

function readArguments(): string | number {
  try {
    const args = parseStopArguments(process.argv.slice(2), resolve(import.meta.dirname, '..'), process.cwd());
    if (args !== 'help') return args.data;
    process.stdout.write(STOP_USAGE);
    return 0;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    say(`${error.message}\n\n${STOP_USAGE}`);
    return 2;
  }
}

/** Why nothing can be said about a data directory; undefined when it can be looked into. */
function whyClosed(layout: Layout): string | undefined {
  try {
    accessSync(layout.root, constants.X_OK);
    if (existsSync(layout.run) || !mayList(layout.root)) accessSync(layout.run, constants.R_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      return `There is no data directory ${layout.root}. Remedy: name the one that the stack was started with, --data DIR\n`;
    }
    return `The stack on ${layout.root} belongs to another user. Remedy: stop it as that user or as root.\n`;
  }
}

function mayList(directory: string): boolean {
  try {
    accessSync(directory, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/** True once nobody holds the lock of the directory. */
function waitForLock(layout: Layout, seconds: number): boolean {
  return !existsSync(layout.lock) || spawnSync('flock', ['-w', String(seconds), layout.lock, 'true']).status === 0;
}

function say(text: string): void {
  process.stderr.write(text);
}

process.exit(await main());
