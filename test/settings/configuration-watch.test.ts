// What was changed in the files since the start, as whoever asks at that moment must hear it.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { watchConfiguration } from '../../shared/settings/configuration.ts';
import type { Layer } from '../../shared/settings/load.ts';
import { DEFAULT_THRESHOLDS } from '../../shared/settings/status.ts';

const home = mkdtempSync(join(tmpdir(), 'holdfast-watch-'));
afterAll(() => rmSync(home, { recursive: true }));

it('what is changed while somebody looks is told to whoever asks after that', async () => {
  const envFile = join(home, '.env');
  writeFileSync(envFile, '');
  const { promise: later, resolve: askLater } = Promise.withResolvers<string[]>();
  /** These are compared when the file was read. */
  const layer: Layer = {
    source: 'env file',
    get values() {
      writeFileSync(envFile, 'this is not a line\n');
      askLater(watch.changedSinceStart());
      return {};
    },
  };
  const start = { home, layers: [layer], mode: 'embedded', envFile, thresholds: DEFAULT_THRESHOLDS } as const;
  const watch = watchConfiguration(start);
  await watch.changedSinceStart();
  expect(await later).toEqual([expect.stringContaining('.env line 1')]);
});

it('a threshold that a variable sets anew is told by its own name alone', async () => {
  const envFile = join(home, 'thresholds.env');
  const layers: Layer[] = [{ source: 'env file', values: {} }];
  writeFileSync(envFile, 'MON_DISK_WARNING=70\n');
  const thresholds = { ...DEFAULT_THRESHOLDS, set_by: ['MON_DISK_CRITICAL'] };
  const changed = await watchConfiguration({
    home: process.cwd(),
    layers,
    mode: 'embedded',
    envFile,
    thresholds,
  }).changedSinceStart();
  expect(changed.filter((name) => !name.includes('refuse'))).toEqual(['modules.disk.warning']);
});
