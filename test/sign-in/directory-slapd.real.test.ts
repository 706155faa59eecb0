// The directory over LDAP, against OpenLDAP's server.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Secret } from '@holdfast/kit/secret';
import { LdapDirectory, type LdapDirectoryOptions } from '../../shared/sign-in/ldap/directory.ts';
import { issue } from '../support/certificates.ts';
import { directoryContract } from './directory-contract.ts';
import { SLAPD_SERVICE, slapdMissing, startSlapd } from './fake-slapd.ts';

const silent = { info: () => {}, warn: () => {}, error: () => {} };

function slapdDirectory(port: number, input: Partial<LdapDirectoryOptions> = {}) {
  return new LdapDirectory({
    url: `ldap://127.0.0.1:${port}`,
    coreBase: 'DC=core,DC=holdfast',
    webBase: 'dc=Web,dc=Holdfast',
    serviceAccount: { username: SLAPD_SERVICE.username, password: new Secret(SLAPD_SERVICE.password) },
    log: silent,
    ...input,
  });
}

const title = `the directory over LDAP, with slapd (${slapdMissing ?? 'is there'})`;

describe.skipIf(slapdMissing !== undefined)(title, () => {
  directoryContract(
    async () => {
      const slapd = await startSlapd();
      const directory = slapdDirectory(slapd.port);
      return {
        ...slapd,
        directory,
        groups: (containing) => directory.groups(containing),
        createGroup: async () => {},
        createAppPassword: undefined,
        deactivate: undefined,
        async end() {
          await directory.close();
          await slapd.end();
        },
      };
    },
    {
      appPasswords: false,
      inactiveUsers: false,
      groupsElsewhere: true,
      restart: true,
      listsGroups: true,
      anyUserName: true,
    },
  );

  it('speaks TLS', async () => {
    const ca = await issue('test CA', undefined, { ca: true });
    const own = await issue('directory', ca, { names: ['127.0.0.1'] });
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-ldaps-'));
    const files = { ca: join(folder, 'ca.pem'), certificate: join(folder, 'own.pem'), key: join(folder, 'own.key') };
    writeFileSync(files.ca, ca.pem);
    writeFileSync(files.certificate, own.pem);
    writeFileSync(files.key, own.key);
    const slapd = await startSlapd(
      [
        `TLSCACertificateFile ${files.ca}`,
        `TLSCertificateFile ${files.certificate}`,
        `TLSCertificateKeyFile ${files.key}`,
      ],
      'ldaps',
    );
    const url = `ldaps://127.0.0.1:${slapd.port}`;
    const directory = slapdDirectory(slapd.port, { url, tlsCaFile: files.ca });
    const careful = slapdDirectory(slapd.port, { url });
    try {
      await slapd.createUser('alice', 'alice has a password');
      expect(await directory.signIn('web', 'alice', 'alice has a password')).toMatchObject({ username: 'alice' });
      expect(await directory.signIn('web', 'alice', 'wrong')).toBeUndefined();
      expect(await directory.find('alice')).toMatchObject({ username: 'alice' });
      await expect(careful.signIn('web', 'alice', 'alice has a password')).rejects.toMatchObject({
        code: 'unavailable',
      });
    } finally {
      await directory.close();
      await careful.close();
      await slapd.end();
      rmSync(folder, { recursive: true });
    }
  });

  it('asks anew for the service account, and says when it is refused', async () => {
    const slapd = await startSlapd();
    const directory = slapdDirectory(slapd.port);
    try {
      expect(await directory.probe('web', 'none')).toBeUndefined();
      await slapd.setServicePassword('another password');
      await expect(directory.probe('web', 'none')).rejects.toMatchObject({
        code: 'upstream',
        message: expect.stringContaining('refuses the service account adm_ldapservice on the web base'),
      });
      await slapd.setServicePassword(SLAPD_SERVICE.password);
      expect(await directory.probe('web', 'none')).toBeUndefined();
    } finally {
      await directory.close();
      await slapd.end();
    }
  });
});
