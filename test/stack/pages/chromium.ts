// Debian's chromium, driven by playwright-core: HOLDFAST_CHROMIUM names another one. Nothing but this machine can be reached from it.

import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const PROGRAM = process.env['HOLDFAST_CHROMIUM'] ?? '/usr/bin/chromium';

/** False where the tests of pages are skipped: `apt-get install chromium`, as .ci/run does, or HOLDFAST_CHROMIUM. */
export const hasChromium = existsSync(PROGRAM);

const ARGUMENTS = [
  // Containers have a /dev/shm of 64 MB, which a page fills.
  '--disable-dev-shm-usage',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
];

/** With the sandbox where the kernel gives one to whoever runs this; root has none. */
export async function startChromium(): Promise<Browser> {
  const options = { executablePath: PROGRAM, args: ARGUMENTS };
  if (process.getuid?.() === 0) return chromium.launch({ ...options, chromiumSandbox: false });
  return chromium
    .launch({ ...options, chromiumSandbox: true })
    .catch(() => chromium.launch({ ...options, chromiumSandbox: false }));
}
