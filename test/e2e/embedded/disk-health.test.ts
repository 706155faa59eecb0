// The file system that holds the database counts, wherever its directory leads.

import { spawnSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { basic } from '../../http/fake-deps.ts';
import { asRoot, newStack, stop } from './embedded.ts';

/** Mounts need the right to mount, which root in a container may lack. */
const mayMount = asRoot && spawnSync('unshare', ['-m', 'true']).status === 0;

describe.skipIf(!mayMount)('a database on a volume of its own (needs the right to mount)', () => {
  it('is watched there; a full one is critical, no write succeeds, and room heals it', async () => {
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
      expect(output).toContain('Holdfast is running');
      expect(code).toBe(0);
      const { api, webadmin } = stack.file();
      const measured = async (module: string): Promise<{ status: string; message: string }> => {
        const headers = { authorization: basic(webadmin.username, webadmin.password) };
        return (await (await fetch(`${api}/api/health/${module}`, { headers })).json()) as {
          status: string;
          message: string;
        };
      };
      spawnSync('fallocate', ['-l', '120M', join(pgdata, 'ballast')]);
      const { status, message } = await measured('disk');
      expect([status, message]).toEqual(['critical', expect.stringContaining(`${pgdata}: `)]);
      spawnSync('dd', ['if=/dev/zero', `of=${join(pgdata, 'rest')}`, 'bs=4k']);
      expect(await measured('database')).toMatchObject({
        status: 'critical',
        message: expect.stringMatching(/^a test write failed: .*No space left on device/),
      });
      rmSync(join(pgdata, 'rest'));
      rmSync(join(pgdata, 'ballast'));
      expect((await measured('database')).status).toBe('ok');
      await stop(stack.data);
    } finally {
      await stop(stack.data);
      spawnSync('umount', ['-l', pgdata]);
    }
  });
});
