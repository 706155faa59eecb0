// Stops an embedded stack, and with --remove deletes its data.
// Deletes only the stack's own files: never the targets of links, never files of others.

import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, lstatSync, rmdirSync, rmSync } from 'node:fs';
import { basename } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { codeOf, explainFileError, StackError } from '@holdfast/kit/app-error';
import { argumentsOrUsage, type Invocation, parseCommandLine, say, UsageError } from '@holdfast/kit/command';
import { clearStaleServer } from './database/cluster.ts';
import { guardScript, takeLock } from './process/guard.ts';
import { dataDirectory, type Layout, layoutOf } from './process/layout.ts';
import { endLeftovers, isAlive, runningSupervisor, whileStopped } from './process/ownership.ts';
import { partsOf, upgradeCopies } from './parts.ts';

interface StopArguments {
  /** Absolute. */
  data: string;
  remove: boolean;
  /** The value of --yes-delete-everything. */
  answer: string | undefined;
}

const USAGE = `Usage: ./scripts/stop.sh [--data DIR] [--remove]

  --data DIR         data directory of the stack (default: data in the repository)
  --remove           also delete the data. Asks you to type DIR first
  --yes-delete-everything DIR
                     confirm --remove without a prompt
`;
const STOP_WITHIN_MS = 90_000;
const LOCK_WITHIN_MS = 15_000;
/** A stack's directory has at least one of these. */
const MARKERS: readonly (keyof Layout)[] = ['secrets', 'stack', 'pgdata'];

/** The program of stop.sh; resolves with its exit code. */
export async function stopProgram(call: Invocation): Promise<number> {
  const args = argumentsOrUsage(() => readArguments(call), USAGE);
  if (typeof args === 'number') return args;
  const layout = layoutOf(args.data);
  if (!args.remove) return stop(call.home, layout);
  await confirmRemoval(layout, args.answer);
  const code = await stop(call.home, layout);
  if (code === 0) await removeStack(call.home, layout);
  return code;
}

function readArguments(call: Invocation): StopArguments | 'help' {
  const { values } = parseCommandLine({
    args: call.argv,
    options: {
      data: { type: 'string' },
      remove: { type: 'boolean' },
      'yes-delete-everything': { type: 'string' },
      help: { type: 'boolean' },
    },
  });
  if (values.help === true) return 'help';
  const remove = values.remove === true;
  const given = values['yes-delete-everything'];
  if (given !== undefined && !remove) throw new UsageError('--yes-delete-everything needs --remove');
  const answer = given === undefined ? undefined : dataDirectory(given, call);
  return { data: dataDirectory(values.data, call), remove, answer };
}

async function stop(home: string, layout: Layout): Promise<number> {
  const data = layout.root;
  const closed = accessProblem(layout);
  if (closed !== undefined) {
    say(closed);
    return 1;
  }
  const supervisor = await supervisorOrNone(layout);
  if (supervisor === undefined) return clearUp(home, layout);
  try {
    process.kill(supervisor.pid, 'SIGTERM');
  } catch (error) {
    if (codeOf(error) === 'EPERM') {
      say(
        `The stack in ${data} (process ${supervisor.pid}) belongs to another user.\n  Remedy: stop it as that user or as root\n`,
      );
      return 1;
    }
  }
  const deadline = performance.now() + STOP_WITHIN_MS;
  while (isAlive(supervisor) && performance.now() < deadline) await delay(50);
  if (isAlive(supervisor)) {
    say(
      `The stack in ${data} (process ${supervisor.pid}) did not stop within ${STOP_WITHIN_MS / 1000} s.\n  Remedy: read ${layout.logs}/supervisor.log, then try again\n`,
    );
    return 1;
  }
  const next = await supervisorOrNone(layout);
  if (next !== undefined) {
    say(`The stack in ${data} has stopped. Another start (process ${next.pid}) has since begun there.\n`);
    return 0;
  }
  if (!isFree(layout)) {
    say(`Another process still uses ${data}, although its supervisor has stopped.\n  Remedy: try again in a moment\n`);
    return 1;
  }
  say(`The stack in ${data} has stopped.\n`);
  return 0;
}

/** Why the data directory isn't accessible; undefined if it is. */
function accessProblem(layout: Layout): string | undefined {
  try {
    accessSync(layout.root, constants.X_OK);
    if (existsSync(layout.run) || !mayList(layout.root)) accessSync(layout.run, constants.R_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') {
      return `Data directory not found: ${layout.root}.\n  Remedy: give the data directory of the stack with --data DIR\n`;
    }
    return `The stack in ${layout.root} belongs to another user.\n  Remedy: stop it as that user or as root\n`;
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

/**
 * The running supervisor; undefined once the lock is free. Waits for a stack that is starting or
 * stopping.
 */
async function supervisorOrNone(layout: Layout) {
  const deadline = performance.now() + LOCK_WITHIN_MS;
  for (;;) {
    const supervisor = runningSupervisor(layout);
    if (supervisor !== undefined || isFree(layout) || performance.now() > deadline) return supervisor;
    await delay(100);
  }
}

function isFree(layout: Layout): boolean {
  return !existsSync(layout.lock) || spawnSync('flock', ['-n', layout.lock, 'true']).status === 0;
}

/** Ends processes that a crash may have left behind without a supervisor. */
async function clearUp(home: string, layout: Layout): Promise<number> {
  const guard = existsSync(layout.lock) ? await takeLock(guardScript(home), layout.lock, () => undefined) : undefined;
  if (guard === undefined && existsSync(layout.lock)) {
    say(`A stack in ${layout.root} is starting or stopping.\n  Remedy: try again in a moment\n`);
    return 1;
  }
  const ended = await endLeftovers(layout, (text) => say(`${text}\n`));
  const server = await clearStaleServer(layout.pgdata);
  await guard?.release();
  say(
    ended || server === 'server ended'
      ? `Stopped the processes that a crash left in ${layout.root}.\n`
      : `The stack in ${layout.root} is already stopped.\n`,
  );
  return 0;
}

/** Rejects unless the directory belongs to a stack and the person confirmed with its name. */
async function confirmRemoval(layout: Layout, answer: string | undefined): Promise<void> {
  requireStackDirectory(layout);
  const { root } = layout;
  const message = answer ?? (await promptForConfirmation(root));
  if (message.replace(/(?<=.)\/+$/, '') === root) return;
  throw new StackError(
    `The answer is not ${root}. Nothing was stopped or deleted.`,
    `to delete, run this again and type ${root}`,
  );
}

function requireStackDirectory({ root, ...layout }: Layout): void {
  const found = lstatSync(root, { throwIfNoEntry: false });
  if (found === undefined)
    throw new StackError(`Data directory not found: ${root}.`, 'give the data directory of the stack with --data DIR');
  if (found.isSymbolicLink())
    throw new StackError(
      `${root} is a symbolic link. Its target was not deleted.`,
      'give the directory itself with --data DIR',
    );
  const isMarked = MARKERS.some((name) => existsSync({ root, ...layout }[name])) && existsSync(layout.run);
  if (!isMarked)
    throw new StackError(
      `${root} is not a data directory: it has no ${basename(layout.secrets)}, ${basename(layout.stack)} or ${basename(layout.pgdata)}. Nothing was deleted.`,
      'give the data directory of the stack with --data DIR',
    );
}

async function promptForConfirmation(root: string): Promise<string> {
  if (!process.stdin.isTTY)
    throw new StackError(
      "Can't ask for confirmation without a terminal. Nothing was stopped or deleted.",
      `to delete without a prompt: ./scripts/stop.sh --data ${root} --remove --yes-delete-everything ${root}`,
    );
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await lines.question(
      `This permanently deletes all people, devices, messages, certificates and passwords in ${root}.\nTo delete everything, type ${root}: `,
    );
  } finally {
    lines.close();
  }
}

/** Deletes the files of a stopped stack, which can't be started meanwhile. */
async function removeStack(home: string, layout: Layout): Promise<void> {
  await whileStopped(home, layout, say, () => [...partsOf(layout), ...upgradeCopies(layout)].forEach(remove));
  remove(layout.run);
  say(
    removeIfEmpty(layout.root)
      ? `Deleted ${layout.root}.\n`
      : `Deleted the stack's data. ${layout.root} was kept because it contains other files.\n`,
  );
}

function remove(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch (error) {
    throw explainFileError(error, path);
  }
}

function removeIfEmpty(root: string): boolean {
  try {
    rmdirSync(root);
    return true;
  } catch (error) {
    if (['ENOTEMPTY', 'EEXIST', 'EBUSY', 'EACCES', 'EPERM'].includes(codeOf(error) ?? '')) return false;
    throw error;
  }
}
