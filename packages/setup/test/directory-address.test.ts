// The address of a directory that a release would misread: it takes `ldaps` anywhere in it for TLS.

import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { configureRelease } from '../configuration/configure-core.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'holdfast-directory-'));
  cpSync(join(import.meta.dirname, '../../../packages/setup/test/release/tak'), directory, { recursive: true });
});
afterEach(() => rmSync(directory, { recursive: true }));

const configured = (url: string) =>
  configureRelease(
    {
      directory,
      database: {
        url: 'jdbc:postgresql://tak-database:5432/cot',
        user: 'martiuser',
        password: 'core-password-1',
        connections: 200,
      },
      ldap: { url, base: 'DC=core,DC=holdfast', password: 'bind-password-1' },
      names: { country: 'AT', state: 'Tirol', city: 'none', organization: 'Fire District 7', unit: 'Rescue' },
      hosts: ['cot.example.org'],
    },
    new Date('2026-11-23T05:00:00Z'),
  );

it('is refused, with the name to change, and nothing is written', async () => {
  const result = await configured('ldap://LDAPserver.example.org:389');
  expect(result).toEqual({
    problems: [
      {
        message: expect.stringContaining('ldap://LDAPserver.example.org:389') as string,
        remedy: expect.stringContaining('LDAP_URL') as string,
      },
    ],
  });
  expect(existsSync(join(directory, 'CoreConfig.xml'))).toBe(false);
});

it('is taken where TLS is what was meant', async () => {
  expect(await configured('ldaps://directory.example.org:636')).toHaveProperty('messages');
});
