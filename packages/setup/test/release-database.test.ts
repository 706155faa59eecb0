// The core's database of a release, as far as it needs no server: which PostgreSQL an image has,
// what a container's memory comes to, and who may sign in from where.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Access, serverArguments, writeAccessRules } from '@holdfast/stack/database/postmaster';
import { FLOWS_GRANTS, FLOWS_TABLES, wantedState } from '@holdfast/stack/database/roles';
import { type DatabaseTuning, STOCK, TUNED } from '../../../shared/settings/tuning.ts';
import { planContainer } from '../containers/plan.ts';
import { anotherMajor, poolSize, releasePrograms, sharesOf } from '../release-files/schema.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'holdfast-image-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function withServer(...directories: string[]): void {
  for (const directory of directories) {
    mkdirSync(join(root, directory), { recursive: true });
    writeFileSync(join(root, directory, 'postgres'), '');
  }
}

describe('the PostgreSQL of an image', () => {
  it.each([
    ['usr/lib/postgresql/15/bin', '15'],
    ['usr/pgsql-15/bin', '15'],
    ['usr/pgsql-18/bin', '18'],
  ])('is found in %s, with its major version', (directory, major) => {
    withServer(directory);
    // Programs of a client alone are no server.
    mkdirSync(join(root, 'usr/lib/postgresql/17/bin'), { recursive: true });
    expect(releasePrograms(root)).toEqual({ binaries: join(root, directory), major });
  });

  it('must be one: none and two are refused with what was found', () => {
    expect(() => releasePrograms(root)).toThrow(/no PostgreSQL server, neither in .*usr\/lib\/postgresql\/N\/bin/);
    withServer('usr/lib/postgresql/15/bin', 'usr/pgsql-18/bin');
    expect(() => releasePrograms(root)).toThrow(/2 PostgreSQL servers.*postgresql\/15\/bin, .*pgsql-18\/bin/);
  });

  it('of another major version than the volume is changed by the upgrade of the database, or left for its release', () => {
    expect(anotherMajor('18')('15')).toMatch(
      /from version 15 to 18: .*upgrade-database\.sh --from .*Or go back.*--back/,
    );
  });
});

describe('the memory of a container', () => {
  it.each([
    ['512m', 200, 128],
    ['1g', 256, 256],
    ['2g', 512, 512],
    ['6144m', 1536, 1536],
    ['12g', 2100, 2560],
  ])('of %s comes to %i connections and %i MB of buffers', (memory, connections, buffers) => {
    expect(sharesOf(memory)).toEqual({ max_connections: String(connections), shared_buffers: `${buffers}MB` });
    // The two pools of a release leave room for everybody else.
    expect(2 * poolSize(memory)).toBeLessThanOrEqual(connections - 40);
    expect(poolSize(memory)).toBe(connections === 200 ? 80 : connections === 256 ? 108 : 200);
  });
});

describe('the access rules', () => {
  const rules = (access: Access): string[] => {
    const file = join(root, 'pg_hba.conf');
    writeAccessRules(file, access);
    return readFileSync(file, 'utf8').trim().split('\n').slice(1);
  };

  it('let the flow engine in by its network alone, and nobody else there', () => {
    expect(rules({ from: 'all', flowsFrom: '172.16.66.0/24' })).toEqual([
      'host all postgres all reject',
      'host cot holdfast_flows 172.16.66.0/24 scram-sha-256',
      'host all holdfast_flows all reject',
      'host all all 172.16.66.0/24 reject',
      'host all all all scram-sha-256',
    ]);
  });

  it('let it in nowhere without that network, and beside the others on one machine', () => {
    expect(rules({ from: 'all' })).toEqual([
      'host all postgres all reject',
      'host all holdfast_flows all reject',
      'host all all all scram-sha-256',
    ]);
    expect(rules({ from: '127.0.0.1/32', flowsFrom: '127.0.0.1/32' })).toEqual([
      'host all postgres all reject',
      'host cot holdfast_flows 127.0.0.1/32 scram-sha-256',
      'host all holdfast_flows all reject',
      'host all all 127.0.0.1/32 scram-sha-256',
    ]);
  });
});

describe("the flow engine's role", () => {
  it('signs in with its password alone, and is held to its limits', () => {
    expect(wantedState({ core: 'a' })).toMatch(/ALTER ROLE holdfast_flows NOLOGIN PASSWORD NULL;\n\n/);
    const sql = wantedState({ core: 'a', flows: 'flows-password' });
    expect(sql).toMatch(/ALTER ROLE holdfast_flows LOGIN NOSUPERUSER .*'SCRAM-SHA-256/);
    expect(sql).not.toContain('flows-password');
    expect(sql).toMatch(/holdfast_flows CONNECTION LIMIT 5;\n\n/);
    expect(sql).toMatch(/holdfast_flows SET statement_timeout = '30s';\n\n/);
    expect(sql).not.toMatch(/GRANT pg_\w+.* TO holdfast_flows/);
    expect(wantedState({ app: 'c' })).not.toContain('holdfast_flows');
  });

  it('is given no table that lets somebody in or holds what somebody sent in confidence', () => {
    for (const name of ['certificate', 'resource', 'latestresource', 'mission', 'mission_change', 'tak_user'])
      expect(FLOWS_TABLES).not.toContain(name);
    // Single-user mode ends a statement at a semicolon with an empty line.
    expect(FLOWS_GRANTS).not.toMatch(/\n\s*\n/);
  });
});

describe('the plan of a release', () => {
  const environment = {
    HOLDFAST_DATABASE_KIND: 'release',
    HOLDFAST_DATABASES: 'cot',
    HOLDFAST_FLOWS_NETWORK: '172.16.66.0/24',
    CORE_DB_PASSWORD: 'core:pass',
    CORE_READER_PASSWORD: 'reader:pass',
    FLOWS_DB_PASSWORD: 'flows:pass',
    CORE_DATABASE_MEMORY: '4g',
    PATH: '/opt/java/openjdk/bin:/usr/bin',
    JAVA_HOME: '/opt/java/openjdk',
  };
  const planOf = (more: Record<string, string> = {}) =>
    planContainer('/opt/holdfast', 'database', { ...environment, HOLDFAST_IMAGE_ROOT: root, ...more });

  it('takes programs and files from the image, and java from where the image has it', () => {
    withServer('usr/lib/postgresql/15/bin');
    expect(planOf()).toMatchObject({
      role: 'database',
      database: {
        binaries: join(root, 'usr/lib/postgresql/15/bin'),
        flowsFrom: '172.16.66.0/24',
        passwords: { core: 'core:pass', reader: 'reader:pass', flows: 'flows:pass' },
        release: {
          major: '15',
          settings: { max_connections: '1024', shared_buffers: '1024MB' },
          schema: {
            directory: join(root, 'opt/tak'),
            port: 5433,
            searchPath: '/opt/java/openjdk/bin:/usr/bin',
            javaHome: '/opt/java/openjdk',
          },
        },
      },
    });
  });

  it.each([
    ['HOLDFAST_DATABASE_KIND', 'foreign'],
    ['HOLDFAST_DATABASES', 'holdfast,cot'],
    ['HOLDFAST_FLOWS_NETWORK', '172.16.66.0'],
    ['HOLDFAST_FLOWS_NETWORK', '172.16.66.0/33'],
    ['HOLDFAST_FLOWS_NETWORK', 'all'],
    ['CORE_DATABASE_MEMORY', '2GB'],
  ])('refuses %s=%s', (name, value) => {
    withServer('usr/lib/postgresql/15/bin');
    const problems = planOf({ [name]: value, APP_DB_PASSWORD: 'app:pass' });
    expect(Array.isArray(problems) ? problems.map((problem) => problem.name) : problems).toEqual([name]);
  });

  it('says that the image has no PostgreSQL', () => {
    const problems = planOf();
    expect(problems).toEqual([
      expect.objectContaining({ name: 'HOLDFAST_DATABASE_KIND', message: expect.stringContaining('no PostgreSQL') }),
    ]);
  });
});

describe('the flags of a server', () => {
  const flags = (tuning: DatabaseTuning): string[] =>
    serverArguments('/pgdata', { listen: '127.0.0.1', port: 5432, hbaFile: '/hba', tuning });

  it('look for dead rows every 15 s, unless all three settings are those of PostgreSQL itself', () => {
    expect(flags(TUNED)).toContain('autovacuum_naptime=15s');
    expect(flags({ ...STOCK, costLimit: 300 })).toContain('autovacuum_naptime=15s');
    expect(flags({ ...STOCK, maintenanceWorkMem: '65536kB' }).join(' ')).not.toContain('naptime');
  });
});
