// The dependency rule of the house, and the few habits that a machine can hold.

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '..');
const PARTS = ['functions', 'jobs', 'shared', 'compose', 'scripts', 'bench', 'test'];

/** Which parts a part may import; a missing line means everything (scripts, tests and benchmarks put it all together). */
const MAY_IMPORT: Record<string, string[]> = {
  domain: [],
  ports: ['domain'],
  health: ['ports', 'domain', 'verbs'],
  http: ['domain', 'ports', 'config'],
  config: ['domain'],
  adapters: ['ports', 'domain', 'config'],
  verbs: ['ports', 'domain'],
  functions: ['verbs', 'http', 'health', 'domain', 'ports', 'config'],
  jobs: ['verbs', 'http', 'health', 'domain', 'ports', 'config'],
  runtime: ['adapters', 'config', 'ports', 'http', 'domain'],
  embedded: ['domain', 'ports', 'config'],
  containers: ['embedded', 'domain', 'ports', 'config'],
  'core-configuration': ['embedded', 'domain', 'ports', 'config'],
};

/** Where runtime and functions meet. */
const ENTRIES = ['functions/worker.ts', 'scripts/management.ts'];
const PURE = ['functions', 'jobs', 'health', 'domain'];

function sources(directory: string): string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path) && !path.includes('node_modules/'))
    .map((path) => relative(root, join(directory, path)));
}

function partOf(file: string): string {
  const [top = '', second = ''] = file.split('/');
  if (top === 'shared' || top === 'compose') return second;
  return top;
}

interface Import {
  file: string;
  target: string;
  typeOnly: boolean;
  /** `import()`: loaded when it is reached, not at the start. */
  late: boolean;
}

function importsOf(file: string): Import[] {
  const text = readFileSync(join(root, file), 'utf8');
  return [
    ...text.matchAll(
      /^(?:import|export)\s[^'"]*?['"]([^'"]+)['"]|^import ['"]([^'"]+)['"]|\bimport\(['"]([^'"]+)['"]\)/gm,
    ),
  ].map((match) => ({
    file,
    target: match[1] ?? match[2] ?? match[3] ?? '',
    typeOnly: /^(?:import|export) type /.test(match[0]),
    late: match[3] !== undefined,
  }));
}

const files = PARTS.flatMap((part) => sources(join(root, part)));
const product = files.filter((file) => !file.startsWith('test/') && !file.startsWith('bench/'));
const internal = product
  .flatMap(importsOf)
  .filter(({ target }) => target.startsWith('.'))
  .map(({ file, target, typeOnly, late }) => ({
    file,
    typeOnly,
    late,
    target: relative(root, resolve(root, dirname(file), target)),
  }));

/** What a program loads of ours, itself included; `atStart`: without what it loads late. */
function reachedFrom(entry: string, when: 'atStart' | 'ever'): string[] {
  const reached = new Set([entry]);
  for (const file of reached)
    for (const { target, late } of internal.filter((each) => each.file === file && !each.typeOnly))
      if (/\.tsx?$/.test(target) && (when === 'ever' || !late)) reached.add(target);
  return [...reached];
}

const CERTIFICATE_LIBRARY = /^(@peculiar\/.*|pkijs|asn1js|reflect-metadata)$/;

describe('the house', () => {
  it('finds sources in every part that exists', () => {
    expect(product.length).toBeGreaterThan(40);
    expect(internal.length).toBeGreaterThan(100);
  });

  it('lets each part import only what the dependency rule names', () => {
    const broken = internal.filter(({ file, target }) => {
      const from = partOf(file);
      const to = partOf(target);
      return !ENTRIES.includes(file) && from !== to && MAY_IMPORT[from] !== undefined && !MAY_IMPORT[from].includes(to);
    });
    expect(broken).toEqual([]);
  });

  it('lets functions, jobs, adapters and http take only types of the configuration', () => {
    const values = internal.filter(
      ({ file, target, typeOnly }) =>
        !typeOnly &&
        ['functions', 'jobs', 'adapters', 'http'].includes(partOf(file)) &&
        partOf(target) === 'config' &&
        !ENTRIES.includes(file),
    );
    expect(values).toEqual([]);
  });

  it('keeps what workerd cannot do out of its worker: sockets, files, processes', () => {
    const reached = reachedFrom('functions/worker.ts', 'ever');
    expect(reached.length).toBeGreaterThan(100);
    const bound = reached.flatMap(importsOf).filter(({ target, typeOnly }) => {
      return !typeOnly && /^node:(tls|net|fs|child_process|os|http|https|dns)\b|^ldapts$/.test(target);
    });
    expect(bound).toEqual([]);
  });

  it('loads libraries for certificates into the management process late, if ever: its start and memory are measured', () => {
    const libraries = (when: 'atStart' | 'ever') =>
      reachedFrom('scripts/management.ts', when)
        .flatMap(importsOf)
        .filter(({ target, typeOnly }) => CERTIFICATE_LIBRARY.test(target) && !typeOnly);
    expect(libraries('atStart').filter(({ late }) => !late)).toEqual([]);
    // Enrollment has them, or this would find nothing anywhere.
    expect(libraries('ever').length).toBeGreaterThan(1);
  });

  it("takes into the product only types of the identity provider's own client, which is large", () => {
    const taken = product.flatMap(importsOf).filter(({ target }) => target.startsWith('@goauthentik/'));
    expect(taken.length).toBeGreaterThan(1);
    expect(taken.filter(({ typeOnly }) => !typeOnly)).toEqual([]);
  });

  it('lets runtime and functions meet only in the entries', () => {
    const meeting = product.filter((file) => {
      const targets = internal.filter((each) => each.file === file).map((each) => partOf(each.target));
      return targets.includes('runtime') && targets.includes('functions');
    });
    expect(meeting.filter((file) => !ENTRIES.includes(file))).toEqual([]);
  });

  it('keeps functions, jobs, health and domain free of adapters, node: modules and the environment', () => {
    const impure = product
      .filter((file) => PURE.includes(partOf(file)) && !ENTRIES.includes(file))
      .filter(
        (file) =>
          /process\.env/.test(readFileSync(join(root, file), 'utf8')) ||
          importsOf(file).some(({ target }) => target.startsWith('node:')),
      );
    expect(impure).toEqual([]);
  });

  it('has no source file over 400 lines', () => {
    const long = files.filter((file) => readFileSync(join(root, file), 'utf8').trimEnd().split('\n').length > 400);
    expect(long).toEqual([]);
  });

  it('names no file utils, helpers, manager or common', () => {
    expect(files.filter((file) => /(^|[/-])(utils?|helpers?|manager|common)\.tsx?$/.test(file))).toEqual([]);
  });

  it('begins every source file with what it is', () => {
    const silent = product.filter((file) => !readFileSync(join(root, file), 'utf8').startsWith('// '));
    expect(silent).toEqual([]);
  });

  it('hooks into a test file only from the file itself: what the fast tests import is shared by many of them', () => {
    const shared = files.filter((file) => /^test\/(?!stack\/)/.test(file) && !file.endsWith('.test.ts'));
    expect(shared.length).toBeGreaterThan(10);
    const hooked = shared.filter((file) =>
      /^(?:before|after)(?:All|Each)\(/m.test(readFileSync(join(root, file), 'utf8')),
    );
    expect(hooked).toEqual([]);
  });

  it('pins every dependency to the patch level', () => {
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<
      string,
      Record<string, string>
    >;
    const versions = ['dependencies', 'devDependencies', 'optionalDependencies'].flatMap((kind) =>
      Object.entries(manifest[kind] ?? {}),
    );
    expect(versions.length).toBeGreaterThan(10);
    expect(versions.filter(([, version]) => !/^~\d+\.\d+\.\d+/.test(version))).toEqual([]);
  });

  it('keeps scripts executable and the sourced one not', () => {
    const mode = (file: string): number => statSync(join(root, file)).mode & 0o111;
    expect(
      [
        'scripts/start.sh',
        'scripts/stop.sh',
        'scripts/audit.sh',
        'scripts/renew-ca.sh',
        'scripts/test.sh',
        '.ci/run',
      ].filter((file) => mode(file) === 0),
    ).toEqual([]);
  });
});
