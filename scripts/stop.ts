// Entry of stop.sh: asks the supervisor of a data directory to stop, and waits until nothing of it runs any more.

import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { codeOf } from '@holdfast/kit/app-error';
import { argumentsOrUsage, exitWith } from '@holdfast/kit/command';
import { parseStopArguments, STOP_USAGE } from '@holdfast/stack/arguments';
import { clearStaleServer } from '@holdfast/stack/database/cluster';
import { takeLock } from '@holdfast/stack/process/guard';
import { type Layout, layoutOf } from '@holdfast/stack/process/layout';
import { endLeftovers, isAlive, runningSupervisor } from '@holdfast/stack/process/ownership';
import { mayBeRemoved, removeStack } from '@holdfast/stack/remove-stack';

const STOP_WITHIN_MS = 90_000;
const LOCK_WITHIN_MS = 15_000;
const home = resolve(import.meta.dirname, '..');

async function main(): Promise<number> {
  const args = argumentsOrUsage(() => parseStopArguments(process.argv.slice(2), home, process.cwd()), STOP_USAGE);
  if (typeof args === 'number') return args;
  const layout = layoutOf(args.data);
  if (!args.remove) return stop(layout);
  await mayBeRemoved(layout, args.answer);
  const code = await stop(layout);
  if (code !== 0) return code;
  await removeStack(home, layout, (text) => say(text));
  return 0;
}

async function stop(layout: Layout): Promise<number> {
  const data = layout.root;
  const closed = whyClosed(layout);
  if (closed !== undefined) {
    say(closed);
    return 1;
  }
  const supervisor = await supervisorOrNone(layout);
  if (supervisor === undefined) return clearUp(layout);
  try {
    process.kill(supervisor.pid, 'SIGTERM');
  } catch (error) {
    if (codeOf(error) === 'EPERM') {
      say(
        `The stack on ${data} (process ${supervisor.pid}) belongs to another user. Remedy: stop it as that user or as root.\n`,
      );
      return 1;
    }
  }
  const deadline = Date.now() + STOP_WITHIN_MS;
  while (isAlive(supervisor) && Date.now() < deadline) await delay(50);
  if (isAlive(supervisor)) {
    say(`The stack on ${data} (process ${supervisor.pid}) did not stop in time; see ${layout.logs}/supervisor.log\n`);
    return 1;
  }
  const next = await supervisorOrNone(layout);
  if (next !== undefined) {
    say(`The stack on ${data} has stopped; another start (process ${next.pid}) has taken the directory since.\n`);
    return 0;
  }
  if (!isFree(layout)) {
    say(`The supervisor on ${data} has ended, but something still holds the directory; try again in a moment.\n`);
    return 1;
  }
  say(`The stack on ${data} has stopped.\n`);
  return 0;
}

/** Why nothing can be said about a data directory; undefined when it can be looked into. */
function whyClosed(layout: Layout): string | undefined {
  try {
    accessSync(layout.root, constants.X_OK);
    if (existsSync(layout.run) || !mayList(layout.root)) accessSync(layout.run, constants.R_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') {
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

/** The supervisor that holds the directory; undefined once nobody holds it any more (a stack may be starting or ending). */
async function supervisorOrNone(layout: Layout) {
  const deadline = Date.now() + LOCK_WITHIN_MS;
  for (;;) {
    const supervisor = runningSupervisor(layout);
    if (supervisor !== undefined || isFree(layout) || Date.now() > deadline) return supervisor;
    await delay(100);
  }
}

function isFree(layout: Layout): boolean {
  return !existsSync(layout.lock) || spawnSync('flock', ['-n', layout.lock, 'true']).status === 0;
}

/** Nothing supervises the directory: ends what a crash may have left behind. */
async function clearUp(layout: Layout): Promise<number> {
  const guardScript = join(home, 'packages/stack/process/guard.sh');
  const guard = existsSync(layout.lock) ? await takeLock(guardScript, layout.lock, () => undefined) : undefined;
  if (guard === undefined && existsSync(layout.lock)) {
    say(`A stack on ${layout.root} is just starting or ending. Remedy: try again in a moment.\n`);
    return 1;
  }
  const ended = await endLeftovers(layout, (text) => say(`${text}\n`));
  const server = await clearStaleServer(layout.pgdata);
  await guard?.release();
  say(
    ended || server === 'server ended'
      ? `The rest of the stack on ${layout.root} has stopped.\n`
      : `Nothing runs on ${layout.root}.\n`,
  );
  return 0;
}

function say(text: string): void {
  process.stderr.write(text);
}

await exitWith(main);
