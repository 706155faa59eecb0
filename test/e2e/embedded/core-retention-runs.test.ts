// Runs of retention ordered by the client at a real embedded core, in this process.

import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { httpCore } from '../../../shared/core/http.ts';
import { coreRetentionRunsContract } from '../../core/core-retention-runs-contract.ts';
import { fakeRetention } from '../../retention/fake-retention.ts';
import { coreInProcess } from './core-in-process.ts';
import { query } from './embedded.ts';
import { emptyDatabase } from './empty-database.ts';

const database = emptyDatabase();

coreRetentionRunsContract('in memory', async () => {
  const fake = fakeRetention(() => new Date());
  return {
    core: fake.coreRetention,
    addEvents: async (times) => void fake.rows.cot.push(...times.map((each) => each.toISOString())),
    finish: () => fake.finishRun(),
    end: async () => undefined,
  };
});

coreRetentionRunsContract('embedded', async () => {
  const work = mkdtempSync(join(database.data(), 'work-'));
  const { core, place } = await coreInProcess(database.url(), work, () => ['core_All']);
  const client = httpCore({ url: place.api, dataDir: place.directory });
  return {
    core: client.retention,
    async addEvents(times) {
      for (const [at, each] of times.entries())
        await query(
          database.url(),
          `INSERT INTO cot_router (uid, cot_type, servertime) VALUES ('RUNS-${at}', 'a-f-G', '${each.toISOString()}')`,
        );
    },
    finish: () => undefined,
    async end() {
      await client.close();
      await core.close(100);
    },
  };
});
