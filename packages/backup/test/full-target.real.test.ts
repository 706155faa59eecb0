// Directories that can't take a backup: a full disk, and one that is mounted read-only.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Secret } from '@holdfast/kit/secret';
import { HttpBackups } from '../../../shared/backups/http.ts';
import { DirectoryTarget } from '../directory-target.ts';
import { backupApi, BackupWorker } from '../service.ts';

const NAME = 'holdfast-20260131T023000Z.tar.zst.age';
const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };
/** Mounts need the right to mount, which root in a container may lack. */
const mayMount = process.getuid?.() === 0 && spawnSync('unshare', ['-m', 'true']).status === 0;

let place = '';

async function* megabyte(): AsyncGenerator<Uint8Array> {
  for (let chunk = 0; chunk < 16; chunk++) yield new Uint8Array(64 * 1024);
}

function mount(...options: string[]): void {
  expect(spawnSync('mount', options).status).toBe(0);
}

describe.skipIf(!mayMount)('a target that takes no backup (needs the right to mount)', () => {
  beforeEach(() => {
    place = mkdtempSync(join(tmpdir(), 'holdfast-full-'));
    mount('-t', 'tmpfs', '-o', 'size=512k', 'tmpfs', place);
  });
  afterEach(() => {
    spawnSync('umount', ['-l', place]);
    rmSync(place, { recursive: true, force: true });
  });

  const service = (): HttpBackups => {
    const target = new DirectoryTarget(place);
    const worker = new BackupWorker({
      target,
      encryption: 'passphrase',
      proof: 'off',
      history: true,
      keep: { days: 30, count: 7 },
      take: async (_request, { signal }) => {
        await target.write(NAME, megabyte(), { signal });
        throw new Error('it was written');
      },
      prove: () => Promise.reject(new Error('nothing to prove')),
      now: () => new Date(),
      log: quiet,
    });
    const token = new Secret('0123456789abcdef0123');
    const api = backupApi(worker, token, quiet);
    return new HttpBackups({ url: 'http://127.0.0.1:8090', token, fetch: async (to, init) => api.request(to, init) });
  };

  async function failureOf(backups: HttpBackups): Promise<string | undefined> {
    await backups.start({ requestedBy: 'ada' });
    while ((await backups.state()).running !== null) await new Promise((over) => setTimeout(over, 20));
    return (await backups.state()).last_failure?.error;
  }

  it('says that the disk is full, and leaves nothing', async () => {
    const backups = service();
    expect(await failureOf(backups)).toContain(`The disk of ${place} is full. Remedy: free some space there`);
    expect(readdirSync(place)).toEqual([]);
    expect((await backups.state()).target).toMatchObject({ error: null, free_bytes: expect.any(Number) });
  });

  it('says that the disk is read-only, also before a backup is tried', async () => {
    mount('-o', 'remount,ro', place);
    const backups = service();
    expect((await backups.state()).target?.error).toContain('read-only');
    expect(await failureOf(backups)).toContain('read-only');
    mount('-o', 'remount,rw', place);
    expect((await backups.state()).target?.error).toBeNull();
  });
});
