// The certificate files of a core, made by OpenSSL and by a library, as the health module sees them on the disk.

import 'reflect-metadata';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DAY_MS } from '@holdfast/kit/time';
import { coreFiles } from '../../shared/core/files.ts';
import { certificates } from '../../shared/health/modules/certificates.ts';
import type { Measurement } from '../../shared/health/port.ts';
import { DEFAULT_THRESHOLDS } from '../../shared/settings/status.ts';
import { fakeMonitored, history, world } from '../health/fake-monitored.ts';
import { issue, type Issued } from '../support/certificates.ts';

const inDays = (days: number): Date => new Date(Date.now() + days * DAY_MS);
const asRoot = process.getuid?.() === 0;

let ca: Issued;
let server: Issued;
let api: Issued;
let root: string;
let files: string;

const put = (name: string, content: string | Uint8Array): void => writeFileSync(join(files, name), content);
/** Nobody has a certificate: what is said is said of the files. */
function measured(): Promise<Measurement> {
  const around = { ...world(), now: new Date() };
  around.core.certificates = [];
  return certificates.measure({ ...fakeMonitored(around), coreFiles: coreFiles(root) }, DEFAULT_THRESHOLDS, history());
}
const verdict = async (): Promise<[string, string]> => {
  const { status, message } = await measured();
  return [status, message];
};

async function listOf(issuer: Issued, nextUpdate: Date): Promise<Buffer> {
  const list = await x509.X509CrlGenerator.create({
    issuer: issuer.certificate.subject,
    thisUpdate: inDays(-10),
    nextUpdate,
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    signingKey: issuer.keys.privateKey,
  });
  return Buffer.from(list.rawData);
}

beforeAll(async () => {
  ca = await issue('ca', undefined, { ca: true, to: inDays(3650) });
  server = await issue('takserver', ca, { to: inDays(700) });
  api = await issue('svc_api', ca, { to: inDays(300) });
});
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'holdfast-core-files-'));
  files = join(root, 'certs/files');
  mkdirSync(files, { recursive: true });
  put('ca.pem', ca.pem);
  put('takserver.pem', server.pem + ca.pem);
  put('svc_api.pem', api.pem);
  put('ca.crl', await listOf(ca, inDays(7)));
});
afterEach(() => rmSync(root, { recursive: true }));

describe('the files of a core', () => {
  it('that are all as they should be are ok', async () =>
    expect(await verdict()).toEqual([
      'ok',
      '3 certificates. The first expires in 299 days. The revocation list is valid for 6 more days.',
    ]));

  it('are shown by name and kind, services too, the second form of a certificate and keys not', async () => {
    for (const name of ['svc_nodered.pem', 'svc_api-trusted.pem', 'john.pem', 'svc_x.key']) put(name, api.pem);
    const { data } = await measured();
    expect((data['certificates'] as { name: string; kind: string }[]).map(({ name, kind }) => [name, kind])).toEqual([
      ['ca.pem', 'ca'],
      ['takserver.pem', 'server'],
      ['svc_api.pem', 'service'],
      ['svc_nodered.pem', 'service'],
    ]);
    expect(data).toMatchObject({ directory: files });
    expect((data['certificates'] as { subject: string }[])[0]?.subject).toBe('CN=ca, O=Holdfast test');
  });

  it('near their end are a warning and then critical, the CA by whatever of its chain ends first', async () => {
    put('takserver.pem', (await issue('takserver', ca, { to: inDays(20) })).pem);
    expect(await verdict()).toEqual(['warning', expect.stringMatching(/^takserver\.pem: .* expires in 19 days;/)]);
    put('svc_api.pem', (await issue('svc_api', ca, { to: inDays(3) })).pem);
    expect(await verdict()).toEqual(['critical', expect.stringMatching(/^svc_api\.pem: .* expires in 2 days;/)]);
    put('svc_api.pem', api.pem);
    put('ca.pem', ca.pem + (await issue('root', undefined, { ca: true, to: inDays(5) })).pem);
    expect(await verdict()).toEqual(['critical', expect.stringMatching(/^ca\.pem: .* expires in 4 days;/)]);
  });

  it.each([
    ['takserver.pem', 'expired', () => issue('takserver', ca, { from: inDays(-9), to: inDays(-2) }), /expired on 2/],
    ['svc_api.pem', 'of another CA', () => issue('svc_api', undefined), /is not signed by the CA in ca\.pem/],
    ['ca.pem', 'no CA', async () => server, /contains no CA certificate/],
  ] as const)('%s that is %s is critical', async (name, _, make, says) => {
    put(name, (await make()).pem);
    const { status, details } = await measured();
    expect(status).toBe('critical');
    expect(details).toContainEqual(expect.stringMatching(new RegExp(`^${name} ${says.source}`)));
  });

  it('cut off, empty, absent, too large or no file at all are critical, each with its reason', async () => {
    truncateSync(join(files, 'takserver.pem'), 300);
    expect(await verdict()).toEqual(['critical', 'takserver.pem contains no certificate.']);
    put('takserver.pem', server.pem.replace(/.{200}\n-----END/s, '\n-----END'));
    expect((await verdict())[1]).toMatch(/^takserver\.pem cannot be understood: it is cut off/);
    put('takserver.pem', server.pem.padEnd(300_000, '\n'));
    expect((await verdict())[1]).toMatch(/^takserver\.pem is larger than 262144 bytes/);
    rmSync(join(files, 'takserver.pem'));
    expect((await verdict())[1]).toBe('takserver.pem is missing.');
    execFileSync('mkfifo', [join(files, 'takserver.pem')]);
    expect((await verdict())[1]).toBe('takserver.pem is not a file.');
    rmSync(join(files, 'takserver.pem'));
    symlinkSync('/dev/zero', join(files, 'takserver.pem'));
    expect((await verdict())[1]).toBe('takserver.pem is not a file.');
  });

  it('of a core that was never started are missing, in one sentence', async () => {
    rmSync(join(root, 'certs'), { recursive: true });
    expect(await verdict()).toEqual(['critical', expect.stringContaining(`no certificates in ${files}: `)]);
  });

  it.skipIf(asRoot)('that may not be read are critical', async () => {
    chmodSync(join(files, 'takserver.pem'), 0);
    expect((await verdict())[1]).toBe('takserver.pem cannot be read (EACCES).');
    chmodSync(files, 0o100);
    expect((await verdict())[1]).toMatch(/cannot be listed \(EACCES\)/);
    chmodSync(files, 0o700);
  });
});

describe('the revocation list', () => {
  it('that was not written for five days is a warning, an expired one critical', async () => {
    put('ca.crl', await listOf(ca, inDays(1.5)));
    expect(await verdict()).toEqual(['warning', expect.stringMatching(/expires in 3[56] hours and was not renewed/)]);
    put('ca.crl', await listOf(ca, inDays(-0.01)));
    expect(await verdict()).toEqual(['critical', expect.stringMatching(/the revocation list, expired on 20/)]);
  });

  it('of another CA, by its name or by its key, is critical', async () => {
    const namesake = await issue('ca', undefined, { ca: true, to: inDays(900) });
    const other = await issue('other', undefined, { ca: true });
    for (const stranger of [namesake, other, { ...ca, certificate: other.certificate }]) {
      put('ca.crl', await listOf(stranger, inDays(7)));
      expect((await verdict())[1]).toBe('ca.crl, the revocation list, is not signed by the CA in ca.pem.');
    }
    put('ca.pem', ca.pem + namesake.pem);
    put('ca.crl', await listOf(namesake, inDays(7)));
    expect((await verdict())[0]).toBe('ok');
  });

  it('that was changed, cut off, emptied or taken away is critical', async () => {
    const der = await listOf(ca, inDays(7));
    const changed = Buffer.from(der);
    changed[changed.length - 90] = (changed[changed.length - 90] ?? 0) ^ 1;
    put('ca.crl', changed);
    expect((await verdict())[0]).toBe('critical');
    for (const broken of [der.subarray(0, 100), der.subarray(0, -1), 'nothing of the kind', '']) {
      put('ca.crl', broken);
      expect((await verdict())[1]).toMatch(/^ca\.crl, the revocation list, cannot be understood/);
    }
    rmSync(join(files, 'ca.crl'));
    expect((await verdict())[1]).toBe('ca.crl, the revocation list, is missing.');
  });

  it('that OpenSSL has made with a CA of its own is ok, RSA or P-384, PEM or DER, with thousands of lines', async () => {
    const openssl = (command: string, ...more: string[]): void =>
      void execFileSync('openssl', [...command.split(' '), ...more], { cwd: root, stdio: 'pipe' });
    put('../../openssl.cnf', '[ca]\ndefault_ca=own\n[own]\ndatabase=index.txt\ndefault_md=sha384\n');
    const revoked = (line: number): string =>
      `R\t400101000000Z\t250101000000Z\t${40_000_000 + line}\tunknown\t/CN=${line}\n`;
    for (const [form, lines, ...kind] of [
      ['PEM', 0, 'rsa:2048'],
      ['PEM', 20_000, 'ec', '-pkeyopt', 'ec_paramgen_curve:P-384'],
      ['DER', 1, 'ec', '-pkeyopt', 'ec_paramgen_curve:P-384'],
    ] as const) {
      put('../../index.txt', Array.from({ length: lines }, (_, line) => revoked(line)).join(''));
      const request = 'req -nodes -newkey';
      openssl(
        request,
        ...kind,
        ...'-x509 -days 900 -subj /CN=ca/O=x -keyout ca.key -out certs/files/ca.pem'.split(' '),
      );
      openssl(request, ...kind, ...'-subj /CN=x -keyout x.key -out x.csr'.split(' '));
      const signed = 'x509 -req -in x.csr -days 400 -CA certs/files/ca.pem -CAkey ca.key -CAcreateserial';
      for (const name of ['takserver', 'svc_api']) openssl(`${signed} -out certs/files/${name}.pem`);
      const withCa = '-keyfile ca.key -cert certs/files/ca.pem';
      openssl(`ca -config openssl.cnf -gencrl -crldays 9 ${withCa} -out list.pem`);
      openssl(`crl -in list.pem -outform ${form} -out certs/files/ca.crl`);
      const before = process.cpuUsage();
      expect(await verdict()).toEqual(['ok', expect.stringMatching(/first expires in 399 days.* 8 more days\.$/)]);
      expect(process.cpuUsage(before).user).toBeLessThan(1_000_000);
    }
  });
});
