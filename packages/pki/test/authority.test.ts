import 'reflect-metadata';
import { X509Certificate } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import * as x509 from '@peculiar/x509';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isDistinguishedName, parseDistinguishedName } from '@holdfast/kit/distinguished-name';
import { readSubject } from '../subject.ts';
import { DAY, enrolled, revocationOf, workshops } from './workshop.ts';
import { runs } from '../../../test/support/runs.ts';

const workshop = workshops();

describe('a client certificate', () => {
  const opened = workshop().then(({ open }) => open());

  it('lasts as long as it is set, from half a day back, never beyond the CA', async () => {
    const made = new Date('2026-11-22T10:00:00.400Z');
    const authority = await (await workshop(made)).open();
    const { signed } = await enrolled(authority, 'ada', made);
    expect([signed.notBefore.toISOString(), signed.notAfter.toISOString()]).toEqual([
      '2026-11-21T22:00:00.000Z',
      '2027-11-22T10:00:00.000Z',
    ]);
    const late = new Date(made.getTime() + 3600 * DAY);
    const ca = new X509Certificate(authority.chain[0] ?? '');
    const last = new X509Certificate((await enrolled(authority, 'ada', late)).signed.pem);
    expect(last.validTo).toBe(ca.validTo);
    const ended = new Date(made.getTime() + 3653 * DAY);
    await expect(enrolled(authority, 'ada', ended)).rejects.toMatchObject({
      message: expect.stringMatching(/ca\.pem has ended at 2036-11-2\d/),
      remedy: expect.stringContaining('renew-ca.sh'),
    });
  });

  it('says of itself what is in it, and no two have the same number', async () => {
    const authority = await opened;
    const all = await Promise.all(Array.from({ length: 40 }, async () => enrolled(authority, 'ada')));
    expect(new Set(all.map(({ signed }) => signed.serial)).size).toBe(40);
    for (const { signed } of all) {
      const read = new X509Certificate(signed.pem);
      expect(read.raw.equals(signed.der)).toBe(true);
      expect([read.fingerprint256, read.serialNumber.toLowerCase()]).toEqual([signed.hash, signed.serial]);
      expect([+new Date(read.validFrom), +new Date(read.validTo)]).toEqual([+signed.notBefore, +signed.notAfter]);
      expect(read.verify(new X509Certificate(authority.chain[0] ?? '').publicKey)).toBe(true);
      expect(read.subject).toBe('O=Holdfast\nOU=CoT\nCN=ada');
      expect(signed.subject).toBe('CN=ada,OU=CoT,O=Holdfast');
    }
  });

  it('carries any name that fits, in the certificate and as text, and no part of it becomes another', async () => {
    const authority = await opened;
    const names = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((name) => !/\p{Cc}/u.test(name));
    const nasty = ['#0401', '"a"', 'a,O=Other', 'a+OU=b', String.raw`\,`, ' a ', '=', 'é😀', 'a/CN=b', 'x'.repeat(64)];
    const odd = fc.constantFrom(...nasty);
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          odd,
          names.filter((name) => Array.from(name).length <= 64),
        ),
        async (name) => {
          const { signed } = await enrolled(authority, name);
          expect(readSubject(new x509.X509Certificate(signed.pem))).toEqual({
            subject: signed.subject,
            commonName: name,
          });
          expect(isDistinguishedName(signed.subject)).toBe(true);
          expect(parseDistinguishedName(signed.subject)?.[0]).toEqual([{ type: 'CN', value: name }]);
          expect(parseDistinguishedName(signed.subject)).toHaveLength(3);
        },
      ),
      { numRuns: runs(60), examples: nasty.map((name): [string] => [name]) },
    );
  });

  it.each([
    ['', 'is empty'],
    ['x'.repeat(65), 'room for 64 characters'],
    ['a\nb', 'control characters'],
    ['a\0', 'control characters'],
    ['\uD800', 'half characters'],
  ])('is refused for the name %j', async (name, why) => {
    await expect(enrolled(await opened, name)).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining(why),
    });
  });
});

describe('the authority', () => {
  it('is not opened with the key of another CA, with a damaged key, or without one', async () => {
    const [one, other] = [await workshop(), await workshop()];
    writeFileSync(one.files.caKey, readFileSync(other.files.caKey));
    await expect(one.open()).rejects.toThrow(/ca-do-not-share\.key is not the key of .*ca\.pem/);
    writeFileSync(one.files.caKey, 'damaged');
    await expect(one.open()).rejects.toThrow(/ca-do-not-share\.key holds no private key/);
    rmSync(one.files.caKey);
    await expect(one.open()).rejects.toThrow(/ca-do-not-share\.key is missing/);
  });

  it('remembers who was revoked by either file, when the other is missing, empty, cut off or of another CA', async () => {
    const { files, open, messages } = await workshop();
    const authority = await open();
    const [ada, bob] = [(await enrolled(authority, 'ada')).signed, (await enrolled(authority, 'bob')).signed];
    await authority.writeRevocationList([revocationOf(ada), revocationOf(bob)], new Date());
    const [list, index] = [readFileSync(files.revocationList, 'utf8'), readFileSync(files.revocationIndex, 'utf8')];
    const foreign = await workshop();
    await (await foreign.open()).writeRevocationList([revocationOf(bob)], new Date());
    const broken = ['', list.slice(0, 200), 'not a list', readFileSync(foreign.files.revocationList, 'utf8')];
    const serials = async (): Promise<string[]> => (await open()).revokedInFiles().map(({ serial }) => serial);
    for (const text of broken) {
      messages.length = 0;
      writeFileSync(files.revocationList, text);
      expect(await serials()).toEqual([ada.serial, bob.serial]);
      expect(messages.join()).toContain('ca.crl is not used');
      expect(readFileSync(`${files.revocationList}.unreadable`, 'utf8')).toBe(text);
    }
    rmSync(files.revocationList);
    expect(await serials()).toEqual([ada.serial, bob.serial]);
    writeFileSync(files.revocationList, list);
    for (const text of ['', index.slice(0, 100), '\0\0\0', 'R\tnow\tthen\tzz\n']) {
      writeFileSync(files.revocationIndex, text);
      expect((await serials()).toSorted()).toEqual([ada.serial, bob.serial].toSorted());
    }
    rmSync(files.revocationIndex);
    expect(await serials()).toEqual([ada.serial, bob.serial]);
  });

  it('numbers its lists upwards whatever the clock does and over starts', async () => {
    const { files, open } = await workshop();
    const numbers: bigint[] = [];
    for (const at of ['2026-11-22T10:00:00Z', '2026-11-22T10:00:00Z', '2020-01-01T00:00:00Z', '2026-11-23T00:00:00Z']) {
      await (await open()).writeRevocationList([], new Date(at));
      const extension = new x509.X509Crl(readFileSync(files.revocationList, 'utf8')).getExtension('2.5.29.20');
      numbers.push(
        BigInt(
          `0x${Buffer.from(extension?.value ?? new ArrayBuffer())
            .subarray(2)
            .toString('hex')}`,
        ),
      );
    }
    expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => Number(a - b)));
  });

  it('reads back a list longer than the library takes by itself', async () => {
    const { open, files } = await workshop();
    const authority = await open();
    const [revokedAt, expiresAt] = [new Date('2026-11-22T10:00:00Z'), new Date('2051-01-01T00:00:00Z')];
    const many = Array.from({ length: 4000 }, (_, at) => ({
      serial: (0x7ffff000 + at).toString(16),
      revokedAt,
      expiresAt,
      subject: 'CN=ada,OU=CoT,O=Holdfast',
    }));
    await authority.writeRevocationList(many, new Date());
    expect(authority.revokedInFiles()).toEqual(many);
    rmSync(files.revocationIndex);
    expect(authority.revokedInFiles().map(({ serial }) => serial)).toEqual(many.map(({ serial }) => serial));
  });
});
