// The workflows of GitHub and the configuration of Renovate: checked by actionlint, free of logic, and blind to no image.

import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';

const root = resolve(import.meta.dirname, '../..');
const text = (path: string): string => readFileSync(join(root, path), 'utf8');
const workflows = globSync('.github/workflows/*.yml', { cwd: root }).toSorted();

interface Step {
  run?: string;
  uses?: string;
}
interface Workflow {
  permissions: Record<string, string>;
  jobs: Record<string, { 'timeout-minutes'?: number; steps: Step[] }>;
}

const version = spawnSync('actionlint', ['-version'], { encoding: 'utf8' });
const obstacle = version.error === undefined ? '' : 'there is no actionlint: .ci/run builds it';

describe.skipIf(obstacle !== '')(obstacle === '' ? 'workflows' : `workflows: ${obstacle}`, () => {
  it('give actionlint nothing to say', () => {
    const { status, stdout } = spawnSync('actionlint', ['-no-color', ...workflows], { cwd: root, encoding: 'utf8' });
    expect([status, stdout]).toEqual([0, '']);
  });
});

describe('each workflow', () => {
  it.each(workflows)('%s may write only what a job asks for, ends in time, and calls scripts', (path) => {
    const { permissions, jobs } = parse(text(path)) as Workflow;
    expect(permissions).toEqual({ contents: 'read' });
    for (const job of Object.values(jobs)) {
      expect(job['timeout-minutes']).toBeGreaterThan(0);
      for (const { run = '' } of job.steps) {
        expect(run.trim()).not.toContain('\n');
        expect(run).not.toMatch(/\$\{\{|\bif\b|\bfor\b|\bcurl\b/);
      }
    }
  });

  it('of a release builds twice and proves before it publishes', () => {
    const { jobs } = parse(text('.github/workflows/release.yml')) as Workflow;
    const verbs = (jobs['publish']?.steps ?? []).flatMap(({ run = '' }) => /release\.sh (\w+)/.exec(run)?.[1] ?? []);
    expect(verbs).toEqual(['reproduce', 'prove', 'publish', 'tag']);
  });

  it('is known to the documentation', () => {
    const [, table = ''] = /## Workflows\n([^]*)$/.exec(text('docs/releases.md')) ?? [];
    const named = [...table.matchAll(/^\| `([a-z-]+)` /gm)].map(([, name]) => `.github/workflows/${name}.yml`);
    expect(named.toSorted()).toEqual(workflows);
  });
});

/** What renovate.json uses of Renovate's own schema, so that no misspelled option is passed over in silence. */
const words = z.string().min(1);
const RENOVATE = z.strictObject({
  $schema: z.literal('https://docs.renovatebot.com/renovate-schema.json'),
  extends: z.array(z.enum(['config:best-practices', ':semanticCommits'])),
  minimumReleaseAge: z.string().regex(/^\d+ days$/),
  rangeStrategy: z.enum(['auto', 'pin', 'bump', 'replace', 'widen', 'update-lockfile', 'in-range-only']),
  schedule: z.array(words),
  'docker-compose': z.strictObject({ enabled: z.boolean() }),
  customManagers: z.array(
    z.strictObject({
      description: words,
      customType: z.literal('regex'),
      managerFilePatterns: z.array(z.string().regex(/^\/.*\/$/)).min(1),
      matchStrings: z.array(words).min(1),
      autoReplaceStringTemplate: words.optional(),
      datasourceTemplate: z.enum(['docker', 'github-tags']),
    }),
  ),
  packageRules: z.array(
    z.strictObject({
      description: words,
      matchPackageNames: z.array(words).min(1),
      matchUpdateTypes: z.array(z.enum(['major', 'minor', 'patch', 'pin', 'digest'])).optional(),
      groupName: words.optional(),
      allowedVersions: words.optional(),
      enabled: z.boolean().optional(),
    }),
  ),
});

describe('Renovate', () => {
  it('finds only options that it knows in its configuration', () => {
    expect(RENOVATE.safeParse(JSON.parse(text('renovate.json'))).error).toBeUndefined();
  });

  interface CustomManager {
    managerFilePatterns: string[];
    matchStrings: string[];
    autoReplaceStringTemplate?: string;
  }
  const { customManagers } = JSON.parse(text('renovate.json')) as { customManagers: CustomManager[] };
  const find = (path: string): Record<string, string>[] =>
    customManagers
      .filter(({ managerFilePatterns }) =>
        managerFilePatterns.some((pattern) => new RegExp(pattern.slice(1, -1)).test(path)),
      )
      .flatMap(({ matchStrings }) => matchStrings)
      .flatMap((pattern) => [...text(path).matchAll(new RegExp(pattern, 'g'))].map(({ groups }) => ({ ...groups })));

  it('finds every image of others, and our own base image by its Dockerfile', () => {
    const images = parse(text('compose/compose.yaml'), { merge: true }) as { 'x-images': Record<string, string> };
    const foreign = Object.values(images['x-images']).filter((image) => !image.startsWith('localhost/'));
    expect(foreign.length).toBe(5);
    const found = find('compose/compose.yaml').map(({ depName, currentValue, currentDigest }) =>
      [`${depName}:${currentValue}`, ...(currentDigest === undefined ? [] : [currentDigest])].join('@'),
    );
    expect(found).toEqual(foreign);
    expect(text('compose/management/Dockerfile')).toMatch(/^ARG BASE=\S+\n\n(?:.|\n)*^FROM (?:\S+ )?\$\{BASE\}/m);
  });

  it('can write a digest into the one place of each image, and finds the image again', () => {
    const manager = customManagers.find(({ managerFilePatterns: [first = ''] }) => first.includes('compose'));
    const pattern = new RegExp(manager?.matchStrings[0] ?? '', 'g');
    const digest = `sha256:${'0f'.repeat(32)}`;
    // As Renovate fills it in.
    const pinned = text('compose/compose.yaml').replace(pattern, (...found) => {
      const { currentValue, ...of } = found.at(-1) as Record<string, string>;
      const fields: Record<string, string | undefined> = { ...of, newValue: currentValue, newDigest: digest };
      return (manager?.autoReplaceStringTemplate ?? '')
        .replaceAll(/\{\{#if \w+\}\}|\{\{\/if\}\}/g, '')
        .replaceAll(/\{\{\{(\w+)\}\}\}/g, (_, name: string) => fields[name] ?? '');
    });
    const images = (of: string): string[] =>
      Object.values((parse(of, { merge: true }) as { 'x-images': Record<string, string> })['x-images']);
    expect(images(pinned)).toEqual(
      images(text('compose/compose.yaml')).map((image) =>
        image.startsWith('localhost/') ? image : `${image}@${digest}`,
      ),
    );
    expect([...pinned.matchAll(pattern)].map(({ groups }) => groups?.['currentDigest'])).toEqual(
      Array.from({ length: 5 }, () => digest),
    );
  });

  it('reads every pattern with RE2, which looks neither ahead nor back', () => {
    const patterns = customManagers.flatMap(({ matchStrings }) => matchStrings);
    expect(patterns.filter((pattern) => /\(\?<?[=!]|\\[1-9]|\\k</.test(pattern))).toEqual([]);
  });

  it('finds every Go program of the tests', () => {
    const installed = [...text('scripts/test-tools.sh').matchAll(/github\.com\/\S+@v\S+/g)].map(([name]) => name);
    expect(installed.length).toBeGreaterThan(1);
    expect(find('scripts/test-tools.sh').map(({ depName, currentValue }) => `${depName}@${currentValue}`)).toEqual(
      installed,
    );
  });
});
