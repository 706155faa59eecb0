// Hands the flow engine the feeds of management with a certificate for each, and management what
// the engine reports. The engine can write its report, and nothing else of ours.

import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { codeOf } from '@holdfast/kit/app-error';
import { writeUnlessThere } from '@holdfast/kit/files';
import { FEED_ACCOUNT_PREFIX } from '@holdfast/kit/names';

/** Certificate and key of an account, in PEM; undefined if there is no valid one. */
export type Given = (account: string) => string | undefined;

const MAX_REPORT_BYTES = 500_000;

/** Nothing is given while management has no file of feeds. */
export function giveFeeds(
  { core, directory, mode }: { core: string; directory: string; mode: number },
  given: Given,
): void {
  const file = join(core, 'feeds/feeds.json');
  if (!existsSync(file)) return;
  const text = readFileSync(file, 'utf8');
  const { feeds } = JSON.parse(text) as { feeds: { name: string; active: boolean }[] };
  const accounts = feeds.filter(({ active }) => active).map(({ name }) => FEED_ACCOUNT_PREFIX + name);
  for (const name of readdirSync(directory))
    if (name.startsWith(FEED_ACCOUNT_PREFIX) && !accounts.includes(name.replace(/\.pem$/, '')))
      rmSync(join(directory, name), { force: true });
  for (const account of accounts) {
    const certificate = given(account);
    if (certificate !== undefined) writeUnlessThere(join(directory, `${account}.pem`), certificate, mode);
  }
  writeUnlessThere(join(directory, 'feeds.json'), text, mode);
  const state = join(directory, 'state');
  mkdirSync(state, { recursive: true });
  // What the engine makes there belongs to our group.
  chmodSync(state, (mode & 0o040) === 0 ? 0o700 : 0o2770);
  const report = readReport(join(state, 'feeds.json'));
  if (report !== undefined) writeUnlessThere(join(core, 'feeds/report.json'), report, 0o600);
}

/** Only an ordinary file of the usual size: another user writes it. */
function readReport(path: string): string | undefined {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const found = fstatSync(file);
      return found.isFile() && found.size <= MAX_REPORT_BYTES ? readFileSync(file, 'utf8') : undefined;
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if (['ENOENT', 'ELOOP'].includes(codeOf(error) ?? '')) return undefined;
    throw error;
  }
}
