// Stops an embedded stack: asks the supervisor of a data directory to stop, and waits until nothing of it runs any more. With --remove
// it then deletes the stack's own files alone, never what a link leads to, never what somebody else has put there.

import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, lstatSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { codeOf, explainFileError, StackError } from '@holdfast/kit/app-error';
import { argumentsOrUsage, type Invocation, parseCommandLine, say, UsageError } from '@holdfast/kit/command';
import { clearStaleServer } from './database/cluster.ts';
import { guardScript, takeLock } from './process/guard.ts';
import { dataDirectory, type Layout, layoutOf } from './process/layout.ts';
import { endLeftovers, isAlive, runningSupervisor, whileStopped } from './process/ownership.ts';
import { BEFORE_ROTATION } from './secrets.ts';

interface StopArguments {
  /** Absolute. */
  data: string;
  remove: boolean;
  /** What was answered beforehand to the question whether everything is to be deleted. */
  answer: string | undefined;
}

const USAGE = `Usage: ./scripts/stop.sh [--data DIR] [--remove]

  --data DIR         the directory that the stack was started with (default: data in the repository)
  --remove           delete all that the stack has there, once it has stopped; asks for DIR before
  --yes-delete-everything DIR
                     the same answer, where nobody can be asked
`;
const STOP_WITHIN_MS = 90_000;
const LOCK_WITHIN_MS = 15_000;
/** Without one of these it is the directory of no stack. */
const MARKERS: readonly (keyof Layout)[] = ['secrets', 'stack', 'pgdata'];

/** The program of stop.sh; resolves with its exit code. */
export async function stopProgram(call: Invocation): Promise<number> {
  const args = argumentsOrUsage(() => readArguments(call), USAGE);
  if (typeof args === 'number') return args;
  const layout = layoutOf(args.data);
  if (!args.remove) return stop(call.home, layout);
  await mayBeRemoved(layout, args.answer);
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
  if (given !== undefined && !remove) throw new UsageError('--yes-delete-everything belongs to --remove');
  const answer = given === undefined ? undefined : dataDirectory(given, call);
  return { data: dataDirectory(values.data, call), remove, answer };
}

async function stop(home: string, layout: Layout): Promise<number> {
  const data = layout.root;
  const closed = whyClosed(layout);
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
async function clearUp(home: string, layout: Layout): Promise<number> {
  const guard = existsSync(layout.lock) ? await takeLock(guardScript(home), layout.lock, () => undefined) : undefined;
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

/** Rejects unless the directory is a stack's and the person has answered with its name. */
async function mayBeRemoved(layout: Layout, answer: string | undefined): Promise<void> {
  mustBeOfStack(layout);
  const { root } = layout;
  const message = answer ?? (await requestedFor(root));
  if (message.replace(/(?<=.)\/+$/, '') === root) return;
  throw new StackError(
    `Nothing was stopped or deleted: the answer is not ${root}.`,
    `answer ${root}, or leave it as it is`,
  );
}

function mustBeOfStack({ root, ...layout }: Layout): void {
  const found = lstatSync(root, { throwIfNoEntry: false });
  if (found === undefined)
    throw new StackError(
      `There is no data directory ${root}.`,
      'name the one that the stack was started with, --data DIR',
    );
  if (found.isSymbolicLink())
    throw new StackError(
      `${root} is a link, which is not followed to delete what is behind it.`,
      'name the directory itself, --data DIR',
    );
  const isMarked = MARKERS.some((name) => existsSync({ root, ...layout }[name])) && existsSync(layout.run);
  if (!isMarked)
    throw new StackError(
      `${root} is not the data directory of a stack: it has no ${basename(layout.secrets)}, ${basename(layout.stack)} or ${basename(layout.pgdata)}. Nothing was deleted.`,
      'name the directory that the stack was started with, --data DIR',
    );
}

async function requestedFor(root: string): Promise<string> {
  if (!process.stdin.isTTY)
    throw new StackError(
      'Nothing was stopped or deleted: there is no terminal on which to ask.',
      `to delete all the same: ./scripts/stop.sh --data ${root} --remove --yes-delete-everything ${root}`,
    );
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await lines.question(
      `All people, devices, messages, certificates and passwords in ${root} would be deleted for good.\nTo delete them, type ${root}: `,
    );
  } finally {
    lines.close();
  }
}

/** The stack has stopped; nobody can start it meanwhile. */
async function removeStack(home: string, layout: Layout): Promise<void> {
  await whileStopped(home, layout, say, () => partsOf(layout).forEach(remove));
  remove(layout.run);
  say(
    emptied(layout.root)
      ? `${layout.root} was deleted.\n`
      : `The stack's data was deleted; ${layout.root} stays, for others have files in it.\n`,
  );
}

/** All that lies directly in the root and is the stack's, but for the directory that holds the lock. */
function partsOf(layout: Layout): string[] {
  const own = new Set(
    Object.values(layout).filter((path: string) => dirname(path) === layout.root && path !== layout.run),
  );
  const made = readdirSync(layout.root)
    .filter(
      (name) =>
        name.startsWith(`${basename(layout.secrets)}${BEFORE_ROTATION}`) ||
        /^(?:(?:pgdata|secrets\.json|stack\.json|pg_hba\.conf)\.new|pg_hba\.conf)$/.test(name),
    )
    .map((name) => join(layout.root, name));
  return [...own, ...made];
}

function remove(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch (error) {
    throw explainFileError(error, path);
  }
}

function emptied(root: string): boolean {
  try {
    rmdirSync(root);
    return true;
  } catch (error) {
    if (['ENOTEMPTY', 'EEXIST', 'EBUSY', 'EACCES', 'EPERM'].includes(codeOf(error) ?? '')) return false;
    throw error;
  }
}
