// Who owns a data directory, and which processes belong to its stack: one lock, one list, both survive a crash.

import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { writeFileAtomically } from './atomic-file.ts';
import { type Guard, takeLock } from './guard.ts';
import type { Layout } from './layout.ts';
import { endProcess, identify, isAlive, type ProcessIdentity } from './process-table.ts';
import type { Report } from './report.ts';
import { explainFileError, StackError } from './stack-error.ts';
import { codeOf } from '../../shared/domain/thrown.ts';

const DYING_STACK_MS = 15_000;
const ASK_AGAIN_MS = 250;

interface Listed extends ProcessIdentity {
  role: string;
}

/**
 * Takes the directory. A stack that runs there is refused with its address; one whose supervisor is dead is waited for,
 * and what it may have left behind is ended.
 */
export async function lockDirectory(
  guardScript: string,
  layout: Layout,
  report: Report,
  lost: () => void,
  aborted: AbortSignal,
): Promise<Guard> {
  const deadline = Date.now() + DYING_STACK_MS;
  let said = false;
  for (;;) {
    const guard = await takeLock(guardScript, layout.lock, lost);
    if (guard !== undefined) {
      await endLeftovers(layout, (text) => report.warn(text));
      return guard;
    }
    const supervisor = runningSupervisor(layout);
    if (supervisor !== undefined || Date.now() > deadline) throw alreadyRuns(layout, supervisor);
    if (!said) {
      said = true;
      report.warn('A stack on this directory is just ending or starting; waiting for it.');
    }
    await delay(ASK_AGAIN_MS);
    aborted.throwIfAborted();
  }
}

function alreadyRuns(layout: Layout, supervisor: Listed | undefined): StackError {
  const who = supervisor === undefined ? 'Another start' : `A Holdfast stack (process ${supervisor.pid})`;
  return new StackError(
    `${who} already uses ${layout.root}; it was left alone.`,
    `use it as it is (its addresses are in ${layout.stack}), stop it with ./scripts/stop.sh --data ${layout.root}, or start a second one with another --data and --offset`,
  );
}

/** The supervisor of the stack on this directory, if it lives. */
export function runningSupervisor(layout: Layout): Listed | undefined {
  return readProcesses(layout).find((listed) => listed.role === 'supervisor' && isAlive(listed));
}

/** Ends the listed processes that still live; true when there were any. The lock must be held. */
export async function endLeftovers(layout: Layout, say: (text: string) => void): Promise<boolean> {
  const left = readProcesses(layout).filter((listed) => listed.pid !== process.pid && isAlive(listed));
  if (left.length === 0) return false;
  say(`Ending what a crash left behind: ${left.map(({ role, pid }) => `${role} (${pid})`).join(', ')}.`);
  const first = (role: string): NodeJS.Signals => (role === 'database' ? 'SIGINT' : 'SIGTERM');
  await Promise.all(left.map((listed) => endProcess(listed, [first(listed.role), 'SIGKILL'], 6000)));
  return true;
}

function readProcesses(layout: Layout): Listed[] {
  let text: string;
  try {
    text = readFileSync(layout.processes, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw explainFileError(error, layout.processes);
  }
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) ? list.filter(isListed) : [];
  } catch {
    return [];
  }
}

function isListed(entry: unknown): entry is Listed {
  if (typeof entry !== 'object' || entry === null) return false;
  return (
    'pid' in entry &&
    typeof entry.pid === 'number' &&
    'startTicks' in entry &&
    'role' in entry &&
    typeof entry.role === 'string'
  );
}

export interface Roster {
  add(role: string, pid: number): void;
  remove(role: string): void;
  clear(): void;
}

/** The list of processes, kept in DIR/run/processes.json and passed to `publish` at each change. */
export function rosterOf(layout: Layout, publish: (pids: { role: string; pid: number }[]) => void): Roster {
  const listed = new Map<string, Listed>();

  function write(): void {
    const all = [...listed.values()];
    writeFileAtomically(layout.processes, `${JSON.stringify(all)}\n`);
    publish(all.map(({ role, pid }) => ({ role, pid })));
  }

  return {
    add(role, pid) {
      const identity = identify(pid);
      if (identity !== undefined) listed.set(role, { role, ...identity });
      write();
    },
    remove(role) {
      listed.delete(role);
      write();
    },
    clear() {
      listed.clear();
      write();
    },
  };
}
