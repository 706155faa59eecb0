// Rights of the admin API by the spool directory, against real files: what management writes, what
// the core makes of it, and what else may lie there.

import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { adminGrantSpool } from '../../../shared/people/service-accounts/admin-grants.ts';
import { type TestCertificate, type TestPki, testPki } from '../../../test/core/fake-test-pki.ts';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { AdminGrants } from '../admin/admin-grants.ts';
import { usersFile } from '../admin/users-file.ts';
import { memoryCertificates, type MemoryCertificates } from './fake-core-certificates.ts';

let pki: TestPki;
let foreignPki: TestPki;
let spool: string;
let usersPath: string;
let folder: string;
let users: ReturnType<typeof usersFile>;
let certificates: MemoryCertificates;
let log: ReturnType<typeof memoryLog>;
let core: AdminGrants;
const revoked = new Set<string>();

beforeAll(async () => {
  pki = await testPki();
  foreignPki = await testPki();
});
afterAll(() => {
  for (const { directory } of [pki, foreignPki]) rmSync(directory, { recursive: true });
});
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-grants-'));
  spool = join(folder, 'admin-grants');
  usersPath = join(folder, 'UserAuthenticationFile.xml');
  log = memoryLog();
  users = usersFile(usersPath, log);
  certificates = memoryCertificates();
  revoked.clear();
  core = new AdminGrants({
    directory: spool,
    authority: { chain: [pki.ca.certificate] },
    certificates,
    users,
    isRevoked: (serial) => revoked.has(serial),
    log,
    now: () => new Date(),
  });
});
afterEach(() => rmSync(folder, { recursive: true }));

async function recorded(name: string): Promise<TestCertificate> {
  const made = await pki.client(name);
  await certificates.add(made.signed, { creator: name, clientUid: name }, new Date());
  return made;
}
const roleOf = ({ signed }: TestCertificate): string => users.roleOf({ hash: signed.hash, commonName: '' });
const lying = (): string[] => (existsSync(spool) ? readdirSync(spool).toSorted() : []);
const reasons = (): unknown[] =>
  log.events.filter(({ event }) => event === 'core.admin_grant_refused').map(({ fields }) => fields['reason']);
function put(name: string, text: string): void {
  mkdirSync(spool, { recursive: true });
  writeFileSync(join(spool, name), text);
}

describe('the spool of admin rights, as management writes it', () => {
  it('holds the certificate alone, whole, readable by its owner only', async () => {
    const { certificate } = await recorded('svc_backup');
    await adminGrantSpool(spool).give('svc_backup', certificate);
    expect(lying()).toEqual(['svc_backup.pem']);
    expect(statSync(spool).mode & 0o777).toBe(0o700);
    expect(statSync(join(spool, 'svc_backup.pem')).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(spool, 'svc_backup.pem'), 'utf8').trim()).toBe(certificate.trim());
  });

  it('has no certificate any more when its right is taken, in whatever case it was given', async () => {
    const { certificate } = await recorded('svc_Backup');
    await adminGrantSpool(spool).give('svc_Backup', certificate);
    await adminGrantSpool(spool).take('svc_backup');
    expect(lying()).toEqual(['svc_backup.revoke']);
  });

  it.each(['ada', 'svc_', 'svc_../../x', 'svc_a/b', '../svc_x', 'svc_a\0', '', `svc_${'a'.repeat(61)}`, 'svc_ä'])(
    'refuses the name %j before it makes a path of it',
    async (name) => {
      const { certificate } = pki.ca;
      const grants = adminGrantSpool(spool);
      for (const ask of [() => grants.give(name, certificate), () => grants.take(name)])
        await expect(ask()).rejects.toMatchObject({ code: 'invalid' });
      expect(existsSync(spool)).toBe(false);
    },
  );

  it('takes no key and no other text', async () => {
    const { certificate, key } = await recorded('svc_backup');
    for (const text of [key, `${certificate}${key}`, '', 'x'])
      await expect(adminGrantSpool(spool).give('svc_backup', text)).rejects.toMatchObject({ code: 'invalid' });
    expect(existsSync(spool)).toBe(false);
  });

  it('writes nowhere else, whatever the other side has put into the spool', async () => {
    const { certificate } = await recorded('svc_backup');
    const secret = join(folder, 'secrets.json');
    writeFileSync(secret, 'a secret');
    mkdirSync(spool);
    for (const name of ['svc_backup.pem', 'svc_backup.revoke']) {
      symlinkSync(secret, join(spool, name));
      symlinkSync(secret, join(spool, `${name}.new`));
    }
    await adminGrantSpool(spool).give('svc_backup', certificate);
    await adminGrantSpool(spool).take('svc_backup');
    expect([readFileSync(secret, 'utf8'), lying()]).toEqual(['a secret', ['svc_backup.revoke']]);
    expect(lstatSync(join(spool, 'svc_backup.revoke')).isFile()).toBe(true);
  });

  it('is closed to others from its first byte, whatever a crash has left in its place', async () => {
    const { certificate } = await recorded('svc_backup');
    mkdirSync(spool);
    writeFileSync(join(spool, 'svc_backup.pem.new'), '');
    chmodSync(join(spool, 'svc_backup.pem.new'), 0o666);
    await adminGrantSpool(spool).give('svc_backup', certificate);
    expect(statSync(join(spool, 'svc_backup.pem')).mode & 0o777).toBe(0o600);
  });

  it('does not follow a link in place of the spool', async () => {
    const { certificate } = await recorded('svc_backup');
    const elsewhere = join(folder, 'elsewhere');
    mkdirSync(elsewhere);
    symlinkSync(elsewhere, spool);
    const grants = adminGrantSpool(spool);
    for (const ask of [() => grants.give('svc_backup', certificate), () => grants.take('svc_backup')])
      await expect(ask()).rejects.toMatchObject({ code: 'unavailable' });
    expect(readdirSync(elsewhere)).toEqual([]);
  });

  it('says what cannot be written, and the remedy', async () => {
    writeFileSync(spool, '');
    const failed = adminGrantSpool(spool).take('svc_x');
    await expect(failed).rejects.toThrow(AppError);
    await expect(failed).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining(spool) });
  });
});

describe('the core', () => {
  it('gives the right to that certificate, and leaves nothing in the spool', async () => {
    const mine = await recorded('svc_backup');
    await adminGrantSpool(spool).give('svc_backup', mine.certificate);
    await core.look();
    expect([roleOf(mine), lying()]).toEqual(['ROLE_ADMIN', []]);
  });

  it('compares names without regard to case', async () => {
    const mine = await recorded('svc_Backup');
    await adminGrantSpool(spool).give('svc_BACKUP', mine.certificate);
    await core.look();
    expect(roleOf(mine)).toBe('ROLE_ADMIN');
    await adminGrantSpool(spool).take('SVC_backup');
    await core.look();
    expect(roleOf(mine)).toBe('ROLE_ANONYMOUS');
  });

  it('takes the right away, and leaves everything else in the users file byte for byte', async () => {
    const text = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<!-- by hand --><UserAuthenticationFile xmlns="http://bbn.com/marti/xml/bindings">
    <User identifier="bob" password="$2a$10$abc&amp;" passwordHashed="true" role="ROLE_READONLY">
        <groupList>Ops &lt;1&gt;</groupList>
    </User>
    <!-- the end -->
</UserAuthenticationFile>
`;
    writeFileSync(usersPath, text);
    const mine = await recorded('svc_backup');
    await adminGrantSpool(spool).give('svc_backup', mine.certificate);
    await core.look();
    expect(roleOf(mine)).toBe('ROLE_ADMIN');
    await adminGrantSpool(spool).take('svc_backup');
    await core.look();
    expect([roleOf(mine), lying(), readFileSync(usersPath, 'utf8')]).toEqual(['ROLE_ANONYMOUS', [], text]);
  });

  it('does the same again when a crash has left the file there', async () => {
    const mine = await recorded('svc_backup');
    put('svc_backup.pem.taken', mine.certificate);
    await core.look();
    const once = readFileSync(usersPath, 'utf8');
    put('svc_backup.pem.taken', mine.certificate);
    await core.look();
    expect([readFileSync(usersPath, 'utf8'), lying()]).toEqual([once, []]);
    put('svc_backup.revoke', '');
    await core.look();
    put('svc_backup.revoke', '');
    await core.look();
    expect([roleOf(mine), lying()]).toEqual(['ROLE_ANONYMOUS', []]);
  });

  it('gives what was asked for after it was taken', async () => {
    const [old, young] = [await recorded('svc_backup'), await recorded('svc_backup')];
    await adminGrantSpool(spool).give('svc_backup', old.certificate);
    await adminGrantSpool(spool).take('svc_backup');
    await adminGrantSpool(spool).give('svc_backup', young.certificate);
    await core.look();
    expect([old, young].map(roleOf)).toEqual(['ROLE_ANONYMOUS', 'ROLE_ADMIN']);
  });

  it('waits while it cannot judge, says so once, and gives the right then', async () => {
    const mine = await recorded('svc_backup');
    await adminGrantSpool(spool).give('svc_backup', mine.certificate);
    certificates.unavailable(new AppError('unavailable', 'The database does not answer'));
    await core.look();
    await core.look();
    expect(log.events.filter(({ event }) => event === 'core.admin_grant_waits')).toHaveLength(1);
    expect(roleOf(mine)).toBe('ROLE_ANONYMOUS');
    certificates.unavailable(undefined);
    await core.look();
    expect([roleOf(mine), lying()]).toEqual(['ROLE_ADMIN', []]);
  });

  it('does not give afterwards what was taken while it could not judge', async () => {
    const mine = await recorded('svc_backup');
    await adminGrantSpool(spool).give('svc_backup', mine.certificate);
    certificates.unavailable(new AppError('unavailable', 'The database does not answer'));
    await core.look();
    await adminGrantSpool(spool).take('svc_backup');
    await core.look();
    certificates.unavailable(undefined);
    await core.look();
    expect([roleOf(mine), lying()]).toEqual(['ROLE_ANONYMOUS', []]);
  });

  it('waits while the users file is broken, and does not write over it', async () => {
    const mine = await recorded('svc_backup');
    await adminGrantSpool(spool).give('svc_backup', mine.certificate);
    const good = readFileSync(usersPath, 'utf8');
    writeFileSync(usersPath, 'broken');
    await core.look();
    expect(readFileSync(usersPath, 'utf8')).toBe('broken');
    writeFileSync(usersPath, good);
    await core.look();
    expect(roleOf(mine)).toBe('ROLE_ADMIN');
  });

  it('refuses what is not a certificate of that service account, in force and of this CA', async () => {
    const [foreign, ada, api] = [await foreignPki.client('svc_a'), await recorded('ada'), await recorded('svc_api')];
    const [unknown, dead, listed] = [await pki.client('svc_c'), await recorded('svc_d'), await recorded('svc_e')];
    const old = await pki.client('svc_f', { from: new Date(Date.now() - 9e8), to: new Date(Date.now() - 1e8) });
    await certificates.add(foreign.signed, { creator: 'x', clientUid: 'x' }, new Date());
    await certificates.add(old.signed, { creator: 'x', clientUid: 'x' }, new Date());
    await certificates.setRevoked((await certificates.byHash(dead.signed.hash))?.id ?? 0, new Date());
    revoked.add(listed.signed.serial);
    put('svc_a.pem', foreign.certificate);
    put('svc_b.pem', ada.certificate);
    put('ada.pem', ada.certificate);
    put('svc_api.pem', api.certificate);
    put('svc_c.pem', unknown.certificate);
    put('svc_d.pem', dead.certificate);
    put('svc_e.pem', listed.certificate);
    put('svc_f.pem', old.certificate);
    put('svc_g.pem', 'garbage');
    put('svc_h.pem', 'x'.repeat(70_000));
    await core.look();
    expect([foreign, ada, api, unknown, dead, listed, old].map(roleOf)).toEqual(Array(7).fill('ROLE_ANONYMOUS'));
    const names = ['ada', 'svc_a', 'svc_api', 'svc_b', 'svc_c', 'svc_d', 'svc_e', 'svc_f', 'svc_g', 'svc_h'];
    expect(lying().toSorted()).toEqual(names.map((name) => `${name}.pem.refused`).toSorted());
    expect(reasons().map(String).toSorted()).toEqual(
      [
        'it is larger than 65536 bytes',
        'it is no certificate',
        'it is not called after a service account (svc_…)',
        'the certificate has expired',
        'the certificate is not of this CA',
        'the certificate is revoked',
        'the certificate is revoked',
        'the certificate is that of "ada"',
        'the core has not recorded the certificate',
        "the right of svc_api is the core's own matter",
      ].toSorted(),
    );
    await core.look();
    expect(reasons()).toHaveLength(10);
  });

  it('never takes the right of svc_api', async () => {
    const api = await recorded('svc_api');
    users.grant({ identifier: 'svc_api', fingerprint: api.signed.hash, role: 'ROLE_ADMIN' });
    put('svc_api.revoke', '');
    put('SVC_API.revoke', '');
    await core.look();
    expect([roleOf(api), lying()]).toEqual(['ROLE_ADMIN', ['SVC_API.revoke.refused', 'svc_api.revoke.refused']]);
  });

  it('follows no link, opens no pipe and enters no directory', async () => {
    const mine = await recorded('svc_backup');
    writeFileSync(join(folder, 'elsewhere.pem'), mine.certificate);
    mkdirSync(spool);
    symlinkSync(join(folder, 'elsewhere.pem'), join(spool, 'svc_backup.pem'));
    mkdirSync(join(spool, 'svc_d.pem'));
    execFileSync('mkfifo', [join(spool, 'svc_p.pem'), join(spool, 'svc_q.revoke')]);
    await core.look();
    expect(roleOf(mine)).toBe('ROLE_ANONYMOUS');
    expect(reasons()).toEqual(Array(4).fill('it is no ordinary file'));
    expect(existsSync(join(folder, 'elsewhere.pem'))).toBe(true);
  });

  it('looks into no directory that is a link', async () => {
    const mine = await recorded('svc_backup');
    mkdirSync(join(folder, 'other'));
    writeFileSync(join(folder, 'other', 'svc_backup.pem'), mine.certificate);
    symlinkSync(join(folder, 'other'), spool);
    await core.look();
    expect(roleOf(mine)).toBe('ROLE_ANONYMOUS');
    expect(log.events.map(({ event }) => event)).toEqual(['core.admin_grants_unreadable']);
  });
});
