// Reads the house as a graph: its files, their imports, folders and functions. `npm run house` prints the figures.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { parseAst } from 'rolldown/parseAst';

export const ROOT = resolve(import.meta.dirname, '..');

/** Features of `shared`, lowest first: each imports only those before it. */
export const FEATURES = [
  'settings',
  'host',
  'audit',
  'jobs',
  'sign-in',
  'identity',
  'core',
  'devices',
  'people',
  'feeds',
  'retention',
  'database',
  'backups',
  'simulation',
  'alerts',
  'health',
  'http',
  'runtime',
];
/** Packages, lowest first: each imports only those before it, through their entry points. */
export const PACKAGES = ['kit', 'pki', 'core', 'identity', 'backup', 'stack', 'setup'];
const PARTS = ['functions', 'jobs', 'shared', 'packages', 'compose', 'scripts', 'bench', 'test'];

export interface Import {
  file: string;
  /** As it is written. */
  specifier: string;
  /** The file of ours that it leads to, from the root; undefined for a library. */
  target: string | undefined;
  typeOnly: boolean;
  /** `import()`: loaded when it is reached, not at the start. */
  late: boolean;
}

export const textOf = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
export const linesOf = (file: string): number => textOf(file).trimEnd().split('\n').length;

function sources(directory: string): string[] {
  if (!existsSync(join(ROOT, directory))) return [];
  return readdirSync(join(ROOT, directory), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path) && !path.includes('node_modules/'))
    .map((path) => join(directory, path))
    .toSorted();
}

export const files = PARTS.flatMap(sources);
/** What ships: neither tests nor benchmarks. */
export const product = files.filter((file) => !/^(test|bench)\/|^packages\/[^/]+\/test\//.test(file));

/** Entry points of the packages: specifier to file. */
export const entryPoints = new Map(
  PACKAGES.flatMap((name) => {
    const { exports } = JSON.parse(textOf(`packages/${name}/package.json`)) as { exports: Record<string, string> };
    return Object.entries(exports).map(([entry, file]) => [
      join(`@holdfast/${name}`, entry),
      join('packages', name, file),
    ]);
  }),
);

export function importsOf(file: string): Import[] {
  const found = textOf(file).matchAll(
    /^(?:import|export)\s[^'"]*?['"]([^'"]+)['"]|^import ['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)/gm,
  );
  return [...found].map((match) => {
    const specifier = match[1] ?? match[2] ?? match[3] ?? '';
    return {
      file,
      specifier,
      target: specifier.startsWith('.') ? join(dirname(file), specifier) : entryPoints.get(specifier),
      typeOnly: /^(?:import|export) type /.test(match[0]),
      late: match[3] !== undefined,
    };
  });
}

export const imports = new Map(files.map((file) => [file, importsOf(file)]));

/** What a program loads of ours, itself included; `atStart`: without what it loads late. */
export function reachedFrom(entry: string, when: 'atStart' | 'ever'): string[] {
  const reached = new Set([entry]);
  for (const file of reached)
    for (const { target, late, typeOnly } of imports.get(file) ?? [])
      if (target !== undefined && /\.tsx?$/.test(target) && !typeOnly && (when === 'ever' || !late))
        reached.add(target);
  return [...reached];
}

/** `packages/core/stream` of `packages/core/stream/wire/scan.ts` at depth 3. */
export const folderOf = (file: string): string => dirname(file);

/** Circles of folders of the product, each as a sorted list of its folders. */
export function circles(): string[][] {
  const edges = new Map<string, Set<string>>();
  for (const file of product.filter((each) => !/^(functions|scripts)\//.test(each)))
    for (const { target } of imports.get(file) ?? []) {
      if (target === undefined || folderOf(target) === folderOf(file) || target.startsWith('functions/')) continue;
      const to = edges.get(folderOf(file)) ?? new Set();
      edges.set(folderOf(file), to.add(folderOf(target)));
    }
  const reach = (from: string): Set<string> => {
    const seen = new Set<string>();
    const open = [from];
    for (const folder of open)
      for (const to of edges.get(folder) ?? [])
        if (!seen.has(to)) {
          seen.add(to);
          open.push(to);
        }
    return seen;
  };
  const reached = new Map([...edges.keys()].map((folder) => [folder, reach(folder)]));
  const found = new Map<string, string[]>();
  for (const [folder, all] of reached) {
    const circle = [...all].filter((other) => reached.get(other)?.has(folder) === true).toSorted();
    if (circle.length > 1) found.set(circle.join(), circle);
  }
  return [...found.values()];
}

interface Node {
  type: string;
  start: number;
  end: number;
}

/** Lines of every function, method and arrow function with a body of its own. */
export function functionLengths(file: string): number[] {
  const text = textOf(file);
  const lengths: number[] = [];
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) return node.forEach(visit);
    if (typeof node !== 'object' || node === null) return;
    const { type, start, end } = node as Node;
    if (/^(Function(Declaration|Expression)|ArrowFunctionExpression)$/.test(type)) {
      const lines = text.slice(start, end).split('\n').length;
      if (lines > 1) lengths.push(lines);
    }
    Object.values(node).forEach(visit);
  };
  visit(parseAst(text, { lang: file.endsWith('x') ? 'tsx' : 'ts' }).body);
  return lengths;
}

const at = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;

function spread(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  return `${at(sorted, 0.5)} / ${at(sorted, 0.9)} / ${sorted.at(-1) ?? 0}`;
}

/** How many files of the product lie in each folder, most first. */
export function folderSizes(): [string, number][] {
  const counts = new Map<string, number>();
  for (const file of product) counts.set(folderOf(file), (counts.get(folderOf(file)) ?? 0) + 1);
  return [...counts].toSorted((a, b) => b[1] - a[1]);
}

/** Test files outside of `test/e2e` that stand in no folder of a feature, a package or a part of the product. */
export function homelessTests(): string[] {
  const homes = [...FEATURES, 'functions', 'jobs', 'scripts', 'compose', 'docs', 'pages', 'support', 'packages'];
  return files.filter((file) => {
    const [top, folder = ''] = file.split('/');
    return top === 'test' && folder !== 'e2e' && !homes.includes(folder);
  });
}

export function figures(): [string, string, string][] {
  const lines = product.map(linesOf);
  const small = lines.filter((each) => each <= 40).length;
  const large = folderSizes().filter(([, count]) => count > 25);
  const most = folderSizes()[0]?.[1] ?? 0;
  return [
    ['production files', String(product.length), 'at most 650'],
    ['production lines', String(lines.reduce((sum, each) => sum + each, 0)), 'at most 84,000'],
    ['file median / p90 / longest', spread(lines), '100-140 / 280 / 350'],
    ['files of 40 lines or fewer', `${((100 * small) / lines.length).toFixed(1)} % (${small})`, 'at most 8 %'],
    ['folders with more than 25 files', `${large.length} (largest ${most})`, 'at most 2, none above 45'],
    ['circles between folders', String(circles().length), '0'],
    ['functions median / p90 / longest', spread(product.flatMap(functionLengths)), '9 / 30 / 80'],
    ['test files', String(files.filter((file) => file.includes('.test.')).length), ''],
    ['test files without a home', String(homelessTests().length), 'at most 40'],
  ];
}

if (process.argv[1] !== undefined && relative(import.meta.filename, process.argv[1]) === '') {
  const rows = figures();
  const wide = Math.max(...rows.map(([name]) => name.length));
  for (const [name, value, goal] of rows) process.stdout.write(`${name.padEnd(wide)}  ${value.padEnd(22)} ${goal}\n`);
}
