// Debian's chromium, driven by playwright-core: whole, or the shell of it that only works without a window and is a quarter of the
// size to install; HOLDFAST_CHROMIUM names another one, which must be there. Nothing but this machine can be reached from it.

import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';

const PROGRAMS = ['chromium-headless-shell', 'chromium'];
const named = process.env['HOLDFAST_CHROMIUM'] ?? '';
const program = (named === '' ? PROGRAMS : [named]).map(placeOf).find((each) => each !== undefined);
if (named !== '' && program === undefined) throw new Error(`HOLDFAST_CHROMIUM is ${named}, which is not there`);

/** A name without a slash is looked up as a shell does. */
function placeOf(name: string): string | undefined {
  if (name.includes('/')) return existsSync(name) ? name : undefined;
  const directories = (process.env['PATH'] ?? '').split(delimiter).filter((each) => each !== '');
  return directories.map((each) => join(each, name)).find((each) => existsSync(each));
}

/** Why the tests of pages are skipped; undefined where they run. */
export const chromiumMissing =
  program === undefined ? `no chromium is installed (${PROGRAMS.join(' or ')}, as .ci/run does)` : undefined;

const ARGUMENTS = [
  // Containers have a /dev/shm of 64 MB, which a page fills.
  '--disable-dev-shm-usage',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
];

/** With the sandbox where the kernel gives one to whoever runs this; root has none. */
export async function startChromium(): Promise<Browser> {
  if (program === undefined) throw new Error(chromiumMissing);
  const options = { executablePath: program, args: ARGUMENTS };
  if (process.getuid?.() === 0) return chromium.launch({ ...options, chromiumSandbox: false });
  return chromium
    .launch({ ...options, chromiumSandbox: true })
    .catch(() => chromium.launch({ ...options, chromiumSandbox: false }));
}
