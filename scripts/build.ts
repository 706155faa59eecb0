// Bundles the programs of Holdfast into dist/. Each file is written beside its place and renamed, so that a program
// that starts meanwhile reads the old one or the new one.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { build, type BuildOptions, type Plugin } from 'esbuild';
import { parse } from 'yaml';
import { POSTGRES_CONNECTION, repairPostgres } from '@holdfast/setup/repair-postgres';
import { DEFAULT_THRESHOLDS } from '../shared/settings/threshold-figures.ts';

const home = resolve(import.meta.dirname, '..');
const dist = join(home, 'dist');
const { version } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as { version: string };

const repairs: Plugin = {
  name: 'repairs',
  setup(builder) {
    builder.onLoad({ filter: POSTGRES_CONNECTION }, ({ path }) => ({
      contents: repairPostgres(readFileSync(path, 'utf8')),
      loader: 'js',
    }));
    // Messages in fifty languages that nobody asks for: half a megabyte in memory.
    builder.onLoad({ filter: /zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js';",
      loader: 'js',
    }));
  },
};

/** The text of the thresholds file while it says nothing but the defaults; an edited one is parsed at each start. */
function unchangedThresholds(): string {
  const text = readFileSync(join(home, 'monitor/config/thresholds.yml'), 'utf8');
  return isDeepStrictEqual(parse(text), DEFAULT_THRESHOLDS) ? text : '';
}

// What pages load. Its hash stands in its address, so that a browser keeps it until it changes.
const pages = await build({
  absWorkingDir: home,
  outdir: join(dist, 'pages'),
  entryPoints: { pages: 'functions/pages/browser/page.ts', 'pages-style': 'functions/pages/style/pages.css' },
  bundle: true,
  minify: true,
  write: false,
  format: 'iife',
  target: ['es2022', 'chrome111', 'firefox115', 'safari16.4'],
  legalComments: 'none',
  logLevel: 'warning',
});
const pageFiles = pages.outputFiles.map(({ path, contents }) => ({
  path: join(dist, 'pages', basename(path).replace('-style', '')),
  contents,
}));
const pagesHash = createHash('sha256');
for (const { contents } of pageFiles) pagesHash.update(contents);

const shared: BuildOptions & { write: false } = {
  absWorkingDir: home,
  outdir: dist,
  bundle: true,
  plugins: [repairs],
  write: false,
  format: 'esm',
  loader: { '.sql': 'text' },
  define: {
    HOLDFAST_RELEASE: JSON.stringify(version),
    HOLDFAST_PAGES: JSON.stringify(pagesHash.digest('hex').slice(0, 16)),
    HOLDFAST_THRESHOLDS: JSON.stringify(unchangedThresholds()),
  },
  legalComments: 'none',
  logLevel: 'warning',
};

const onNode: BuildOptions & { write: false } = {
  ...shared,
  platform: 'node',
  target: 'node24',
  external: ['miniflare'],
  banner: {
    js: "import { createRequire as createRequire_ } from 'node:module'; const require = createRequire_(import.meta.url);",
  },
};
const programs = await build({
  ...onNode,
  entryPoints: [
    'scripts/start.ts',
    'scripts/stop.ts',
    'scripts/audit.ts',
    'scripts/renew-ca.ts',
    'scripts/release.ts',
    'scripts/core.ts',
    'scripts/identity.ts',
    'scripts/identity-setup.ts',
    'scripts/dev-workerd.ts',
    'scripts/sync-retention.ts',
    'scripts/configure-core.ts',
    'scripts/container.ts',
    'scripts/answers.ts',
    'scripts/container-proxy.ts',
    'scripts/release-files.ts',
    'scripts/preflight.ts',
    'scripts/prove.ts',
    'scripts/unlock.ts',
    'scripts/reset-password.ts',
    'scripts/rotate-secrets.ts',
    'scripts/support-bundle.ts',
    'scripts/release-core.ts',
  ],
});
// What it imports when it is needed lies in files of its own: their text alone would cost it megabytes. An old one stays for
// the process that still runs the old program.
const management = await build({ ...onNode, entryPoints: ['scripts/management.ts'], splitting: true });
const worker = await build({
  ...shared,
  entryPoints: ['functions/worker.ts'],
  platform: 'neutral',
  mainFields: ['module', 'main'],
  conditions: ['workerd', 'worker', 'module', 'import'],
  external: ['node:*', 'cloudflare:*'],
});
mkdirSync(join(dist, 'pages'), { recursive: true });
writeFileSync(join(dist, 'package.json'), '{ "type": "module" }\n');
for (const file of [...pageFiles, ...management.outputFiles, ...programs.outputFiles, ...worker.outputFiles]) {
  const temporary = join(dirname(file.path), `.${basename(file.path)}.${process.pid}`);
  writeFileSync(temporary, file.contents);
  renameSync(temporary, file.path);
}
