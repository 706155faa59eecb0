// Debian's chromium, driven by playwright-core: whole, or the shell of it that only works without a window and is a quarter of the
// size to install; HOLDFAST_CHROMIUM names another one. Nothing but this machine can be reached from it.

import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const PROGRAMS = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'];
const named = process.env['HOLDFAST_CHROMIUM'];
const program = (named === undefined ? PROGRAMS : [named]).find((each) => existsSync(each));

/** False where the tests of pages are skipped. `apt-get install chromium-headless-shell` brings one, as .ci/run does. */
export const hasChromium = program !== undefined;

const ARGUMENTS = [
  // Containers have a /dev/shm of 64 MB, which a page fills.
  '--disable-dev-shm-usage',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
];

/** With the sandbox where the kernel gives one to whoever runs this; root has none. */
export async function startChromium(): Promise<Browser> {
  if (program === undefined) throw new Error(`There is no chromium: ${named ?? PROGRAMS.join(', ')}`);
  const options = { executablePath: program, args: ARGUMENTS };
  if (process.getuid?.() === 0) return chromium.launch({ ...options, chromiumSandbox: false });
  return chromium
    .launch({ ...options, chromiumSandbox: true })
    .catch(() => chromium.launch({ ...options, chromiumSandbox: false }));
}
