// The lock that lets one writer at a time into a directory: whoever takes too long loses it, and takes nobody else's with it.

import { mkdtemp, readdir, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { fileLock } from '../shared-file.ts';

let directory: string;
let path: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'file-lock-'));
  path = join(directory, '.lock');
});

const outlast = (): Promise<void> => utimes(path, new Date(), new Date(Date.now() - 60_000));

describe('a file lock', () => {
  it('lets one in at a time, and leaves nothing behind', async () => {
    let [within, most] = [0, 0];
    const enter = (): Promise<void> =>
      fileLock(path, async () => {
        most = Math.max(most, (within += 1));
        await readdir(directory);
        within -= 1;
      });
    await Promise.all(Array.from({ length: 10 }, enter));
    expect([most, await readdir(directory)]).toEqual([1, []]);
  });

  it('of the next one stays when whoever outlasted its own is done', async () => {
    const [slow, next] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
    const isIn = Promise.withResolvers<undefined>();
    const isSlowIn = Promise.withResolvers<undefined>();
    const first = fileLock(path, async () => {
      await outlast();
      isSlowIn.resolve(undefined);
      await slow.promise;
    });
    await isSlowIn.promise;
    const second = fileLock(path, async () => {
      isIn.resolve(undefined);
      await next.promise;
    });
    await isIn.promise;
    slow.resolve(undefined);
    await first;
    expect(await readdir(directory)).toEqual(['.lock']);
    next.resolve(undefined);
    await second;
    expect(await readdir(directory)).toEqual([]);
  });

  it.each(['', 'an-id'])(
    'that a killed one left is taken over by one alone, also of many at once: "%s"',
    async (id) => {
      for (let round = 0; round < 20; round++) {
        await writeFile(path, id);
        await outlast();
        let [within, most] = [0, 0];
        const looks = async (count: number): Promise<void> => {
          for (let look = 0; look < count; look++) await readdir(directory);
        };
        const enter = async (_: unknown, place: number): Promise<void> => {
          await looks(place);
          await fileLock(path, async () => {
            most = Math.max(most, (within += 1));
            await looks(5);
            within -= 1;
          });
        };
        await Promise.all(Array.from({ length: 8 }, enter));
        expect([most, await readdir(directory)]).toEqual([1, []]);
      }
    },
  );

  it('is given back when the work fails', async () => {
    await expect(fileLock(path, async () => Promise.reject(new Error('it failed')))).rejects.toThrow('it failed');
    expect(await readdir(directory)).toEqual([]);
  });
});
