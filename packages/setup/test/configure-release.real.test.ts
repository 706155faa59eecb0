// What a release finds in its directory: made once, the same at every later start, and nothing at
// all while anything is wrong. Keystores are read by keytool, certificates and lists by openssl; a
// CA that an operator brought is made by scripts of the public shape.

import { execFileSync, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readUsersDocument } from '@holdfast/core/admin/users-document';
import { DAY_MS } from '@holdfast/kit/time';
import { certificateFiles } from '@holdfast/pki/certificate-files';
import { readIndex, readSignedList } from '@holdfast/pki/crl';
import { attributesOf, elementsAt, parseXml } from '../../../test/support/parsed-xml.ts';
import { configureRelease, type WantedRelease } from '../configuration/configure-core.ts';

const SOURCE = join(import.meta.dirname, '../../../packages/setup/test/release/tak');
const NOW = new Date('2026-11-23T05:00:00Z');
const hasKeytool = spawnSync('keytool', ['-help']).status === 0;
const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

const JDBC = 'jdbc:postgresql://tak-database:5432/cot';
let directory: string;
/** A directory as the first start leaves it. */
let started: string;
let wanted: WantedRelease;
const files = () => certificateFiles(directory);
const path = (name: string): string => join(directory, name);
const read = (name: string): string => readFileSync(path(name), 'utf8');

beforeAll(async () => {
  started = newDirectory();
  await configureRelease(wantedIn(started), NOW);
});
afterAll(() => rmSync(started, { recursive: true }));
beforeEach(() => {
  directory = newDirectory();
  wanted = wantedIn(directory);
});
afterEach(() => rmSync(directory, { recursive: true }));

function newDirectory(): string {
  const made = mkdtempSync(join(tmpdir(), 'holdfast-configure-'));
  cpSync(SOURCE, made, { recursive: true });
  return made;
}

function wantedIn(root: string): WantedRelease {
  return {
    directory: root,
    database: { url: JDBC, user: 'martiuser', password: 'core-password-1', connections: 200 },
    ldap: { url: 'ldap://authentik-ldap:3389', base: 'DC=core,DC=holdfast', password: 'bind-password-1' },
    names: { country: 'AT', state: 'Tirol', city: 'none', organization: 'Fire District 7', unit: 'Rescue' },
    hosts: ['cot.example.org', 'takserver', 'core', 'localhost', '127.0.0.1', '198.51.100.7'],
  };
}

/** The first start is behind it. */
function start(): void {
  cpSync(started, directory, { recursive: true });
}

async function configured(now = NOW): Promise<string[]> {
  const result = await configureRelease(wanted, now);
  if ('problems' in result) throw new Error(JSON.stringify(result.problems));
  return result.messages;
}

async function problems(): Promise<{ message: string; remedy: string }[]> {
  const before = snapshot();
  const result = await configureRelease(wanted, NOW);
  expect(snapshot()).toEqual(before);
  return 'problems' in result ? result.problems : [];
}

/** Every file with its bytes, its time and its inode. */
function snapshot(): Record<string, string> {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' }).toSorted();
  return Object.fromEntries(
    names
      .filter((name) => statSync(path(name)).isFile())
      .map((name) => {
        const { mtimeNs, ino, mode } = statSync(path(name), { bigint: true });
        return [name, [mtimeNs, ino, mode, readFileSync(path(name), 'base64')].join()];
      }),
  );
}

const certificate = (file: string): X509Certificate => new X509Certificate(readFileSync(file));
const openssl = (...args: string[]): string =>
  execFileSync('openssl', args, { cwd: files().directory, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

describe('a fresh release', { timeout: 60_000 }, () => {
  it('has all that it starts with, readable by those who must read it alone', async () => {
    rmSync(path('conf/retention/mission-archiving-config.yml'));
    rmSync(path('mission-archive/mission-store.yml'));
    const messages = await configured();
    expect(messages.join('\n')).toContain('CoreConfig.xml from CoreConfig.example.xml');
    for (const name of ['CoreConfig.xml', 'UserAuthenticationFile.xml', 'TAKIgniteConfig.xml'])
      expect(existsSync(path(name))).toBe(true);
    expect(read('TAKIgniteConfig.xml')).toBe(read('TAKIgniteConfig.example.xml'));
    expect(read('conf/retention/mission-archiving-config.yml')).toContain('missionCronExpression: "-"');
    expect(read('mission-archive/mission-store.yml')).toContain('missionArchiveStoreEntries: []');
    const modeOf = (name: string): number => statSync(path(name)).mode & 0o777;
    expect([modeOf('CoreConfig.xml'), modeOf('UserAuthenticationFile.xml')]).toEqual([0o640, 0o600]);
    for (const name of readdirSync(files().directory).filter((each) =>
      /\.key$|^(?:ca-signing|takserver|svc_api)\.p12$/.test(each),
    ))
      expect([name, modeOf(`certs/files/${name}`)]).toEqual([name, 0o600]);
  });

  it('serves by an RSA key, with which it signs its tokens, under every name of the server; signs by its CA', async () => {
    start();
    const server = certificate(files().server);
    expect(server.publicKey.asymmetricKeyType).toBe('rsa');
    expect(server.verify(certificate(files().ca).publicKey)).toBe(true);
    for (const host of ['cot.example.org', 'takserver', 'localhost']) expect(server.checkHost(host)).toBe(host);
    for (const address of ['127.0.0.1', '198.51.100.7']) expect(server.checkIP(address)).toBe(address);
    expect(certificate(files().ca).subject).toMatch(/^C=AT\nST=Tirol\nO=Fire District 7\nOU=Rescue\nCN=Holdfast CA /);
    expect(certificate(files().api).subject).toBe('O=Fire District 7\nOU=Rescue\nCN=svc_api');
    const { root } = parseXml(read('CoreConfig.xml'));
    const signing = attributesOf(elementsAt(root, 'certificateSigning', 'TAKServerCAConfig')[0]);
    expect(signing['signatureAlg']).toBe('SHA384withECDSA');
  });

  it('has the truststore of the federation, without which messaging does not start, until the core writes it', async () => {
    start();
    expect(read('certs/files/fed-truststore.jks')).toBe(read('certs/files/truststore-root.p12'));
    writeFileSync(path('certs/files/fed-truststore.jks'), 'written by the core');
    await configured();
    expect(read('certs/files/fed-truststore.jks')).toBe('written by the core');
  });

  it('lets management administer by its certificate, beside whom the file knows already', async () => {
    start();
    const text = `<UserAuthenticationFile xmlns="http://bbn.com/marti/xml/bindings">
  <User identifier="ada" password="$2a$10$x" passwordHashed="true" role="ROLE_ADMIN"/><!-- mine -->
</UserAuthenticationFile>
`;
    writeFileSync(path('UserAuthenticationFile.xml'), text);
    await configured();
    const written = read('UserAuthenticationFile.xml');
    expect(written).toContain('<!-- mine -->');
    expect(
      readUsersDocument(written).entries.map(({ identifier, fingerprint, role }) => ({
        identifier,
        fingerprint,
        role,
      })),
    ).toEqual([
      { identifier: 'ada', fingerprint: undefined, role: 'ROLE_ADMIN' },
      { identifier: 'svc_api', fingerprint: certificate(files().api).fingerprint256, role: 'ROLE_ADMIN' },
    ]);
  });

  it('is not touched by a second start: no byte, no time, no inode', async () => {
    start();
    const before = snapshot();
    expect(await configured(new Date(NOW.getTime() + DAY_MS))).toEqual([]);
    expect(snapshot()).toEqual(before);
  });

  it('gets a certificate for an address that is new, and for one that is near its end, by the same CA', async () => {
    start();
    const [ca, first] = [readFileSync(files().ca, 'utf8'), certificate(files().server).serialNumber];
    wanted = { ...wanted, hosts: [...wanted.hosts, 'other.example.org'] };
    expect(await configured()).toEqual([expect.stringContaining('other.example.org')]);
    const second = certificate(files().server);
    expect(second.serialNumber).not.toBe(first);
    const late = new Date(NOW.getTime() + 700 * DAY_MS);
    await configured(late);
    expect(certificate(files().server).serialNumber).not.toBe(second.serialNumber);
    expect(Date.parse(certificate(files().api).validTo)).toBeGreaterThan(late.getTime() + 31 * DAY_MS);
    expect(readFileSync(files().ca, 'utf8')).toBe(ca);
    const before = snapshot();
    await configured(late);
    expect(snapshot()).toEqual(before);
  });
});

describe("an operator's own file", { timeout: 60_000 }, () => {
  it('is kept once as it was, and what the core has added stays', async () => {
    start();
    const own = read('CoreConfig.example.xml').replace('<network ', '<network serverId="mine" ');
    writeFileSync(path('CoreConfig.xml'), own);
    expect((await configured()).join('\n')).toContain(`Changed ${path('CoreConfig.xml')}`);
    expect(read('CoreConfig.xml.before-holdfast')).toBe(own);
    expect(statSync(path('CoreConfig.xml.before-holdfast')).mode & 0o777).toBe(0o600);
    expect(read('CoreConfig.xml')).toContain('serverId="mine"');
    wanted = { ...wanted, ldap: { ...wanted.ldap, url: 'ldap://elsewhere:389' } };
    await configured();
    expect(read('CoreConfig.xml.before-holdfast')).toBe(own);
  });

  it('is prepared in conf too, where the core looks first', async () => {
    start();
    for (const name of ['conf/CoreConfig.xml', 'CoreConfig.xml'])
      copyFileSync(path('CoreConfig.example.xml'), path(name));
    await configured();
    for (const name of ['conf/CoreConfig.xml', 'CoreConfig.xml']) expect(read(name)).toContain('core-password-1');
  });
});

describe('what is wrong', () => {
  it('is told all at once, with the file and a remedy, and nothing is written', async () => {
    writeFileSync(path('CoreConfig.xml'), '<!DOCTYPE x><Configuration xmlns="http://bbn.com/marti/xml/config"/>');
    writeFileSync(path('UserAuthenticationFile.xml'), '<User');
    await configured().catch(() => undefined);
    expect(existsSync(files().directory)).toBe(false);
    const found = await problems();
    expect(found.map(({ message }) => message)).toEqual([
      expect.stringMatching(/CoreConfig\.xml: a document type \(DOCTYPE\) is not allowed/),
      expect.stringMatching(/UserAuthenticationFile\.xml: line 1/),
    ]);
    for (const { remedy } of found) expect(remedy).not.toBe('');
  });

  it('a directory without a release', async () => {
    rmSync(path('CoreConfig.example.xml'));
    expect(await problems()).toEqual([
      {
        message: expect.stringMatching(/^No release in /) as string,
        remedy: expect.stringMatching(/setup\.sh/) as string,
      },
    ]);
  });

  it('a key that a crash has left before its certificate was made is no CA yet', async () => {
    start();
    const key = readFileSync(files().caKey);
    rmSync(files().directory, { recursive: true });
    mkdirSync(files().directory);
    writeFileSync(files().caKey, key);
    await configured();
    expect(certificate(files().server).verify(certificate(files().ca).publicKey)).toBe(true);
  });

  it('a CA of which one half is gone, or whose halves do not belong together: never a new one in its place', async () => {
    start();
    const key = readFileSync(files().caKey);
    rmSync(files().caKey);
    expect((await problems())[0]?.message).toMatch(/ca-do-not-share\.key is missing, which belongs to .*ca\.pem/);
    copyFileSync(files().serverKey, files().caKey);
    expect((await problems())[0]?.message).toMatch(/is not the key of/);
    writeFileSync(files().caKey, 'no key');
    expect((await problems())[0]?.message).toMatch(/Couldn't read the private key/);
    writeFileSync(files().caKey, key);
    expect(await problems()).toEqual([]);
  });
});

/** The scripts of the made-up release, which are called as those of a release are. */
function script(name: string, ...args: string[]): void {
  const cwd = path('certs');
  for (const each of readdirSync(cwd).filter((file) => file.endsWith('.sh'))) chmodSync(join(cwd, each), 0o755);
  const env = { ...process.env, STATE: 'Tirol', CITY: 'Imst', ORGANIZATIONAL_UNIT: 'Rescue' };
  const { status, stderr } = spawnSync(`./${name}`, args, { cwd, env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${name}: ${stderr}`);
}

describe.skipIf(!hasOpenssl)('the files of the CA, as openssl sees them', { timeout: 60_000 }, () => {
  it('verify with the list, and revokeCert.sh goes on with list and index, which we read back', async () => {
    start();
    const verify = (name: string): string =>
      openssl(
        'verify',
        '-x509_strict',
        '-CAfile',
        'ca.pem',
        '-crl_check',
        '-CRLfile',
        'ca.crl',
        '-attime',
        String(NOW.getTime() / 1000),
        name,
      );
    expect(verify('takserver.pem')).toContain('OK');
    expect(verify('svc_api.pem')).toContain('OK');
    const revoked = certificate(files().api);
    const at = (name: string): string => join(files().directory, name);
    script('revokeCert.sh', at('svc_api'), at('ca-do-not-share'), at('ca'));
    const serial = revoked.serialNumber.toLowerCase();
    expect(readIndex(readFileSync(files().revocationIndex, 'utf8'))).toMatchObject({
      revoked: [{ serial }],
      damaged: [],
    });
    const list = readSignedList(readFileSync(files().revocationList, 'utf8'), certificate(files().ca).publicKey);
    expect(list).toMatchObject({ revoked: [{ serial }] });
    expect(
      spawnSync('openssl', ['verify', '-CAfile', 'ca.pem', '-crl_check', '-CRLfile', 'ca.crl', 'svc_api.pem'], {
        cwd: files().directory,
        encoding: 'utf8',
      }).stderr,
    ).toContain('revoked');
    const written = readFileSync(files().revocationList, 'utf8');
    expect(await configured(new Date())).toEqual([expect.stringContaining('svc_api')]);
    expect(certificate(files().api).serialNumber).not.toBe(revoked.serialNumber);
    expect(readFileSync(files().revocationList, 'utf8')).toBe(written);
  });

  it('keep whom the old list names when a new one is due', async () => {
    start();
    const at = (name: string): string => join(files().directory, name);
    script('revokeCert.sh', at('svc_api'), at('ca-do-not-share'), at('ca'));
    const late = new Date(Date.now() + 720 * DAY_MS);
    await configured(late);
    const list = readSignedList(readFileSync(files().revocationList, 'utf8'), certificate(files().ca).publicKey);
    if ('refused' in list) throw new Error(list.refused);
    expect(list.revoked).toHaveLength(1);
    expect(list.nextUpdate?.getTime()).toBeGreaterThan(late.getTime() + 700 * DAY_MS);
  });

  it('of an operator, RSA with an encrypted key, are kept and used', async () => {
    script('makeRootCa.sh', '--ca-name', 'District CA');
    const [ca, key] = [readFileSync(files().ca), readFileSync(files().caKey)];
    expect(key.toString()).toContain('ENCRYPTED');
    script('makeCert.sh', 'server', 'takserver');
    const server = certificate(files().server);
    wanted = { ...wanted, hosts: ['takserver'] };
    await configured(new Date());
    expect([readFileSync(files().ca), readFileSync(files().caKey)]).toEqual([ca, key]);
    expect(certificate(files().server).fingerprint256).toBe(server.fingerprint256);
    expect(readFileSync(files().serverKey, 'utf8')).not.toContain('ENCRYPTED');
    expect(readFileSync(`${files().serverKey}.before-holdfast`, 'utf8')).toContain('ENCRYPTED');
    const { root } = parseXml(read('CoreConfig.xml'));
    const signing = attributesOf(elementsAt(root, 'certificateSigning', 'TAKServerCAConfig')[0]);
    expect(signing['signatureAlg']).toBe('SHA256withRSA');
    expect(
      openssl('verify', '-CAfile', 'ca.pem', '-crl_check', '-CRLfile', 'ca.crl', 'takserver.pem', 'svc_api.pem'),
    ).toMatch(/OK\n.*OK/);
    const before = snapshot();
    expect(await configured(new Date())).toEqual([]);
    expect(snapshot()).toEqual(before);
    rmSync(files().revocationList);
    await configured(new Date());
    expect(openssl('crl', '-in', 'ca.crl', '-CAfile', 'ca.pem', '-noout', '-text')).toContain(
      'sha256WithRSAEncryption',
    );
  });

  it('of an operator under another password are refused, with the command that opens them', async () => {
    start();
    openssl('pkey', '-in', 'ca-do-not-share.key', '-aes256', '-passout', 'pass:otherword', '-out', 'x.key');
    copyFileSync(join(files().directory, 'x.key'), files().caKey);
    expect(await problems()).toEqual([
      {
        message: expect.stringMatching(/password atakatak/) as string,
        remedy: expect.stringMatching(/openssl pkey -in/) as string,
      },
    ]);
  });
});

describe.skipIf(!hasKeytool)('the keystores, as Java reads them (skipped without keytool)', () => {
  const keytool = (file: string, type = 'PKCS12'): string =>
    execFileSync(
      'keytool',
      [
        '-J-Duser.language=en',
        '-list',
        '-v',
        '-storetype',
        type,
        '-keystore',
        join(files().directory, file),
        '-storepass',
        'atakatak',
      ],
      { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] },
    );

  it('hold one entry each: a key with its chain, or a trusted certificate', () => {
    start();
    const server = keytool('takserver.p12');
    const shape = (file: string): string[] =>
      (file === 'takserver.p12' ? server : keytool(file)).match(
        /contains \d+ entr|Entry type: \w+|chain length: \d+/g,
      ) ?? [];
    expect(shape('takserver.p12')).toEqual(['contains 1 entr', 'Entry type: PrivateKeyEntry', 'chain length: 2']);
    expect(shape('svc_api.p12')).toEqual(['contains 1 entr', 'Entry type: PrivateKeyEntry', 'chain length: 2']);
    expect(shape('ca-signing.p12')).toEqual(['contains 1 entr', 'Entry type: PrivateKeyEntry', 'chain length: 1']);
    expect(shape('truststore-root.p12')).toEqual(['contains 1 entr', 'Entry type: trustedCertEntry']);
    expect(keytool('fed-truststore.jks', 'JKS')).toContain('Entry type: trustedCertEntry');
    expect(server).toMatch(/Alias name: takserver\n[^]*3072-bit RSA/);
  });
});
