import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification, type VitestPluginContext } from 'vitest/node';
import { POSTGRES_CONNECTION, repairPostgres } from '@holdfast/setup/repair-postgres';

/** A .sql file is imported as its text, as the bundle does. */
const sqlAsText = {
  name: 'sql-as-text',
  transform(code: string, id: string) {
    return id.endsWith('.sql') ? { code: `export default ${JSON.stringify(code)}`, map: null } : undefined;
  },
};

/** The client as the product has it. */
const repairedPostgres = {
  name: 'repaired-postgres',
  transform(code: string, id: string) {
    return POSTGRES_CONNECTION.test(id) ? { code: repairPostgres(code), map: null } : undefined;
  },
  /** A repair that changes must be seen by the next run. */
  configureVitest({ defineCacheKeyGenerator }: VitestPluginContext) {
    defineCacheKeyGenerator(({ id }) => (POSTGRES_CONNECTION.test(id) ? false : undefined));
  },
};

/** They take longest: begun last, they would run on alone when everything else is done. */
const LONG = [
  'browser/pages',
  'upgrade',
  'alerts',
  'backup-service',
  'settings-behave',
  'crash',
  'backup',
  'replicas',
  'release-upgrade',
  'operate',
  'health',
  'authentication',
  'users',
  'start',
  'identity',
  'refuse',
  'vacuum',
  'cluster',
  'stream',
  'retention-start',
  'release-database',
  'retention-on-demand',
].map((name) => `/test/e2e/${name.includes('/') ? '' : 'embedded/'}${name}.test.ts`);

class LongOnesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = LONG.findIndex((name) => moduleId.endsWith(name));
      return at === -1 ? LONG.length : at;
    };
    // oxlint-disable-next-line unicorn/no-array-sort -- no array
    const usual = await super.sort(files);
    return usual.toSorted((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  plugins: [sqlAsText, repairedPostgres],
  test: {
    fsModuleCache: true,
    server: { deps: { inline: ['postgres'] } },
    sequence: { sequencer: LongOnesFirst },
    reporters: ['default', './test/summary-reporter.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts', 'packages/*/test/**/*.test.ts'],
          exclude: ['test/e2e/**', '**/*.real.test.ts'],
          // Of a loaded machine too: they end what hangs, and measure nothing.
          testTimeout: 60_000,
          hookTimeout: 60_000,
          // The files of a worker share what they import: each would spend more on its imports than on its tests.
          isolate: false,
          // Some of them wait: one worker more than cores keeps the cores busy.
          maxWorkers: availableParallelism() + 1,
        },
      },
      {
        extends: true,
        test: {
          name: 'real',
          include: ['test/e2e/{embedded,browser}/**/*.test.ts', '{test,packages}/**/*.real.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          expect: { poll: { timeout: 20_000 } },
          // Four keep two cores busy; with five, waits of some files came to their end. The ports of each file are its own
          // (freeOffset in test/e2e/embedded/embedded.ts).
          maxWorkers: Math.min(4, availableParallelism() + 2),
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'containers',
          include: ['test/e2e/containers/**/*.test.ts'],
          testTimeout: 300_000,
          hookTimeout: 900_000,
          expect: { poll: { timeout: 60_000, interval: 200 } },
          // One engine with its images serves all files.
          isolate: false,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
