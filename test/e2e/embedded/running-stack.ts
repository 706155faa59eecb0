// A stack that already stands, described by the file that HOLDFAST_STACK_FILE names: what other
// tests use through its doors alone, they can use of this one. It is started and stopped by whoever
// wrote that file.

import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { basic } from '../../http/fake-deps.ts';
import type { RunOptions, StackFile, TestStack } from './stack-file.ts';

const VARIABLE = 'HOLDFAST_STACK_FILE';
const named = process.env[VARIABLE] ?? '';

/** True when the tests use a stack that stands. Only the files of `portable.ts` can. */
export const stands = named !== '';

/** In names, so that a second run on the same stack meets nothing of the first. */
export const RUN = stands ? `-${Date.now().toString(36)}` : '';

export function isRunning(data: string): boolean {
  return stands && data === dirname(named);
}

function refused(what: string): never {
  throw new Error(`The stack of ${VARIABLE} (${named}) is somebody else's: ${what}`);
}

/**
 * Its directory holds what a stack of ours has in its own: secrets.json, and the files of the core
 * in `core`.
 */
export function runningStack(): TestStack {
  const file = (): StackFile => JSON.parse(readFileSync(named, 'utf8')) as StackFile;
  return {
    data: dirname(named),
    offset: Number(new URL(file().api).port) - 8080,
    async start(args = [], options = {}) {
      refuseDifferent(file(), args, options);
      await forgetFailures(file());
      return { code: 0, output: '' };
    },
    file,
    pid: (role) => refused(`the process of ${role} cannot be told from here.`),
  };
}

/** Settings are taken where the stack has the same. */
function refuseDifferent({ settings = {} }: StackFile, args: string[], { env = {}, under = [] }: RunOptions): void {
  if (args.length > 0 || under.length > 0) refused(`it cannot be started with ${[...under, ...args].join(' ')}.`);
  for (const [name, value] of Object.entries(env)) {
    if (settings[name] === value) continue;
    refused(`it must run with ${name}=${value}, and its file must say so under "settings" (there: ${settings[name]}).`);
  }
}

/**
 * The failures of the file before are not held against this one: all of them come from one address.
 */
async function forgetFailures({ api, webadmin, seen_as: address = '127.0.0.1' }: StackFile): Promise<void> {
  const headers = { authorization: basic(webadmin.username, webadmin.password) };
  const { status } = await fetch(`${api}/api/lockouts/${encodeURIComponent(address)}`, { method: 'DELETE', headers });
  if (![204, 404].includes(status)) refused(`it answers ${status} when ${address} is to be let in again.`);
}

export function refuseToStop(): never {
  return refused('it is not stopped here.');
}
