// What a backup of the stack in containers says of itself: its settings as .env, its databases and
// volumes, and which stacks it refuses.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lightSource, readStack, settingsText } from '@holdfast/setup/containers/backup';
import { planContainer } from '@holdfast/setup/containers/plan';
import { parseEnvFile } from '../../../shared/settings/load.ts';

const LIGHT = {
  HOLDFAST_STACK: 'light',
  CORE_DB_PASSWORD: 'core:pass',
  APP_DB_PASSWORD: 'app@pass',
  IDENTITY_DB_PASSWORD: 'identity#pass',
};

describe('the settings in a backup of containers', () => {
  it('are those of .env, without what belongs to the container', () => {
    const environment = {
      ...LIGHT,
      COMPOSE_FILE: 'a.yaml:b.yaml',
      TZ: 'UTC',
      MON_DISK_WARNING: '71',
      PATH: '/bin',
      ALERT_EMAIL_TO: '',
    };
    expect(parseEnvFile(settingsText(environment)).values).toEqual({
      APP_DB_PASSWORD: 'app@pass',
      COMPOSE_FILE: 'a.yaml:b.yaml',
      CORE_DB_PASSWORD: 'core:pass',
      IDENTITY_DB_PASSWORD: 'identity#pass',
      MON_DISK_WARNING: '71',
    });
    expect(parseEnvFile(settingsText({ TZ: 'Europe/Vienna' })).values).toEqual({ TZ: 'Europe/Vienna' });
  });

  it('are read back as they were, whatever a password holds', () => {
    const printable = fc.string({
      unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCodePoint(code)),
      minLength: 1,
    });
    fc.assert(
      fc.property(printable, (value) => {
        fc.pre(value === value.trim());
        const { values, problems } = parseEnvFile(settingsText({ CORE_DB_PASSWORD: value }));
        expect([values, problems]).toEqual([{ CORE_DB_PASSWORD: value }, []]);
      }),
    );
  });
});

describe('the source of a backup of containers', () => {
  it('has each database as its owner, and the parts that a light stack keeps', () => {
    const { stack, databases, files } = lightSource('/app', readStack(LIGHT), '/tmp/settings');
    expect(stack).toBe('light');
    expect(databases.map(({ key, url }) => [key, url.reveal()])).toEqual([
      ['core', 'postgres://martiuser:core%3Apass@core-database:5432/cot'],
      ['identity', 'postgres://identity:identity%23pass@app-database:5432/identity'],
      ['state', 'postgres://holdfast:app%40pass@app-database:5432/holdfast'],
    ]);
    expect(files.map(({ part }) => part).toSorted()).toEqual([
      'caddy',
      'core',
      'flows',
      'identity',
      'management',
      'settings',
    ]);
  });

  it('refuses a stack with a TAK Server release, and one without its passwords', () => {
    expect(() => readStack({ ...LIGHT, HOLDFAST_STACK: 'container' })).toThrow(/TAK Server release/);
    expect(() => readStack({ HOLDFAST_STACK: 'light' })).toThrow(/CORE_DB_PASSWORD/);
  });

  it('is refused for management and the start of such a stack too, by the setting that asks for it', () => {
    const wanted = { BACKUP_TARGET: '/mnt/backups', BACKUP_PASSPHRASE: 'a passphrase of a test' };
    for (const role of ['management', 'preflight'] as const) {
      const plan = planContainer(process.cwd(), role, { ...LIGHT, ...wanted, HOLDFAST_STACK: 'container' });
      expect(Array.isArray(plan) ? plan.map(({ name }) => name) : []).toContain('BACKUP_TARGET');
      const light = planContainer(process.cwd(), role, { ...LIGHT, ...wanted });
      expect(Array.isArray(light) ? light.map(({ name }) => name) : []).not.toContain('BACKUP_TARGET');
    }
  });
});
