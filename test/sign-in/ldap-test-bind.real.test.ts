// The bind before a start, against a real directory: it must sign in and see its own entry.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '@holdfast/kit/secret';
import { testBind } from '../../shared/sign-in/ldap/service-account.ts';
import { freePort } from '../support/free-port.ts';
import { type LdapServerFake, startLdapServer } from './fake-ldap-server.ts';
import { type Slapd, SLAPD_SERVICE, slapdMissing, startSlapd } from './fake-slapd.ts';

const DN = `cn=${SLAPD_SERVICE.username},ou=users,DC=core,DC=holdfast`;
const bind = (port: number, { dn = DN, password = SLAPD_SERVICE.password } = {}) =>
  testBind({
    url: `ldap://127.0.0.1:${port}`,
    caFile: '/nowhere',
    dn,
    password: new Secret(password),
    withinMs: 5_000,
  });

describe.skipIf(slapdMissing !== undefined)(
  `a test bind${slapdMissing === undefined ? '' : `: ${slapdMissing}`}`,
  () => {
    let slapd: Slapd;
    beforeAll(async () => {
      slapd = await startSlapd();
    });
    afterAll(() => slapd.end());

    it('succeeds with the account and its password', async () => {
      await bind(slapd.port);
    });

    it('says that the password is refused, and never which one', async () => {
      const reply = await bind(slapd.port, { password: 'wrong password' }).catch(String);
      expect(reply).toContain(`the directory 127.0.0.1:${slapd.port} refuses the password of ${DN}`);
      expect(reply).not.toContain('wrong password');
    });

    it('says that nobody listens', async () => {
      await expect(bind(await freePort())).rejects.toThrow(/^the directory 127\.0\.0\.1:\d+ /);
    });
  },
);

describe('a directory that has come up empty', () => {
  let server: LdapServerFake;
  beforeAll(async () => {
    server = await startLdapServer();
    server.passwords.set(DN.toLowerCase(), SLAPD_SERVICE.password);
  });
  afterAll(() => server.close());

  it('takes the password and shows nothing: it is not there yet', async () => {
    await expect(bind(server.port)).rejects.toThrow(`does not return the own entry of ${DN}`);
  });
});
