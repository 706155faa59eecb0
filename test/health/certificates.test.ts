// What the module says of the core's certificates and of its revocation list, level by level.

import { describe, expect, it } from 'vitest';
import type { CertificateFile, CoreCertificates, RevocationListFile } from '../../shared/core/port.ts';
import { certificates } from '../../shared/health/modules/certificates.ts';
import type { Measurement } from '../../shared/health/port.ts';
import { DEFAULT_THRESHOLDS } from '../../shared/settings/status.ts';
import { atDay, coreCertificates, fakeMonitored, history, world } from './fake-monitored.ts';

async function measure(files: CoreCertificates | Error | undefined): Promise<Measurement> {
  return certificates.measure(fakeMonitored({ ...world(), coreCertificates: files }), DEFAULT_THRESHOLDS, history());
}

/** Where the first file of that name, or the list, is another one. */
async function withFile(name: string, change: Partial<CertificateFile> | { problem: string }): Promise<Measurement> {
  const files = coreCertificates();
  files.certificates = files.certificates.map((file) => (file.name === name ? { ...file, ...change } : file));
  return measure(files);
}

const withList = (list: RevocationListFile): Promise<Measurement> =>
  measure({ ...coreCertificates(), revocationList: list });
const list = (days: number | null, ours: boolean | undefined = true, since = -1): RevocationListFile => ({
  ours,
  this_update: atDay(since),
  next_update: days === null ? null : atDay(days),
});

describe('a certificate of the core', () => {
  it.each([
    ['ca.pem', 31, 'ok'],
    ['ca.pem', 30.9, 'warning'],
    ['takserver.pem', 30, 'warning'],
    ['takserver.pem', 8, 'warning'],
    ['svc_api.pem', 7.9, 'critical'],
    ['svc_api.pem', 0.5, 'critical'],
  ])('%s with %f days left is %s', async (name, days, status) => {
    const measured = await withFile(name, { until: atDay(days) });
    expect(measured.status).toBe(status);
    if (status !== 'ok')
      expect(measured.message).toMatch(new RegExp(`^${name}: the certificate expires in \\d+ days?;`));
    expect(measured.data).toMatchObject({ least_days_left: Math.floor(days) });
  });

  it.each([
    [{ until: atDay(-0.5) }, 'takserver.pem expired on 2026-03-03.'],
    [{ from: atDay(1) }, 'takserver.pem is not valid before 2026-03-05.'],
    [{ ours: false }, 'takserver.pem is not signed by the CA in ca.pem.'],
    [{ problem: 'is missing' }, 'takserver.pem is missing.'],
  ])('that has %o is critical, and named', async (change, message) =>
    expect(await withFile('takserver.pem', change)).toMatchObject({ status: 'critical', message }),
  );
});

describe('the revocation list', () => {
  it.each([
    [list(2), 'ok'],
    [list(1.99), 'warning'],
    [list(0.02), 'warning'],
    [list(0), 'critical'],
    [list(-3), 'critical'],
    [list(null), 'critical'],
    [list(5, false), 'critical'],
    [{ ...list(5), ours: undefined }, 'critical'],
    [list(5, true, 0.5), 'critical'],
    [{ problem: 'is missing' }, 'critical'],
  ])('%o is %s', async (file, status) => {
    const measured = await withList(file);
    expect(measured.status).toBe(status);
    if (status !== 'ok') expect(measured.message).toMatch(/^ca\.crl, the revocation list, /);
  });
});

describe('where there is nothing to look at', () => {
  it('without CORE_DATA_DIR it says so, and is not ok', async () =>
    expect(await measure(undefined)).toMatchObject({
      status: 'warning',
      message: 'CORE_DATA_DIR is not set, so the certificates of the core are not checked.',
      data: { directory: null },
    }));

  it('in an empty directory one sentence says so instead of one for each file', async () => {
    const { directory, certificates: files } = coreCertificates();
    const gone = { problem: 'is missing' };
    const measured = await measure({
      directory,
      certificates: files.map(({ name, kind }) => ({ name, kind, ...gone })),
      revocationList: gone,
    });
    expect(measured).toMatchObject({
      status: 'critical',
      message: expect.stringMatching(/^no certificates in \/core\/certs\/files: /),
    });
    expect(measured.details).toHaveLength(1);
  });

  it('a directory that cannot be listed is critical, with the reason', async () =>
    expect(await measure(new Error('/core cannot be listed (EACCES)'))).toMatchObject({
      status: 'critical',
      message: '/core cannot be listed (EACCES).',
    }));
});
