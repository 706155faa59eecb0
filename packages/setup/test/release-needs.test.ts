// What a release needs is read from its files, and one that is not known is refused with what is
// unknown about it.

import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { zipArchive } from '../../../test/support/zip-archive.ts';
import { checkNeeds, readNeeds, schemaNumber } from '../archive/needs.ts';
import { type KnownNeeds } from '../archive/needs.ts';
import { withRelease } from '../archive/reading.ts';
import { type MadeUpRelease, madeUpRelease } from './release-archive.ts';

const made: string[] = [];
afterEach(() => {
  for (const path of made.splice(0)) rmSync(dirname(path), { recursive: true });
});

async function needsOf(options: MadeUpRelease): Promise<KnownNeeds> {
  const path = madeUpRelease(options);
  made.push(path);
  return withRelease(path, async (_, { needs }) => needs);
}

const database = (dockerfile: string, script = ''): ReturnType<typeof readNeeds> =>
  readNeeds({ coreDockerfile: 'core', databaseDockerfile: 'database' }, async (path) =>
    path === 'database' ? Buffer.from(dockerfile) : path.endsWith('.sh') ? Buffer.from(script) : undefined,
  );

describe('the needs of a release', () => {
  it.each([
    [{}, { postgres: 15, schema: 99, java: 17 }],
    [{ variant: 'hardened' as const }, { postgres: 15, schema: 99, java: 17 }],
    [{ version: '5.8-RELEASE-69' }, { postgres: 18, schema: 106, java: 17 }],
    [
      { version: '5.8-RELEASE-69', variant: 'hardened' as const },
      { postgres: 18, schema: 106, java: 17 },
    ],
    // By what they need, not by their names.
    [
      { version: '5.7-RELEASE-99', needs: { postgres: 18, schema: 107 } },
      { postgres: 18, schema: 107, java: 17 },
    ],
    [
      { version: '5.8-RELEASE-1', needs: { postgres: 15, schema: 104 } },
      { postgres: 15, schema: 104, java: 17 },
    ],
  ])('of %j are %j', async (options, needs) => {
    expect(await needsOf(options)).toEqual(needs);
  });

  it.each([
    ['FROM postgres:18.1-trixie', [18]],
    ['FROM docker.io/library/postgres:18 AS base', [18]],
    ['ARG BASE_IMAGE=ironbank/opensource/postgres/postgresql\nARG BASE_TAG=18.3\nFROM ${BASE_IMAGE}:${BASE_TAG}', [18]],
    ['FROM rockylinux:9\nRUN dnf install -y postgis36_18 postgresql18-server', [18]],
    ['FROM debian:13\n# once postgresql-15-postgis-3\nRUN apt-get install -y postgresql-18-postgis-3', [18]],
    ['FROM debian:13\nENV PG_MAJOR=18', [18]],
    ['FROM debian:13', []],
    ['FROM postgres:18\nRUN apt-get install -y postgresql-15', [15, 18]],
  ])('name the PostgreSQL of %j', async (dockerfile, majors) => {
    expect((await database(dockerfile)).postgres).toEqual(majors);
  });

  it('are decided by the script where an image has an older PostgreSQL too', async () => {
    const { postgres } = await database(
      'FROM postgres:18\nRUN apt-get install -y postgresql-15',
      '#!/bin/bash\nPGVER=18\n',
    );
    expect(postgres).toEqual([18]);
  });

  it('have a schema if the tool is a jar with numbered migrations', async () => {
    const names = ['db/migration/V9__a.sql', 'db/migration/V106__b.sql', 'db/migration/R__c.sql', 'x/V300__d.sql'];
    expect(await schemaNumber(zipArchive(names.map((name) => ({ name, bytes: '' }))))).toBe(106);
    expect(await schemaNumber(zipArchive([{ name: 'a', bytes: '' }]))).toBeUndefined();
    expect(await schemaNumber(Buffer.from('no jar'))).toBeUndefined();
  });
});

describe('a release that is not known', () => {
  it.each<[MadeUpRelease, string]>([
    [
      { version: '5.9-RELEASE-3', needs: { postgres: 18, schema: 112 } },
      '(TAK Server 5.9-RELEASE-3) is newer than the releases that this Holdfast knows: 5.0 to 5.7, 5.8. Nothing was changed.',
    ],
    [
      { version: '5.8-RELEASE-69', needs: { postgres: 17 } },
      "(TAK Server 5.8-RELEASE-69) needs PostgreSQL 17 with schema 106, which this Holdfast doesn't know. Known: PostgreSQL 15 with schema 80 to 105, PostgreSQL 18 with schema 106 or newer.",
    ],
    [{ version: '5.8-RELEASE-69', needs: { schema: 99 } }, 'needs PostgreSQL 18 with schema 99'],
    [{ needs: { schema: 106 } }, 'needs PostgreSQL 15 with schema 106'],
  ])('%j is refused', async (options, sentence) => {
    await expect(needsOf(options)).rejects.toThrow(sentence);
  });

  it('is refused when its files do not tell what it needs', async () => {
    const known = { postgres: [18], schema: 106, java: 21 };
    const refused = (needs: Partial<Parameters<typeof checkNeeds>[2]>) => () =>
      checkNeeds('a.zip', '5.8-RELEASE-69', { ...known, ...needs });
    expect(refused({})()).toEqual({ postgres: 18, schema: 106, java: 21 });
    expect(refused({ postgres: [] })).toThrow('does not say which PostgreSQL its database needs');
    expect(refused({ postgres: [15, 18] })).toThrow('names PostgreSQL 15 and 18 for its database');
    expect(refused({ schema: undefined })).toThrow('does not say which schema its database needs');
    expect(refused({ java: 25 })).toThrow("needs Java 25, which this Holdfast doesn't know. Known: Java 17 and 21.");
    expect(refused({ java: undefined })()).toMatchObject({ java: undefined });
  });
});
