// The file system that holds the database counts, wherever its directory leads.

import { spawnSync } from 'node:child_process';
import { mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { basic } from '../fakes/deps.ts';
import { asRoot, newStack, stop } from './embedded.ts';

/** Mounts need the right to mount, which root in a container may lack. */
const mayMount = asRoot && spawnSync('unshare', ['-m', 'true']).status === 0;

describe.skipIf(!mayMount)('a database on a volume of its own (needs the right to mount)', () => {
  it('is watched there, and a full volume is critical', async () => {
    const stack = await newStack();
    expect((await stack.start()).code).toBe(0);
    await stop(stack.data);
    const pgdata = join(stack.data, 'pgdata');
    const old = `${pgdata}.old`;
    renameSync(pgdata, old);
    mkdirSync(pgdata);
    expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=200m,mode=700', 'tmpfs', pgdata]).status).toBe(0);
    try {
      spawnSync('cp', ['-a', `${old}/.`, pgdata]);
      const { code, output } = await stack.start();
      expect(output).toContain('Holdfast runs and answers');
      expect(code).toBe(0);
      const { api, webadmin } = stack.file();
      const disk = async (): Promise<{ status: string; message: string }> => {
        const headers = { authorization: basic(webadmin.username, webadmin.password) };
        return (await (await fetch(`${api}/api/health/disk`, { headers })).json()) as {
          status: string;
          message: string;
        };
      };
      spawnSync('fallocate', ['-l', '120M', join(pgdata, 'ballast')]);
      const { status, message } = await disk();
      expect([status, message]).toEqual(['critical', expect.stringContaining(`${pgdata}: `)]);
      await stop(stack.data);
    } finally {
      await stop(stack.data);
      spawnSync('umount', ['-l', pgdata]);
    }
  });
});
