// What the flow engine is given of the certificates that management keeps: the right one, whole,
// and only when it is another.

import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
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
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DAY_MS } from '@holdfast/kit/time';
import { certificateFiles } from '@holdfast/pki/certificate-files';
import { type TestCertificate, type TestPki, testPki } from '../../../test/core/fake-test-pki.ts';
import { flowsCertificateFiles, giveToFlows, supplyFlows } from '../flows/certificate.ts';

const ago = (days: number): Date => new Date(Date.now() - days * DAY_MS);

let root: string;
let core: string;
let directory: string;
let pki: TestPki;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'holdfast-flows-'));
  [core, directory] = [join(root, 'core'), join(root, 'flows')];
  mkdirSync(join(core, 'certs/holdfast'), { recursive: true });
  mkdirSync(join(core, 'certs/files'));
  mkdirSync(directory);
  pki = await testPki();
  writeFileSync(certificateFiles(core).ca, pki.ca.certificate);
});
afterEach(() => {
  for (const each of [root, pki.directory]) rmSync(each, { recursive: true, force: true });
});

/** As management keeps it. */
function keep({ key, certificate, signed }: TestCertificate, chain = pki.ca.certificate): string {
  const text = `${key}${certificate}${chain}`;
  writeFileSync(join(core, `certs/holdfast/${signed.hash.replaceAll(':', '').toLowerCase()}.pem`), text, {
    mode: 0o600,
  });
  return text;
}

const given = (): string => readFileSync(flowsCertificateFiles(directory).bundle, 'utf8');
const give = (): void => giveToFlows({ core, directory, mode: 0o640 }, new Date());

it.each([
  [0o640, 0o750],
  [0o600, 0o700],
])('lies where whoever may read it gets to: with %o in a directory of %o', (mode, wanted) => {
  // As the image of management has it, and so a new volume.
  chmodSync(directory, 0o700);
  giveToFlows({ core, directory, mode }, new Date());
  expect(statSync(directory).mode & 0o777).toBe(wanted);
});

it('leaves a directory as it is whose mode is enough: in a volume of Kubernetes it belongs to root', () => {
  chmodSync(directory, 0o2777);
  give();
  expect(statSync(directory).mode & 0o7777).toBe(0o2777);
});

it('is the newest certificate of svc_nodered with its key, in one file, and the CA; others see neither', async () => {
  keep(await pki.client('svc_nodered', { from: ago(3) }));
  const newest = keep(await pki.client('svc_nodered', { from: ago(1) }));
  keep(await pki.client('svc_probe', { from: ago(0) }));
  keep(await pki.client('svc_nodered2', { from: ago(0) }));
  give();
  expect(given()).toBe(newest);
  expect(readdirSync(directory).toSorted()).toEqual(['ca.pem', 'svc_nodered.pem']);
  expect(statSync(flowsCertificateFiles(directory).bundle).mode & 0o777).toBe(0o640);
  expect(readFileSync(flowsCertificateFiles(directory).ca, 'utf8')).toBe(pki.ca.certificate);
});

it('is none that has expired or not begun, and one of the CA in force before a newer one of another', async () => {
  keep(await pki.client('svc_nodered', { from: ago(9), to: ago(1) }));
  keep(await pki.client('svc_nodered', { from: ago(-1), to: ago(-9) }));
  give();
  expect(readdirSync(directory)).toEqual(['ca.pem']);
  const other = await testPki();
  const foreign = keep(await other.client('svc_nodered', { from: ago(0) }), other.ca.certificate);
  give();
  expect(given()).toBe(foreign);
  const own = keep(await pki.client('svc_nodered', { from: ago(2) }));
  give();
  expect(given()).toBe(own);
  rmSync(other.directory, { recursive: true });
});

it('stays the same file while nothing changes, and while there is nothing to give', async () => {
  keep(await pki.client('svc_nodered'));
  give();
  const { bundle } = flowsCertificateFiles(directory);
  const { ino } = statSync(bundle);
  give();
  rmSync(join(core, 'certs/holdfast'), { recursive: true });
  give();
  expect(statSync(bundle).ino).toBe(ino);
});

it('follows what management keeps, and says once that there is no CA yet', async () => {
  const messages: string[] = [];
  rmSync(certificateFiles(core).ca);
  const stop = supplyFlows({ core, directory, mode: 0o600 }, (message) => messages.push(message), 20);
  try {
    await expect.poll(() => messages.length, { timeout: 30_000 }).toBe(1);
    expect(messages[0]).toContain('ca.pem');
    writeFileSync(certificateFiles(core).ca, pki.ca.certificate);
    const text = keep(await pki.client('svc_nodered'));
    await expect.poll(() => readdirSync(directory).length, { timeout: 30_000 }).toBe(2);
    expect([given(), messages.length]).toEqual([text, 1]);
  } finally {
    stop();
  }
}, 60_000);

describe('feeds', () => {
  const write = (feeds: object[]): void => {
    mkdirSync(join(core, 'feeds'), { recursive: true });
    writeFileSync(join(core, 'feeds/feeds.json'), JSON.stringify({ feeds }));
  };
  const names = (): string[] => readdirSync(directory).toSorted();

  it('are given with the certificate of each that is on; what is off is taken away', async () => {
    const planes = keep(await pki.client('svc_feed_planes'));
    keep(await pki.client('svc_feed_ships'));
    keep(await pki.client('svc_other'));
    give();
    expect(names()).toEqual(['ca.pem']);
    write([
      { name: 'planes', active: true },
      { name: 'ships', active: false },
      { name: 'waits', active: true },
    ]);
    give();
    expect(names()).toEqual(['ca.pem', 'feeds.json', 'state', 'svc_feed_planes.pem']);
    expect(readFileSync(join(directory, 'svc_feed_planes.pem'), 'utf8')).toBe(planes);
    for (const name of ['feeds.json', 'svc_feed_planes.pem'])
      expect(statSync(join(directory, name)).mode & 0o777).toBe(0o640);
    expect(statSync(join(directory, 'state')).mode & 0o7777).toBe(0o2770);
    write([{ name: 'planes', active: false }]);
    give();
    expect(names()).toEqual(['ca.pem', 'feeds.json', 'state']);
  });

  it('bring back the report of the engine, but no link and nothing large', () => {
    const report = join(core, 'feeds/report.json');
    const state = join(directory, 'state/feeds.json');
    write([]);
    give();
    expect(existsSync(report)).toBe(false);
    writeFileSync(state, '{"at":"1"}');
    give();
    expect(readFileSync(report, 'utf8')).toBe('{"at":"1"}');
    writeFileSync(state, 'x'.repeat(500_001));
    give();
    rmSync(state);
    symlinkSync(certificateFiles(core).ca, state);
    give();
    expect(readFileSync(report, 'utf8')).toBe('{"at":"1"}');
  });
});

it('leaves the TLS of the process as it is, when it is the first to read a certificate', async () => {
  keep(await pki.client('svc_nodered'));
  const module = join(import.meta.dirname, '../flows/certificate.ts');
  const program = `
    const { giveToFlows } = await import(${JSON.stringify(module)});
    giveToFlows(${JSON.stringify({ core, directory, mode: 0o640 })}, new Date());
    const { createSecureContext } = await import('node:tls');
    console.log(typeof createSecureContext);`;
  const message = execFileSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8' });
  expect([message, given()]).toEqual(['function\n', expect.stringContaining('BEGIN CERTIFICATE')]);
});
