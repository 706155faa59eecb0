// Keeps what an upgrade is doing in one file of the installation, so that the next call can finish
// it after a crash.

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { StackError } from '@holdfast/kit/app-error';
import { syncDirectory, writeFileAtomically } from '@holdfast/kit/files';

const STEPS = ['stop', 'snapshot', 'move-out', 'move-in', 'switch', 'start'] as const;
export type Step = (typeof STEPS)[number];

const KINDS = ['apply', 'back', 'back-to-snapshot'] as const;
export type Kind = (typeof KINDS)[number];

const journalSchema = z.object({
  kind: z.enum(KINDS),
  /** `return`: it failed, and the version before is put back. */
  direction: z.enum(['forward', 'return']),
  step: z.enum(STEPS),
  /** The version that ran before this. */
  from: z.string(),
  to: z.string(),
  /** The data directory, absolute. */
  data: z.string(),
  /** Of the start. */
  arguments: z.array(z.string()),
  /** False: the stack is stopped again at the end. */
  was_running: z.boolean(),
  /** How long the start and the connection check may take together. */
  within_seconds: z.number(),
  /** Where the copy of the data is made, or is taken from. */
  snapshot: z.string().nullable(),
  /** Where the current data is put when a copy takes its place. */
  set_aside: z.string(),
  schema_changed: z.boolean(),
  /** Why the new version is not kept. */
  reason: z.string().nullable(),
});
export type Journal = z.infer<typeof journalSchema>;

const FORWARD: Record<Kind, readonly Step[]> = {
  apply: ['stop', 'snapshot', 'switch', 'start'],
  back: ['stop', 'switch', 'start'],
  'back-to-snapshot': ['stop', 'move-out', 'move-in', 'switch', 'start'],
};
const RETURN: Record<Kind, readonly Step[]> = {
  apply: ['stop', 'move-out', 'move-in', 'switch', 'start'],
  back: ['stop', 'switch', 'start'],
  'back-to-snapshot': ['stop', 'move-out', 'move-in', 'switch', 'start'],
};

export function stepsOf({ kind, direction }: Pick<Journal, 'kind' | 'direction'>): readonly Step[] {
  return direction === 'forward' ? FORWARD[kind] : RETURN[kind];
}

/** Below the installation. */
export const UPGRADES = '.upgrade';

export function versionDirectory(home: string, version: string): string {
  return join(home, UPGRADES, version);
}

function journalFile(home: string): string {
  return join(home, UPGRADES, 'journal.json');
}

/** Undefined if nothing is under way. */
export function readJournal(home: string): Journal | undefined {
  const file = journalFile(home);
  if (!existsSync(file)) return undefined;
  try {
    return journalSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    throw new StackError(
      `Couldn't read ${file}, which says how far an upgrade got.`,
      'see "An upgrade is stuck" in docs/upgrade.md',
      error,
    );
  }
}

export function writeJournal(home: string, journal: Journal): void {
  writeFileAtomically(journalFile(home), `${JSON.stringify(journal, null, 2)}\n`);
}

export function endJournal(home: string): void {
  rmSync(journalFile(home), { force: true });
  syncDirectory(join(home, UPGRADES));
}
