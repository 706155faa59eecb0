import { X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { bundleHolds } from '../pkcs12.ts';
import { ensureServerCertificate, ensureServiceCertificate, isServerCertificateUsable } from '../server-certificate.ts';
import { DAY, NAMES, type Workshop, workshops } from './workshop.ts';

const workshop = workshops();

const serverOf = ({ files }: Workshop): X509Certificate => new X509Certificate(readFileSync(files.server));
const caOf = ({ files }: Workshop): X509Certificate => new X509Certificate(readFileSync(files.ca));
const contents = ({ files }: Workshop): Record<string, string> =>
  Object.fromEntries(
    readdirSync(files.directory)
      .toSorted()
      .map((name) => [name, readFileSync(`${files.directory}/${name}`, 'base64')]),
  );

describe('the server certificate', () => {
  it('stays until 30 days before its end, then another takes its place and it is said', async () => {
    const made = new Date('2026-11-22T10:00:00Z');
    const place = await workshop(made);
    const ensure = (now: number, names = NAMES) => ensureServerCertificate(place.directory, names, new Date(now));
    const [first, before] = [serverOf(place).serialNumber, contents(place)];
    expect((await ensure(+made + 698 * DAY)).changed).toBe(false);
    expect(contents(place)).toEqual(before);
    expect((await ensure(+made + 701 * DAY)).changed).toBe(true);
    expect(serverOf(place).serialNumber).not.toBe(first);
    expect(serverOf(place).verify(caOf(place).publicKey)).toBe(true);
    expect(await bundleHolds(read(place.files.serverBundle), Uint8Array.from(serverOf(place).raw), 'atakatak')).toBe(
      true,
    );
    expect((await ensure(+made + 701 * DAY, [...NAMES, '192.0.2.7', '::1'])).changed).toBe(true);
    expect([serverOf(place).checkIP('192.0.2.7'), serverOf(place).checkIP('::1')]).toEqual(['192.0.2.7', '::1']);
  });

  it('that was made while the clock was ahead is made anew when the clock is right, once', async () => {
    const made = new Date('2026-11-22T10:00:00Z');
    const place = await workshop(made);
    const ensure = (now: number) => ensureServerCertificate(place.directory, NAMES, new Date(now));
    expect((await ensure(+made + 800 * DAY)).changed).toBe(true);
    expect([(await ensure(+made + DAY)).changed, (await ensure(+made + DAY)).changed]).toEqual([true, false]);
    expect(Date.parse(serverOf(place).validFrom)).toBeLessThan(+made + DAY);
  });

  it('is not made again day after day when the CA itself is near its end', async () => {
    const made = new Date('2026-11-22T10:00:00Z');
    const place = await workshop(made);
    const late = +made + 3640 * DAY;
    expect((await ensureServerCertificate(place.directory, NAMES, new Date(late))).changed).toBe(true);
    expect(serverOf(place).validTo).toBe(caOf(place).validTo);
    expect((await ensureServerCertificate(place.directory, NAMES, new Date(late + DAY))).changed).toBe(false);
  });

  it.each(['server', 'serverKey'] as const)(
    'is healed when a crash left only the other half of it (%s)',
    async (half) => {
      const [place, other] = [await workshop(), await workshop()];
      const ca = readFileSync(place.files.ca, 'utf8');
      for (const text of ['', 'torn', readFileSync(other.files[half], 'utf8'), undefined]) {
        if (text === undefined) rmSync(place.files[half]);
        else writeFileSync(place.files[half], text);
        expect((await ensureServerCertificate(place.directory, NAMES, new Date())).changed).toBe(true);
        const [cert, key] = [readFileSync(place.files.server), readFileSync(place.files.serverKey)];
        expect(() => createSecureContext({ cert, key, ca })).not.toThrow();
        expect(readFileSync(place.files.ca, 'utf8')).toBe(ca);
      }
    },
  );
});

describe('the files of the CA', () => {
  it('that hold a key are readable by their owner only; there is one key of the CA', async () => {
    const { files } = await workshop();
    const open = readdirSync(files.directory).filter(
      (name) => (statSync(`${files.directory}/${name}`).mode & 0o077) !== 0,
    );
    expect(open.toSorted()).toEqual(
      'ca-trusted.pem ca.pem root-ca-trusted.pem root-ca.pem takserver-trusted.pem takserver.pem truststore-root.p12'.split(
        ' ',
      ),
    );
    const key = readFileSync(files.caKey, 'utf8');
    expect(
      readdirSync(files.directory).filter((name) => readFileSync(`${files.directory}/${name}`, 'utf8') === key),
    ).toEqual(['ca-do-not-share.key']);
  });

  it('that are made of others are brought up to date when they are missing, damaged or of another CA', async () => {
    const [place, other] = [await workshop(), await workshop()];
    const { files } = place;
    const derived = ['rootCa', 'caTrusted', 'rootCaTrusted', 'serverTrusted', 'truststore', 'serverBundle'] as const;
    const before = contents(place);
    const good = async (): Promise<void> => {
      expect((await ensureServerCertificate(place.directory, NAMES, new Date())).changed).toBe(false);
      const { 'takserver.p12': a, 'truststore-root.p12': b, ...now } = contents(place);
      expect(before).toMatchObject(now);
      expect([a, b].every((text) => text !== undefined)).toBe(true);
      expect(await bundleHolds(read(files.truststore), Uint8Array.from(caOf(place).raw), 'atakatak')).toBe(true);
      expect(() =>
        createSecureContext({ pfx: readFileSync(files.serverBundle), passphrase: 'atakatak' }),
      ).not.toThrow();
    };
    for (const file of derived) rmSync(files[file]);
    await good();
    for (const file of derived) writeFileSync(files[file], readFileSync(files[file]).subarray(0, 300));
    await good();
    for (const file of derived) writeFileSync(files[file], readFileSync(other.files[file]));
    await good();
  });

  it('heal a lost ca.pem from any copy that fits its key, and never replace a key that has signed', async () => {
    const place = await workshop();
    const { files, directory } = place;
    const [ca, key] = [readFileSync(files.ca, 'utf8'), readFileSync(files.caKey, 'utf8')];
    const ensure = () => ensureServerCertificate(directory, NAMES, new Date());
    for (const lost of [files.server, files.rootCa]) {
      rmSync(files.ca);
      rmSync(lost);
      await ensure();
      expect(readFileSync(files.ca, 'utf8')).toBe(ca);
    }
    const other = await workshop();
    writeFileSync(files.server, readFileSync(other.files.server));
    rmSync(files.rootCa);
    rmSync(files.ca);
    await expect(ensure()).rejects.toThrow(/ca\.pem is missing, and .*takserver\.pem does not hold it/);
    expect([existsSync(files.ca), readFileSync(files.caKey, 'utf8')]).toEqual([false, key]);
  });

  it('of two CAs are not mixed, and nothing begins with a key that does not fit, is damaged or missing', async () => {
    const [place, other] = [await workshop(), await workshop()];
    const refused = async (why: RegExp): Promise<void> =>
      expect(ensureServerCertificate(place.directory, NAMES, new Date())).rejects.toMatchObject({
        message: expect.stringMatching(why),
        remedy: expect.stringContaining('backup'),
      });
    writeFileSync(place.files.caKey, readFileSync(other.files.caKey));
    await refused(/ca-do-not-share\.key is not the key of .*ca\.pem/);
    writeFileSync(place.files.caKey, '');
    await refused(/ca-do-not-share\.key holds no private key/);
    rmSync(place.files.caKey);
    await refused(/ca-do-not-share\.key is missing/);
  });
});

function read(file: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(readFileSync(file));
}

describe('the certificate of another server', () => {
  it('is issued for its names and serving alone, readable by the group, and again near its end', async () => {
    const made = new Date('2026-11-22T10:00:00Z');
    const place = await workshop(made);
    const directory = join(place.directory, 'nats');
    mkdirSync(directory, { mode: 0o700 });
    const ensure = (days: number, names = ['nats', 'localhost']) =>
      ensureServiceCertificate(place.directory, directory, names, new Date(+made + days * DAY));
    expect([await ensure(0), await ensure(690)]).toEqual([true, false]);
    const certificate = new X509Certificate(readFileSync(join(directory, 'server.pem')));
    expect([certificate.checkHost('nats'), certificate.checkHost('takserver')]).toEqual(['nats', undefined]);
    expect([certificate.keyUsage, certificate.verify(caOf(place).publicKey)]).toEqual([['1.3.6.1.5.5.7.3.1'], true]);
    expect([directory, join(directory, 'server.key')].map((path) => statSync(path).mode & 0o777)).toEqual([
      0o750, 0o640,
    ]);
    expect([await ensure(701), await ensure(701)]).toEqual([true, false]);
    expect(await ensure(701, ['nats.example.org'])).toBe(true);
  });

  it('names the directory that cannot be written', async () => {
    const { directory } = await workshop();
    const missing = join(directory, 'missing');
    await expect(ensureServiceCertificate(directory, missing, ['nats'], new Date())).rejects.toThrow(missing);
  });
});

it('another process sees whether the server certificate can be used', async () => {
  const made = new Date('2026-11-22T10:00:00Z');
  const { directory, files } = await workshop(made);
  const isUsable = (days = 0) => isServerCertificateUsable(directory, new Date(+made + days * DAY));
  expect([isUsable(), isUsable(701), isUsable(731), isUsable(-2)]).toEqual([true, true, false, false]);
  rmSync(files.serverKey);
  expect(isUsable()).toBe(false);
});
