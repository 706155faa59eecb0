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
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { clientKeyFiles } from '../../shared/devices/certificates/client-keys.ts';
import { clientKeysContract, someHash, someKey } from './client-keys-contract.ts';

const root = mkdtempSync(join(tmpdir(), 'holdfast-client-keys-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let directory: string;
beforeEach(() => {
  directory = join(mkdtempSync(join(root, 'core-')), 'certs/holdfast');
});

const fileOf = (hash: string): string => join(directory, `${hash.replaceAll(':', '').toLowerCase()}.pem`);
const modeOf = (path: string): number => statSync(path).mode & 0o777;
const hash = someHash();

clientKeysContract('files', () => clientKeyFiles(directory));

describe('a kept key', () => {
  it('is one file of its owner in a directory of its owner: key, certificate, chain', async () => {
    const key = someKey(2);
    await clientKeyFiles(directory).keep(hash, key);
    expect(readdirSync(directory)).toEqual([fileOf(hash).slice(directory.length + 1)]);
    expect([modeOf(directory), modeOf(fileOf(hash))]).toEqual([0o700, 0o600]);
    expect(readFileSync(fileOf(hash), 'utf8')).toBe(key.keyPem + key.certificatePem + key.chainPem.join(''));
  });

  it('closes a directory that was open to others', async () => {
    mkdirSync(directory, { recursive: true });
    chmodSync(directory, 0o755);
    await clientKeyFiles(directory).keep(hash, someKey());
    expect(modeOf(directory)).toBe(0o700);
  });

  it('is kept when many are kept at once, each whole', async () => {
    const keys = clientKeyFiles(directory);
    const wanted = Array.from({ length: 20 }, () => [someHash(), someKey()] as const);
    await Promise.all(wanted.map(async ([each, key]) => keys.keep(each, key)));
    for (const [each, key] of wanted) expect(await keys.read(each)).toEqual(key);
    expect(readdirSync(directory)).toHaveLength(20);
  });

  it('takes away what a crash has left behind, and nothing that may still be written', async () => {
    mkdirSync(directory, { recursive: true });
    const left = join(directory, `.${'a'.repeat(64)}.00000000-0000-4000-8000-000000000000.new`);
    const fresh = left.replace('.aa', '.bb');
    const foreign = join(directory, 'notes.new');
    for (const file of [left, fresh, foreign]) writeFileSync(file, 'half a key');
    utimesSync(left, new Date(), new Date(Date.now() - 120_000));
    await clientKeyFiles(directory).keep(hash, someKey());
    expect([left, fresh, foreign].map((file) => existsSync(file))).toEqual([false, true, true]);
  });

  it.each(['', '..', '../../etc/passwd', 'ab'.repeat(32), `${hash}/x`, `${hash}\n`, hash.toLowerCase()])(
    'has no path that is made of %j',
    async (wrong) => {
      const keys = clientKeyFiles(directory);
      await expect(keys.keep(wrong, someKey())).rejects.toMatchObject({ code: 'invalid' });
      await expect(keys.read(wrong)).rejects.toMatchObject({ code: 'invalid' });
      await expect(keys.remove(wrong)).rejects.toMatchObject({ code: 'invalid' });
      expect(await keys.kept([wrong])).toEqual([]);
      expect(existsSync(directory)).toBe(false);
    },
  );

  it('is neither read nor written where a symbolic link leads', async () => {
    const keys = clientKeyFiles(directory);
    await keys.keep(hash, someKey());
    const elsewhere = join(root, `elsewhere-${Math.random()}`);
    writeFileSync(elsewhere, readFileSync(fileOf(hash)));
    rmSync(fileOf(hash));
    symlinkSync(elsewhere, fileOf(hash));
    expect(await keys.kept([hash])).toEqual([]);
    await expect(keys.read(hash)).rejects.toMatchObject({ code: 'unavailable' });
    const before = readFileSync(elsewhere, 'utf8');
    const other = someKey();
    await keys.keep(hash, other);
    expect([readFileSync(elsewhere, 'utf8'), await keys.read(hash)]).toEqual([before, other]);

    const linked = join(root, `linked-${Math.random()}`);
    symlinkSync(directory, linked);
    const through = clientKeyFiles(linked);
    await expect(through.keep(someHash(), someKey())).rejects.toMatchObject({ code: 'unavailable' });
    await expect(through.read(hash)).rejects.toMatchObject({ code: 'unavailable' });
    expect(readdirSync(directory)).toHaveLength(1);
  });

  it('that cannot be read, or kept, is named with the reason, and none of its text', async () => {
    const keys = clientKeyFiles(directory);
    await keys.keep(hash, someKey());
    writeFileSync(fileOf(hash), 'secret garbage');
    await expect(keys.read(hash)).rejects.toMatchObject({
      code: 'unavailable',
      message: `${fileOf(hash)} contains no key with a certificate.`,
    });
    writeFileSync(fileOf(hash), Buffer.alloc(300_000));
    await expect(keys.read(hash)).rejects.toThrow('is larger than');
    const nowhere = clientKeyFiles(join(root, 'no/such/certs/holdfast'));
    await expect(nowhere.keep(hash, someKey())).rejects.toMatchObject({ code: 'unavailable' });
    await expect(nowhere.keep(hash, someKey())).rejects.toThrow('was not stored');
    expect([await nowhere.read(hash), await nowhere.kept([hash])]).toEqual([undefined, []]);
    const inTheWay = join(root, `file-${Math.random()}`);
    writeFileSync(inTheWay, '');
    await expect(clientKeyFiles(inTheWay).keep(hash, someKey())).rejects.toThrow('is not a directory');
  });
});
