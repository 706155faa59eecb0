// Holds the house to its rules: who may import whom, how large folders and files are, and what a machine can see of habits.

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  circles,
  entryPoints,
  FEATURES,
  files,
  folderOf,
  folderSizes,
  functionLengths,
  homelessTests,
  type Import,
  imports,
  linesOf,
  PACKAGES,
  product,
  reachedFrom,
  ROOT,
  textOf,
} from './house.ts';

/** What breaks a rule today, in one place: nothing may be added, and it is emptied as the house is put in order. */
const BROKEN_TODAY = {
  smallFilesPercent: 11,
};

const LIMITS = { fileLines: 350, testLines: 400, functionLines: 80 };
/** Where runtime and functions meet. */
const ENTRIES = ['functions/worker.ts', 'scripts/management.ts'];

const featureOf = (file: string): string | undefined => /^shared\/([^/]+)\//.exec(file)?.[1];
const packageOf = (file: string): string | undefined => /^packages\/([^/]+)\//.exec(file)?.[1];
const edges = product.flatMap((file) => imports.get(file) ?? []);
const inside = edges.filter((edge): edge is Import & { target: string } => edge.target !== undefined);
const words = ({ file, target, specifier }: Import): string => `${file} -> ${target ?? specifier}`;

/** Node's modules that reach outside of the process. */
const OUTSIDE = /^(node:(?!util$|path$|crypto$|buffer$|url$)|ldapts|undici|nodemailer|resend|miniflare|postgres$)/;

/** Files of `shared` and `kit` that reach an outside system by a library, and those of the same folder tree that use them. */
function adapters(): Set<string> {
  const found = new Set(
    product.filter((file) =>
      (imports.get(file) ?? []).some((each) => !each.typeOnly && !each.target && OUTSIDE.test(each.specifier)),
    ),
  );
  const place = (file: string): string => file.split('/').slice(0, 2).join('/');
  for (let before = -1; before !== found.size;) {
    before = found.size;
    for (const { file, target, typeOnly } of inside)
      if (!typeOnly && found.has(target) && (place(file) === place(target) || target.startsWith('packages/kit/')))
        if (/^(shared|packages\/kit)\//.test(file) && featureOf(file) !== 'runtime') found.add(file);
  }
  return found;
}

describe('the house', () => {
  it('is found: sources, imports, entry points of the packages', () => {
    expect(product.length).toBeGreaterThan(400);
    expect(inside.length).toBeGreaterThan(2000);
    expect(entryPoints.size).toBeGreaterThan(40);
  });

  it('lets a feature import only features below it', () => {
    const above = inside.filter(({ file, target }) => {
      const [from, to] = [featureOf(file), featureOf(target)];
      return from !== undefined && to !== undefined && FEATURES.indexOf(to) > FEATURES.indexOf(from);
    });
    expect(above.map(words)).toEqual([]);
    const known = new Set([...FEATURES, undefined]);
    expect(product.filter((file) => file.startsWith('shared/') && !known.has(featureOf(file)))).toEqual([]);
  });

  it('lets a package import only packages below it, and enters each by an entry point', () => {
    const wrong = inside.filter(({ file, target, specifier }) => {
      const [from, to] = [packageOf(file), packageOf(target)];
      if (to === undefined || from === to) return false;
      if (specifier.startsWith('.')) return true;
      return from !== undefined && PACKAGES.indexOf(to) > PACKAGES.indexOf(from);
    });
    expect(wrong.map(words)).toEqual([]);
    expect(edges.filter(({ specifier, target }) => specifier.startsWith('@holdfast/') && !target).map(words)).toEqual(
      [],
    );
  });

  it('keeps the product and the stand-ins apart: they talk over their protocols', () => {
    const wrong = inside.filter(({ file, target }) => {
      const isProduct = /^(functions|jobs|shared)\//.test(file);
      const isStandIn = /^packages\/(kit|pki|core|identity)\//.test(file);
      return (isProduct && /^packages\/(?!kit\/|pki\/)/.test(target)) || (isStandIn && !target.startsWith('packages/'));
    });
    expect(wrong.map(words)).toEqual([]);
  });

  it('has no circle between folders', () => {
    expect(circles()).toEqual([]);
  });

  it('has no TypeScript in compose', () => {
    expect(files.filter((file) => file.startsWith('compose/'))).toEqual([]);
  });

  it('keeps functions, jobs, rules and health modules free of adapters, node: modules and the environment', () => {
    const outside = adapters();
    expect(outside.size).toBeGreaterThan(30);
    const pure = product.filter(
      (file) =>
        /^(functions|jobs)\/|^shared\/(.*\/)?rules\.ts$|^shared\/health\/modules\//.test(file) &&
        !ENTRIES.includes(file),
    );
    const impure = pure.filter(
      (file) =>
        /process\.env/.test(textOf(file)) ||
        (imports.get(file) ?? []).some(
          ({ specifier, target, typeOnly }) =>
            specifier.startsWith('node:') ||
            (!typeOnly && target !== undefined && outside.has(target) && featureOf(target)),
        ),
    );
    expect(impure).toEqual([]);
  });

  it("never lets a feature import another feature's adapter; the runtime puts them together", () => {
    const outside = adapters();
    const wrong = inside.filter(
      ({ file, target, typeOnly }) =>
        !typeOnly &&
        featureOf(file) !== undefined &&
        featureOf(file) !== 'runtime' &&
        featureOf(target) !== undefined &&
        featureOf(target) !== featureOf(file) &&
        outside.has(target),
    );
    expect(wrong.map(words)).toEqual([]);
  });

  it('lets runtime and functions meet only in the entries', () => {
    const meeting = product.filter((file) => {
      const targets = (imports.get(file) ?? []).map(({ target = '' }) => target);
      return (
        targets.some((target) => target.startsWith('shared/runtime/')) &&
        targets.some((target) => target.startsWith('functions/'))
      );
    });
    expect(meeting.filter((file) => !ENTRIES.includes(file))).toEqual([]);
  });

  it('keeps what workerd cannot do out of its worker: sockets, files, processes', () => {
    const reached = reachedFrom('functions/worker.ts', 'ever');
    expect(reached.length).toBeGreaterThan(100);
    const bound = reached
      .flatMap((file) => imports.get(file) ?? [])
      .filter(
        ({ specifier, typeOnly }) =>
          !typeOnly && /^node:(tls|net|fs|child_process|os|http|https|dns)\b|^ldapts$/.test(specifier),
      );
    expect(bound.map(words)).toEqual([]);
  });

  it('loads libraries for certificates into the management process late, if ever: its start and memory are measured', () => {
    const libraries = (when: 'atStart' | 'ever'): Import[] =>
      reachedFrom('scripts/management.ts', when)
        .flatMap((file) => imports.get(file) ?? [])
        .filter(
          ({ specifier, typeOnly }) => /^(@peculiar\/.*|pkijs|asn1js|reflect-metadata)$/.test(specifier) && !typeOnly,
        );
    expect(
      libraries('atStart')
        .filter(({ late }) => !late)
        .map(words),
    ).toEqual([]);
    // Enrollment has them, or this would find nothing anywhere.
    expect(libraries('ever').length).toBeGreaterThan(1);
  });

  it("takes into the product only types of the identity provider's own client, which is large", () => {
    const taken = edges.filter(({ specifier }) => specifier.startsWith('@goauthentik/'));
    expect(taken.length).toBeGreaterThan(1);
    expect(taken.filter(({ typeOnly }) => !typeOnly).map(words)).toEqual([]);
  });

  // It parses every file of the product.
  it('keeps files, functions and folders within the limits', { timeout: 60_000 }, () => {
    expect(product.filter((file) => linesOf(file) > LIMITS.fileLines)).toEqual([]);
    expect(files.filter((file) => linesOf(file) > LIMITS.testLines)).toEqual([]);
    const lengths = product.flatMap((file) => functionLengths(file).map((length) => ({ file, length })));
    expect(lengths.filter(({ length }) => length > LIMITS.functionLines)).toEqual([]);
    const small = product.filter((file) => linesOf(file) <= 40).length;
    expect((100 * small) / product.length).toBeLessThanOrEqual(BROKEN_TODAY.smallFilesPercent);
    // One entry for each program: a list, not a place to look for code.
    const large = folderSizes().filter(([folder, count]) => count > (folder === 'scripts' ? 45 : 25));
    expect(large).toEqual([]);
    const entries = product.filter((file) => folderOf(file) === 'scripts' && linesOf(file) > 40);
    expect(entries).toEqual([]);
  });

  it('gives every test a home: the feature, the package or the part that it tests', () => {
    expect(homelessTests().toSorted()).toEqual([
      'test/architecture.test.ts',
      'test/house.ts',
      'test/summary-reporter.ts',
    ]);
  });

  it('names no file utils, helpers, manager or common', () => {
    expect(files.filter((file) => /(^|[/-])(utils?|helpers?|manager|common)\.tsx?$/.test(file))).toEqual([]);
  });

  it('begins every source file with what it is', () => {
    expect(product.filter((file) => !textOf(file).startsWith('// '))).toEqual([]);
  });

  it('hooks into a test file only from the file itself: what the fast tests import is shared by many of them', () => {
    const shared = files.filter(
      (file) => /^(test\/(?!e2e\/)|packages\/[^/]+\/test\/)/.test(file) && !file.endsWith('.test.ts'),
    );
    expect(shared.length).toBeGreaterThan(10);
    expect(shared.filter((file) => /^(?:before|after)(?:All|Each)\(/m.test(textOf(file)))).toEqual([]);
  });

  it('pins every dependency to the patch level, in the root and in every package', () => {
    const manifests = ['package.json', ...PACKAGES.map((name) => `packages/${name}/package.json`)];
    const versions = manifests.flatMap((path) => {
      const manifest = JSON.parse(textOf(path)) as Record<string, Record<string, string>>;
      return ['dependencies', 'devDependencies', 'optionalDependencies'].flatMap((kind) =>
        Object.entries(manifest[kind] ?? {}),
      );
    });
    expect(versions.length).toBeGreaterThan(30);
    const loose = versions.filter(
      ([name, version]) => !name.startsWith('@holdfast/') && !/^(?:npm:[^~]*@)?~\d+\.\d+\.\d+/.test(version),
    );
    expect(loose).toEqual([]);
  });

  it('describes every package in a README of at most 60 lines', () => {
    const fits = (name: string): boolean => {
      const file = join(ROOT, 'packages', name, 'README.md');
      return existsSync(file) && readFileSync(file, 'utf8').trimEnd().split('\n').length <= 60;
    };
    expect(PACKAGES.filter((name) => !fits(name))).toEqual([]);
  });

  it('has no folder in scripts: an upgrade from an older version copies files alone', () => {
    const entries = readdirSync(join(ROOT, 'scripts'), { withFileTypes: true });
    expect(entries.filter((entry) => !entry.isFile()).map(({ name }) => name)).toEqual([]);
  });

  it('keeps scripts executable and the sourced one not', () => {
    const mode = (file: string): number => statSync(join(ROOT, file)).mode & 0o111;
    expect(
      [
        'scripts/start.sh',
        'scripts/stop.sh',
        'scripts/audit.sh',
        'scripts/renew-ca.sh',
        'scripts/test.sh',
        'scripts/verify.sh',
        '.ci/run',
      ].filter((file) => mode(file) === 0),
    ).toEqual([]);
  });
});
