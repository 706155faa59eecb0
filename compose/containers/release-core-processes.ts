// The programs of a release as the kernel shows them: which ones its script starts, and which of them live. Everything that the
// script has started is in its session, whoever its parent is by now.

import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { commandLine, isAlive, type ProcessIdentity } from '../embedded/process-table.ts';

/** By their own names; the programs without a profile are known by their file. */
const JARS: Record<string, string> = { 'takserver-pm.jar': 'plugins', 'takserver-retention.jar': 'retention' };
const PROFILE = /^-Dspring\.profiles\.active=["']?([a-z]+)["']?$/;
const ASK_EVERY_MS = 100;

/** The programs that the script of a release starts, in its order. */
export function programsIn(script: string): string[] {
  const starts = script
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => /^(?:\S*\/)?java\s/.test(line));
  const names = starts.map((line) => programOf(line.split(/\s+/))).filter((name) => name !== undefined);
  return [...new Set(names)];
}

/** Which program of a release has these arguments; undefined for what is none. */
export function programOf(args: readonly string[]): string | undefined {
  for (const arg of args) {
    const profile = PROFILE.exec(arg)?.[1];
    const name = profile ?? JARS[basename(arg)];
    if (name !== undefined) return name;
  }
  return undefined;
}

/** Everything alive of a session. */
export function processesOf(session: number): ProcessIdentity[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((entry) => {
      const fields = statOf(entry);
      if (fields === undefined || fields[3] !== String(session) || fields[0] === 'Z' || fields[0] === 'X') return [];
      return [{ pid: Number(entry), startTicks: Number(fields[19]) }];
    });
}

/** The programs that live in a session, by name. */
export function livingPrograms(session: number): Map<string, ProcessIdentity> {
  const named = processesOf(session).map((each) => [programOf(commandLine(each.pid)), each] as const);
  return new Map(named.filter((each): each is [string, ProcessIdentity] => each[0] !== undefined));
}

/** Asks everything in the session to end, and kills what lives on after `withinMs`. */
export async function endSession(session: number, withinMs: number): Promise<void> {
  const until = performance.now() + withinMs;
  const asked = new Map<number, ProcessIdentity>();
  for (let living = processesOf(session); living.length > 0; living = processesOf(session)) {
    const late = performance.now() >= until;
    // What has been started meanwhile is asked too.
    for (const each of living) if (late || !asked.has(each.pid)) signal(each, late ? 'SIGKILL' : 'SIGTERM');
    for (const each of living) asked.set(each.pid, each);
    await delay(ASK_EVERY_MS);
  }
}

function signal(identity: ProcessIdentity, name: NodeJS.Signals): void {
  try {
    if (isAlive(identity)) process.kill(identity.pid, name);
  } catch {
    // It has ended meanwhile.
  }
}

/** From the state on: what stands before it may hold blanks. */
function statOf(pid: string): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}
