// The role `configuration` in production: what it is told, what it refuses, and the program that it
// becomes.

import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { planContainer } from '../containers/plan.ts';

const ROOT = join(import.meta.dirname, '../../..');
const SETTINGS = {
  SERVER_ADDRESS: 'cot.example.org',
  CORE_DB_PASSWORD: 'database-password-1',
  LDAP_BIND_PASSWORD: 'bind-password-1',
};

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'holdfast-configure-program-'));
  cpSync(join(import.meta.dirname, '../../../packages/setup/test/release/tak'), directory, { recursive: true });
});
afterEach(() => rmSync(directory, { recursive: true }));

function plan(environment: Record<string, string>) {
  const planned = planContainer(ROOT, 'configuration', environment);
  if (Array.isArray(planned) || planned.role === 'database') throw new Error(JSON.stringify(planned));
  return planned;
}

function namesOf(environment: Record<string, string>): string[] {
  const planned = planContainer(ROOT, 'configuration', environment);
  return Array.isArray(planned) ? planned.map(({ name }) => name) : [];
}

/** What the container does with the plan. */
function run(environment: Record<string, string>) {
  const { program, environment: own } = plan({ CORE_DATA_DIR: directory, ...environment });
  const { status, stderr } = spawnSync(process.execPath, [join(ROOT, 'scripts', program.replace('.js', '.ts'))], {
    env: own,
    encoding: 'utf8',
  });
  return { status, message: stderr };
}

describe('the role configuration', () => {
  it('prepares a release, and in the light stack the retention files alone, without any secret', () => {
    expect(plan(SETTINGS)).toMatchObject({ program: 'configure-core.js', environment: SETTINGS });
    expect(plan(SETTINGS).environment).toMatchObject({
      CORE_DATA_DIR: '/var/lib/holdfast/core',
      LDAP_URL: 'ldap://authentik-ldap:3389',
      LDAP_BASE_DN: 'DC=core,DC=holdfast',
    });
    const light = plan({ ...SETTINGS, HOLDFAST_STACK: 'light' });
    expect(light.program).toBe('sync-retention.js');
    expect(Object.keys(light.environment).toSorted()).toEqual(['CORE_DATA_DIR', 'CORE_RETENTION_UNIT']);
  });

  it('names everything that is missing or wrong at once', () => {
    expect(namesOf({}).toSorted()).toEqual(Object.keys(SETTINGS).toSorted());
    expect(namesOf({ ...SETTINGS, CERTIFICATE_COUNTRY: 'Austria', CERTIFICATE_UNIT: 'a/b' })).toEqual([
      'CERTIFICATE_COUNTRY',
      'CERTIFICATE_UNIT',
    ]);
  });

  it.each(['a&b', 'a<b', 'a>b', 'a"b', "a'b", 'a b', 'a\\b'])(
    'refuses the database password %s, which the scripts of a release could not read out of the XML',
    (CORE_DB_PASSWORD) => {
      expect(namesOf({ ...SETTINGS, CORE_DB_PASSWORD })).toEqual(['CORE_DB_PASSWORD']);
      expect(namesOf({ ...SETTINGS, CORE_DB_PASSWORD, HOLDFAST_STACK: 'light' })).toEqual([]);
    },
  );
});

describe('its program', () => {
  it('writes everything with retention in seconds, tells no secret, and says the second time that all is as it should be', () => {
    const retention = { COT_RETENTION_DAYS: '30', CORE_RETENTION_UNIT: 'seconds' };
    const first = run({ ...SETTINGS, ...retention });
    expect([first.status, first.message]).toEqual([
      0,
      expect.stringContaining('CoreConfig.xml from CoreConfig.example.xml'),
    ]);
    expect(readFileSync(join(directory, 'conf/retention/retention-policy.yml'), 'utf8')).toMatch(/^ *cot: 2592000\b/m);
    const second = run({ ...SETTINGS, ...retention });
    expect(second).toEqual({ status: 0, message: `The core files in ${directory} are up to date.\n` });
    for (const secret of ['database-password-1', 'bind-password-1']) expect(first.message).not.toContain(secret);
  });

  it('ends with 1, every problem and a remedy for each, and writes nothing', () => {
    rmSync(join(directory, 'CoreConfig.example.xml'));
    const { status, message } = run(SETTINGS);
    expect([status, message]).toEqual([
      1,
      expect.stringMatching(/Nothing was changed:\n.*No release in .*\n +Remedy: run/),
    ]);
    expect(existsSync(join(directory, 'certs/files'))).toBe(false);
  });
});
