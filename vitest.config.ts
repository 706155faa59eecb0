import { defineConfig } from 'vitest/config';

/** A .sql file is imported as its text, as the bundle does. */
const sqlAsText = {
  name: 'sql-as-text',
  transform(code: string, id: string) {
    return id.endsWith('.sql') ? { code: `export default ${JSON.stringify(code)}`, map: null } : undefined;
  },
};

export default defineConfig({
  plugins: [sqlAsText],
  test: {
    reporters: ['default', './test/summary-reporter.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/*.test.ts', 'test/{domain,config,http,functions,embedded,scripts}/**/*.test.ts'],
          testTimeout: 10_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'real',
          include: ['test/{adapters,stack}/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
