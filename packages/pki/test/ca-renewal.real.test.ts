import { X509Certificate } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { prolongCa, replaceCa } from '../ca-renewal.ts';
import { newCa } from '../certificate-authority.ts';
import { ensureServerCertificate } from '../server-certificate.ts';
import { enrolled, NAMES, revocationOf, workshops } from './workshop.ts';

const workshop = workshops();

const MADE = new Date('2026-11-22T10:00:00Z');
const LATER = new Date('2035-11-22T10:00:00Z');

describe('a CA that is renewed for its key', () => {
  it('has the same name and key, ends later, and has signed what it had signed', async () => {
    const { files, open, directory } = await workshop(MADE);
    const { signed } = await enrolled(await open(), 'ada', LATER);
    const old = new X509Certificate(readFileSync(files.ca));
    const kept = await prolongCa(files, LATER);
    const renewed = new X509Certificate(readFileSync(files.ca));
    expect(new X509Certificate(readFileSync(join(kept, 'ca.pem'))).raw).toEqual(old.raw);
    expect([renewed.subject, renewed.publicKey.equals(old.publicKey)]).toEqual([old.subject, true]);
    expect(+new Date(renewed.validTo)).toBeGreaterThan(+new Date(old.validTo) + 8 * 365 * 86_400_000);
    expect(renewed.serialNumber).not.toBe(old.serialNumber);
    expect(new X509Certificate(signed.pem).checkIssued(renewed)).toBe(true);
    expect((await ensureServerCertificate(directory, NAMES, LATER)).changed).toBe(true);
    expect(readFileSync(files.server, 'utf8')).toContain(readFileSync(files.ca, 'utf8'));
    expect(readFileSync(files.rootCa, 'utf8')).toBe(readFileSync(files.ca, 'utf8'));
    expect((await ensureServerCertificate(directory, NAMES, LATER)).changed).toBe(false);
  });

  it('stays on P-384 when an earlier version has made it, as does what it signs for the stack', async () => {
    const { files, directory } = await workshop(MADE);
    const { certificate, key } = await newCa(MADE, 'P-384');
    rmSync(files.directory, { recursive: true });
    mkdirSync(files.directory);
    writeFileSync(files.ca, certificate);
    writeFileSync(files.caKey, key);
    const curveOf = (file: string) =>
      new X509Certificate(readFileSync(file)).publicKey.asymmetricKeyDetails?.namedCurve;
    await ensureServerCertificate(directory, NAMES, MADE);
    expect([curveOf(files.ca), curveOf(files.server)]).toEqual(['secp384r1', 'secp384r1']);
    await prolongCa(files, LATER);
    await ensureServerCertificate(directory, NAMES, LATER);
    const renewed = new X509Certificate(readFileSync(files.ca));
    expect([curveOf(files.ca), curveOf(files.server)]).toEqual(['secp384r1', 'secp384r1']);
    expect([
      renewed.verify(renewed.publicKey),
      new X509Certificate(readFileSync(files.server)).verify(renewed.publicKey),
    ]).toEqual([true, true]);
    rmSync(files.server);
    rmSync(files.ca);
    rmSync(files.caKey);
    rmSync(files.rootCa);
    await ensureServerCertificate(directory, NAMES, LATER);
    expect([curveOf(files.ca), curveOf(files.server)]).toEqual(['prime256v1', 'prime256v1']);
  });

  it('still knows who was revoked', async () => {
    const { files, open } = await workshop(MADE);
    const authority = await open();
    const { signed } = await enrolled(authority, 'ada', MADE);
    await authority.writeRevocationList([revocationOf(signed, MADE)], MADE);
    await prolongCa(files, LATER);
    rmSync(files.revocationIndex);
    expect((await open()).revokedInFiles()).toMatchObject([{ serial: signed.serial }]);
  });
});

describe('a new CA', () => {
  it('takes the place of the old one, of which everything is kept apart, and nothing of it is accepted', async () => {
    const { files, open, directory, messages } = await workshop(MADE);
    const authority = await open();
    const { signed } = await enrolled(authority, 'ada', MADE);
    await authority.writeRevocationList([revocationOf(signed, MADE)], MADE);
    const old = Object.fromEntries(
      readdirSync(files.directory).map((name) => [name, readFileSync(join(files.directory, name))]),
    );
    const kept = await replaceCa(files, LATER);
    expect(readdirSync(files.directory).toSorted()).toEqual(
      ['ca-do-not-share.key', 'ca.pem', basename(kept)].toSorted(),
    );
    for (const [name, content] of Object.entries(old)) expect(readFileSync(join(kept, name))).toEqual(content);
    await ensureServerCertificate(directory, NAMES, LATER);
    const ca = new X509Certificate(readFileSync(files.ca));
    expect(new X509Certificate(readFileSync(files.server)).verify(ca.publicKey)).toBe(true);
    expect(new X509Certificate(signed.pem).verify(ca.publicKey)).toBe(false);
    expect([(await open()).revokedInFiles(), messages]).toEqual([[], []]);
  });

  it('is the one or the other after a crash at any step, and the same command again makes no third', async () => {
    const { files, directory } = await workshop(MADE);
    const { certificate: old } = { certificate: readFileSync(files.ca, 'utf8') };
    const next = await newCa(LATER, 'P-256');
    const journal = `${JSON.stringify({ keep: 'old-2035-11-22T100000Z', ...next })}\n`;
    const kept = join(files.directory, 'old-2035-11-22T100000Z');
    const move = (name: string) => () => renameSync(join(files.directory, name), join(kept, name));
    const steps = [
      () => writeFileSync(files.renewal, journal),
      () => mkdirSync(kept),
      ...['ca-do-not-share.key', 'takserver.pem', 'root-ca.pem', 'ca.pem', 'takserver.key'].map(move),
      () => writeFileSync(files.caKey, next.key),
      () => writeFileSync(files.ca, next.certificate),
    ];
    writeFileSync(`${files.renewal}.new`, journal.slice(0, 50));
    expect((await ensureServerCertificate(directory, NAMES, LATER)) && readFileSync(files.ca, 'utf8')).toBe(old);
    for (const [at, step] of steps.entries()) {
      step();
      const crashed = `${directory}-${at}`;
      cpSync(directory, crashed, { recursive: true });
      await ensureServerCertificate(crashed, NAMES, LATER);
      const inCopy = (name: string): string => join(crashed, 'certs/files', name);
      expect(readFileSync(inCopy('ca.pem'), 'utf8')).toBe(next.certificate);
      expect(readFileSync(inCopy('ca-do-not-share.key'), 'utf8')).toBe(next.key);
      expect(readFileSync(inCopy('old-2035-11-22T100000Z/ca.pem'), 'utf8')).toBe(old);
      expect(existsSync(inCopy('ca-renewal.json'))).toBe(false);
      rmSync(crashed, { recursive: true });
    }
    expect(await replaceCa(files, new Date('2035-11-23T00:00:00Z'))).toBe(kept);
    expect(readFileSync(files.ca, 'utf8')).toBe(next.certificate);
  });

  it('that cannot be understood stops the start with the file and the way out', async () => {
    const { files, directory } = await workshop(MADE);
    writeFileSync(files.renewal, '{"keep":"../../elsewhere","key":"","certificate":""}');
    await expect(ensureServerCertificate(directory, NAMES, MADE)).rejects.toMatchObject({
      message: expect.stringContaining('ca-renewal.json cannot be understood'),
      remedy: expect.stringContaining('remove it'),
    });
  });

  it('made twice in a second keeps both old ones', async () => {
    const { files } = await workshop(MADE);
    const kept = [await replaceCa(files, LATER), await replaceCa(files, LATER)];
    expect(new Set(kept.map((directory) => readFileSync(join(directory, 'ca-do-not-share.key'), 'utf8'))).size).toBe(2);
  });
});
