// Bundles the programs of Holdfast into dist/. Replaces each file atomically, so that a program
// that starts meanwhile reads a complete old or new file.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { build, type BuildOptions, type OutputFile, type Plugin } from 'esbuild';
import { parse } from 'yaml';
import { DEFAULT_THRESHOLDS } from '../../shared/settings/status.ts';
import { mapOutlines } from './outlines.ts';
import { POSTGRES_CONNECTION, repairPostgres } from './repair-postgres.ts';

type Options = BuildOptions & { write: false };

interface Output {
  path: string;
  contents: Uint8Array;
}

/** Entry files in scripts/. What they share or import dynamically is in files of its own. */
const PROGRAMS = [
  'audit',
  'backup',
  'backup-service',
  'configure-core',
  'container',
  'container-backup',
  'container-backup-service',
  'container-proxy',
  'core',
  'dev-workerd',
  'emergency-sheet',
  'identity',
  'identity-setup',
  'management',
  'preflight',
  'prove',
  'prove-backup',
  'release-core',
  'release-files',
  'renew-ca',
  'reset-password',
  'rotate-secrets',
  'simulate',
  'start',
  'stop',
  'support-bundle',
  'sync-retention',
  'unlock',
];
/** Each in one file: it is copied away to run, or started every few seconds. */
const SINGLE_FILES = ['answers', 'release', 'upgrade'];

const repairs: Plugin = {
  name: 'repairs',
  setup(builder) {
    builder.onLoad({ filter: POSTGRES_CONNECTION }, ({ path }) => ({
      contents: repairPostgres(readFileSync(path, 'utf8')),
      loader: 'js',
    }));
    // Leaves out zod's messages in fifty languages: half a megabyte of memory.
    builder.onLoad({ filter: /zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js';",
      loader: 'js',
    }));
  },
};

/** Importing node:http reads its `WebSocket`, which loads undici: 40 ms of each process. */
const lazyHttp: Plugin = {
  name: 'lazy-http',
  setup(builder) {
    builder.onResolve({ filter: /^(?:node:)?http$/ }, () => ({ path: 'http', namespace: 'builtin' }));
    builder.onLoad({ filter: /^http$/, namespace: 'builtin' }, () => ({
      contents: "module.exports = process.getBuiltinModule('node:http');",
      loader: 'js',
    }));
  },
};

/** `home` is the root of the repository. */
export async function buildPrograms(home: string): Promise<void> {
  const dist = join(home, 'dist');
  const pages = await bundledPages(home, dist);
  const shared = sharedOptions(home, dist, pages);
  const onNode: Options = {
    ...shared,
    plugins: [repairs, lazyHttp],
    platform: 'node',
    target: 'node24',
    external: ['miniflare'],
    banner: {
      js: "import { createRequire as createRequire_ } from 'node:module'; const require = createRequire_(import.meta.url);",
    },
  };
  const entryPoints = (names: readonly string[]): string[] => names.map((name) => `scripts/${name}.ts`);
  // Loading all dynamic imports would cost megabytes. Old files stay for processes that still run
  // the old program.
  const programs = await build({ ...onNode, entryPoints: entryPoints(PROGRAMS), splitting: true });
  const single = await build({ ...onNode, entryPoints: entryPoints(SINGLE_FILES) });
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
  // A program comes after the parts that it imports.
  const isProgram = ({ path }: Output): boolean => PROGRAMS.includes(basename(path, '.js'));
  const [started = [], parts = []] = [true, false].map((is) =>
    programs.outputFiles.filter((file) => isProgram(file) === is),
  );
  const outputs = [...pages, ...parts, ...started, ...single.outputFiles, ...worker.outputFiles];
  for (const { path, contents } of outputs) {
    const temporary = join(dirname(path), `.${basename(path)}.${process.pid}`);
    writeFileSync(temporary, contents);
    renameSync(temporary, path);
  }
}

/** Scripts and style of the pages, and the outlines of the map. */
async function bundledPages(home: string, dist: string): Promise<Output[]> {
  const outputFiles = await bundledForBrowsers(home, {
    map: 'functions/pages/browser/map/map.ts',
    pages: 'functions/pages/browser/page.ts',
    'pages-style': 'functions/pages/style/pages.css',
  });
  const files = outputFiles.map(({ path, contents }) => ({
    path: join(dist, 'pages', basename(path).replace('-style', '')),
    contents,
  }));
  const outlines = new TextEncoder().encode(mapOutlines(home));
  return [...files, { path: join(dist, 'pages', 'outlines.json'), contents: outlines }];
}

/** Paths from `home` by the name of what they become: plain scripts and styles. */
export async function bundledForBrowsers(home: string, entryPoints: Record<string, string>): Promise<OutputFile[]> {
  const { outputFiles } = await build({
    absWorkingDir: home,
    outdir: join(home, 'dist'),
    entryPoints,
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: ['es2022', 'chrome111', 'firefox115', 'safari16.4'],
    legalComments: 'none',
    logLevel: 'warning',
  });
  return outputFiles;
}

function sharedOptions(home: string, dist: string, pages: readonly Output[]): Options {
  const { version, repository } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as {
    version: string;
    repository?: unknown;
  };
  // Part of the URLs that pages load, so that browsers cache them until they change.
  const pagesHash = createHash('sha256');
  for (const { contents } of pages) pagesHash.update(contents);
  return {
    absWorkingDir: home,
    outdir: dist,
    bundle: true,
    plugins: [repairs],
    write: false,
    format: 'esm',
    loader: { '.sql': 'text' },
    define: {
      HOLDFAST_RELEASE: JSON.stringify(version),
      HOLDFAST_REPOSITORY: JSON.stringify(githubRepository(repository)),
      HOLDFAST_PAGES: JSON.stringify(pagesHash.digest('hex').slice(0, 16)),
      HOLDFAST_THRESHOLDS: JSON.stringify(unchangedThresholds(home)),
      HOLDFAST_IMAGES: JSON.stringify(pinnedImages(home)),
    },
    legalComments: 'none',
    logLevel: 'warning',
  };
}

/** OWNER/REPOSITORY in the `repository` of a package.json; empty if it names none at GitHub. */
export function githubRepository(repository: unknown): string {
  const url =
    typeof repository === 'object' && repository !== null && 'url' in repository ? repository.url : repository;
  const [, found = ''] =
    /^(?:github:|(?:git\+)?(?:https|ssh):\/\/(?:git@)?github\.com\/|git@github\.com:)?([\w-][\w.-]*\/[\w.-]+?)(?:\.git)?$/.exec(
      typeof url === 'string' ? url : '',
    ) ?? [];
  return found;
}

/** The images of compose.yaml: the stack in containers runs them. */
export function pinnedImages(home: string): Record<string, string> {
  const compose = parse(readFileSync(join(home, 'compose/compose.yaml'), 'utf8')) as {
    'x-images': Record<string, string>;
  };
  return compose['x-images'];
}

/**
 * The thresholds file, if it holds the defaults; empty if it was edited, so that each start parses
 * it.
 */
function unchangedThresholds(home: string): string {
  const text = readFileSync(join(home, 'monitor/config/thresholds.yml'), 'utf8');
  return isDeepStrictEqual(parse(text), DEFAULT_THRESHOLDS) ? text : '';
}
