// The directory over LDAP, against OpenLDAP's server.

import { describe } from 'vitest';
import { ldapDirectory, type LdapDirectoryOptions } from '../../shared/adapters/ldap-directory.ts';
import { Secret } from '../../shared/domain/secret.ts';
import { directoryContract } from '../contract/directory.ts';
import { SLAPD_SERVICE, slapdMissing, startSlapd } from '../fakes/slapd.ts';

const silent = { info: () => {}, warn: () => {}, error: () => {} };

function slapdDirectory(port: number, wish: Partial<LdapDirectoryOptions> = {}) {
  return ldapDirectory({
    url: `ldap://127.0.0.1:${port}`,
    coreBase: 'DC=core,DC=holdfast',
    webBase: 'dc=Web,dc=Holdfast',
    serviceAccount: { username: SLAPD_SERVICE.username, password: new Secret(SLAPD_SERVICE.password) },
    log: silent,
    ...wish,
  });
}

describe.skipIf(slapdMissing !== undefined)(
  `the directory over LDAP, with slapd (${slapdMissing ?? 'is there'})`,
  () => {
    directoryContract(
      async () => {
        const slapd = await startSlapd();
        const directory = slapdDirectory(slapd.port);
        return {
          ...slapd,
          directory,
          createGroup: async () => {},
          createAppPassword: undefined,
          deactivate: undefined,
          async end() {
            await directory.close();
            await slapd.end();
          },
        };
      },
      { appPasswords: false, inactiveUsers: false, groupsElsewhere: true, restart: true, anyUserName: true },
    );
  },
);
