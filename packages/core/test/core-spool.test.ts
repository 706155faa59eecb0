// The spool of uploads: what it refuses, and what it leaves behind.

import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { Spool, type SpoolOptions } from '../files/spool.ts';

const parent = mkdtempSync(join(tmpdir(), 'holdfast-spool-'));
const directory = join(parent, 'uploads');
afterAll(() => rmSync(parent, { recursive: true }));
const GIB = 1024 ** 3;

const spool = (input: Partial<SpoolOptions> = {}) =>
  new Spool({ directory, maxBytes: 100_000_000, steadyMs: () => 0, freeBytes: async () => GIB, ...input });

async function* chunks(count: number, size: number, before: (index: number) => void = () => undefined) {
  for (let index = 0; index < count; index++) {
    before(index);
    yield new Uint8Array(size).fill(index);
  }
}

describe('the spool of uploads', () => {
  it('is emptied at the start, whatever a crash has left, and belongs to the core alone', () => {
    mkdirSync(join(directory, 'left'), { recursive: true, mode: 0o777 });
    writeFileSync(join(directory, 'left', 'file'), 'x');
    spool();
    expect([readdirSync(directory), statSync(directory).mode & 0o777]).toEqual([[], 0o700]);
  });

  it('says which directory it cannot have', () => {
    const taken = join(parent, 'taken');
    writeFileSync(taken, 'x');
    expect(() => spool({ directory: taken })).toThrow(`Couldn't create or empty ${taken} for uploads`);
  });

  it('gives back what came, in parts, and forgets it when it is told to', async () => {
    const file = await spool().receive(chunks(3, 1000));
    const parts: Buffer[] = [];
    for await (const part of file.parts(700)) parts.push(Buffer.from(part));
    expect(parts.map(({ length }) => length)).toEqual([700, 700, 700, 700, 200]);
    expect(Buffer.concat(parts)[2999]).toBe(2);
    expect(file).toMatchObject({ sizeBytes: 3000, hash: expect.stringMatching(/^[0-9a-f]{64}$/) });
    await file.remove();
    await file.remove();
    expect(readdirSync(directory)).toEqual([]);
  });

  it('takes no more than its limit, and keeps nothing of it', async () => {
    await expect(spool({ maxBytes: 2999 }).receive(chunks(3, 1000))).rejects.toMatchObject({ status: 413 });
    expect((await spool({ maxBytes: 3000 }).receive(chunks(3, 1000))).sizeBytes).toBe(3000);
    spool();
  });

  it('ends what comes too slowly, and not what comes slowly', async () => {
    let ms = 0;
    const slow = (size: number) => spool({ steadyMs: () => ms }).receive(chunks(10, size, () => void (ms += 30_000)));
    await expect(slow(14_000)).rejects.toMatchObject({ status: 408 });
    expect((await slow(16_000)).sizeBytes).toBe(160_000);
    spool();
  });

  it('leaves room on the disk: before, and while a file of unknown length comes', async () => {
    let free = GIB;
    const filling = spool({ freeBytes: async () => free });
    await filling.demandRoom(150_000_000);
    await expect(filling.demandRoom(250_000_000)).rejects.toMatchObject({
      status: 503,
      headers: { 'retry-after': '300' },
    });
    const source = chunks(40, 1_000_000, (index) => {
      if (index === 10) free = 300_000_000;
    });
    await expect(filling.receive(source)).rejects.toMatchObject({ status: 503 });
    expect(readdirSync(directory)).toEqual([]);
  });

  it.each(['ENOSPC', 'EDQUOT'])('has no room when the system says %s in the middle', async (code) => {
    const full = (index: number): void => {
      if (index === 2) throw Object.assign(new Error('write'), { code });
    };
    await expect(spool().receive(chunks(3, 1000, full))).rejects.toMatchObject({ status: 503 });
    expect(readdirSync(directory)).toEqual([]);
  });

  it('leaves nothing of a source that fails', async () => {
    const source = chunks(3, 1000, (index) => {
      if (index === 2) throw new Error('gone');
    });
    await expect(spool().receive(source)).rejects.toThrow('gone');
    expect(readdirSync(directory)).toEqual([]);
  });
});
