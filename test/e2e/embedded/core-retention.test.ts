// The client of retention against a real embedded core, in this process.

import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { KEEP_ALL } from '@holdfast/kit/retention';
import { type HttpCore, httpCore } from '../../../shared/core/http.ts';
import { codeOf, coreRetentionContract } from '../../core/core-retention-contract.ts';
import { fakeRetention } from '../../retention/fake-retention.ts';
import { coreInProcess } from './core-in-process.ts';
import { emptyDatabase } from './empty-database.ts';

const database = emptyDatabase();

coreRetentionContract('in memory', async () => ({
  core: fakeRetention(() => new Date()).coreRetention,
  end: async () => undefined,
}));

let embedded: { client: HttpCore; end: () => Promise<void> } | undefined;
afterAll(() => embedded?.end());

coreRetentionContract('embedded', async () => {
  const work = mkdtempSync(join(database.data(), 'work-'));
  const { core, place } = await coreInProcess(database.url(), work, () => ['core_All']);
  const client = httpCore({ url: place.api, dataDir: place.directory });
  const end = async (): Promise<void> => {
    await client.close();
    await core.close(100);
  };
  embedded = { client, end };
  return { core: client.retention, end: async () => undefined };
});

it('days that look like seconds are refused by the embedded core, and nothing is changed', async () => {
  const retention = (embedded as { client: HttpCore }).client.retention;
  expect(await codeOf(retention.changePolicy({ cot: 2_592_000 }))).toBe('upstream');
  expect(await retention.policy()).toEqual(KEEP_ALL);
});
