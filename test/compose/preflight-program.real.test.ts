// What start.sh has judged before it starts anything: every secret of .env, whichever container
// takes it and by which name.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { composeObstacle, ComposeRoot, REPOSITORY } from '../../packages/setup/test/compose.ts';
import { SETTING_NAMES, SETTINGS } from '../../shared/settings/table.ts';

const obstacle = composeObstacle();
const SECRETS = SETTING_NAMES.filter((name) => SETTINGS[name].example === 'generated' || name === 'IDENTITY_TOKEN');
/** Long enough for every rule but the one that nobody else may know it. */
const PUBLISHED = 'changeme-changeme-changeme-12345';

let root: ComposeRoot;

/** The settings that the program complains of. */
function refused(layers: readonly string[]): string[] {
  const config = JSON.stringify(root.config(layers));
  const program = join(REPOSITORY, 'scripts/preflight.ts');
  const requested = spawnSync(process.execPath, [program, '--of-compose'], { encoding: 'utf8', input: config });
  expect([requested.status, requested.stdout]).toEqual([requested.stderr === '' ? 0 : 1, '']);
  expect(requested.stderr).not.toContain(PUBLISHED);
  const reported = requested.stderr.matchAll(/^ *([A-Z_]+)=\*\*\*: is a placeholder/gm);
  const names = [...reported].map(([, name = '']) => name);
  if (names.length === 0) expect(requested.stderr).toBe('');
  return names;
}

describe.skipIf(obstacle !== undefined)(obstacle ?? 'the preflight of a stack in containers', () => {
  beforeAll(() => {
    root = new ComposeRoot();
    const { status, stderr } = root.setUp(['--light', '--address', 'cot.example.org']);
    if (status !== 0) throw new Error(stderr);
    root.writeEnv(
      `${root.readEnv()}\nIDENTITY_BOOTSTRAP_TOKEN=${'b'.repeat(32)}\nIDENTITY_ADMIN_PASSWORD=akadmin-of-ours\n`,
    );
  });
  afterAll(() => root.remove());

  it('lets pass what set-up has made', () => {
    expect([refused(['base', 'light']), refused(['base', 'dev'])]).toEqual([[], []]);
  });

  it('refuses each secret that others could know', () => {
    const before = root.readEnv();
    const published = SECRETS.map((name) => `${name}=${PUBLISHED}`);
    root.writeEnv([before, ...published].join('\n'));
    try {
      // A backup holds them all.
      for (const layers of [['base'], ['base', 'light']])
        expect([layers, refused(layers).toSorted()]).toEqual([layers, SECRETS.toSorted()]);
    } finally {
      root.writeEnv(before);
    }
  });
});
