// What a backup of the stack in containers says of itself: its settings as .env, its databases and
// volumes, and what of a TAK Server release it leaves out.

import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { containerSource, ofReleaseCore, readStack, settingsText } from '@holdfast/setup/containers/backup';
import { planContainer } from '@holdfast/setup/containers/plan';
import { linesOf } from '@holdfast/setup/containers/uploaded';
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
    const archive = { archive: 'takserver-docker-5.7-RELEASE-8.zip', sha256: 'a'.repeat(64) };
    const text = settingsText({ TZ: 'Europe/Vienna' }, archive);
    expect(parseEnvFile(text).values).toEqual({ TZ: 'Europe/Vienna' });
    expect(text).toContain(`# Release archive: ${archive.archive} SHA-256 ${archive.sha256}\n`);
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
    const { stack, databases, files } = containerSource('/app', readStack(LIGHT), '/tmp/settings');
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

  it('leaves the schema of a TAK Server release and of authentik to their own programs', () => {
    const source = containerSource('/app', readStack({ ...LIGHT, HOLDFAST_STACK: 'container' }), '/tmp/settings');
    expect(source.stack).toBe('production');
    const made = source.databases.map(({ key, migrations, marks }) => [key, migrations, marks !== undefined]);
    expect(made).toEqual([
      ['core', undefined, true],
      ['identity', undefined, true],
      ['state', 'schema_migration', false],
    ]);
  });

  it('leaves out the programs of a release, and keeps what the operator has', () => {
    const files = { 'takserver.war': 'a', 'certs/cert-metadata.sh': 'b', 'CoreConfig.xml': 'c' };
    const isLeftOut = ofReleaseCore({ release: '5.7-RELEASE-8', files });
    const left = ['takserver.war', 'logs', 'tomcat.8443.12', 'tomcat-docbase.8443.7', 'certs/files/x.new'];
    const kept = [
      'CoreConfig.xml',
      'certs/cert-metadata.sh',
      'certs/files/ca.pem',
      'lib/plugin.jar',
      '.holdfast-release.json',
    ];
    expect([...left, ...kept].filter(isLeftOut)).toEqual(left);
  });

  it('refuses a stack without its passwords', () => {
    expect(() => readStack({ HOLDFAST_STACK: 'light' })).toThrow(/CORE_DB_PASSWORD/);
  });

  it('is wanted by the same setting in both stacks', () => {
    const wanted = {
      BACKUP_TARGET: '/mnt/backups',
      BACKUP_PASSPHRASE: 'a passphrase of a test',
      BACKUP_TOKEN: 'token',
    };
    for (const stack of ['container', 'light']) {
      const plan = planContainer(process.cwd(), 'backup', { ...LIGHT, ...wanted, HOLDFAST_STACK: stack });
      expect(Array.isArray(plan) || plan.role === 'database' ? plan : Object.keys(plan.environment).toSorted()).toEqual(
        ['HOLDFAST_BACKUP', 'HOLDFAST_BACKUP_STACK'],
      );
    }
  });
});

describe('what backup.sh sends to the container', () => {
  it('is read as its first lines and the rest to the byte, however it is cut', async () => {
    const line = fc.string({ unit: fc.constantFrom('a', ' ', 'é', '{') });
    const parts = fc.tuple(line, line, fc.uint8Array({ maxLength: 40 }), fc.array(fc.nat(60), { maxLength: 5 }));
    await fc.assert(
      fc.asyncProperty(parts, async ([first, second, rest, cuts]) => {
        const all = Buffer.concat([Buffer.from(`${first}\n${second}\n`), rest]);
        const places = [0, ...cuts.map((at) => Math.min(at, all.length)).toSorted((one, other) => one - other)];
        const chunks = places.map((at, index) => all.subarray(at, places[index + 1] ?? all.length));
        const input = linesOf(Readable.from(chunks));
        expect([await input.line(), await input.line()]).toEqual([first, second]);
        const read: Buffer[] = [];
        for await (const chunk of input.rest()) read.push(chunk);
        expect(Buffer.concat(read)).toEqual(Buffer.from(rest));
      }),
    );
  });

  it('may end before its lines do', async () => {
    const input = linesOf(Readable.from([Buffer.from('only')]));
    expect([await input.line(), await input.line()]).toEqual(['only', '']);
  });
});
