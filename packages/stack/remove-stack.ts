// Deletes what an embedded stack has in its data directory, after a person has said so: the stack's own files and directories
// alone, never what a link leads to, never what somebody else has put there.

import { existsSync, lstatSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { codeOf, explainFileError, StackError } from '@holdfast/kit/app-error';
import type { Layout } from './process/layout.ts';
import { BEFORE_ROTATION } from './rotation.ts';
import { whileStopped } from './while-stopped.ts';

/** Without one of these it is the directory of no stack. */
const MARKERS: readonly (keyof Layout)[] = ['secrets', 'stack', 'pgdata'];

/** Rejects unless the directory is a stack's and the person has answered with its name. */
export async function mayBeRemoved(layout: Layout, answer: string | undefined): Promise<void> {
  mustBeOfStack(layout);
  const { root } = layout;
  const said = answer ?? (await asked(root));
  if (said.replace(/(?<=.)\/+$/, '') === root) return;
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

async function asked(root: string): Promise<string> {
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
export async function removeStack(home: string, layout: Layout, say: (text: string) => void): Promise<void> {
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
