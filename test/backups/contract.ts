// What every implementation of the port of backups does.

import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { backupRunSchema, backupSchema, type Backups, backupStateSchema } from '../../shared/backups/port.ts';

export interface BackupsUnderTest {
  backups: Backups;
  /** Resolves once nothing runs. */
  ended: () => Promise<void>;
}

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'no error',
    (error: unknown) => (error instanceof AppError ? error.code : `not an AppError: ${String(error)}`),
  );
const MISSING = 'holdfast-20010101T000000Z.tar.zst.age';

/** `make`: a service with a target that has no backups yet. */
export function backupsContract(name: string, make: () => Promise<BackupsUnderTest>, timeout = 5_000): void {
  describe(`the port of backups: ${name}`, { timeout }, () => {
    it('makes a backup, lists it, proves it, keeps it and hands it out; one run at a time', async () => {
      const { backups, ended } = await make();
      expect(backupStateSchema.parse(await backups.state())).toMatchObject({ running: null, backups: [] });
      const run = backupRunSchema.parse(await backups.start({ requestedBy: 'ada' }));
      expect(run.kind).toBe('backup');
      expect(await codeOf(backups.start({ requestedBy: 'bob' }))).toBe('conflict');
      expect((await backups.state()).running).toMatchObject({ kind: 'backup', started_at: run.started_at });
      await ended();

      const after = backupStateSchema.parse(await backups.state());
      expect(after.backups).toMatchObject([{ requested_by: 'ada', permanent: false, history: true }]);
      expect(after.last_failure).toBeNull();
      const {
        name: file,
        bytes: size,
        created_at: created,
      } = after.backups[0] ?? { name: '', bytes: 0, created_at: '' };
      expect(Math.abs(Date.parse(created) - Date.parse(run.started_at))).toBeLessThan(600_000);
      expect(file).toMatch(/^holdfast-\d{8}T\d{6}Z.*\.tar\.zst\.age$/);
      expect(size).toBeGreaterThan(0);

      expect(await backups.prove(file, { requestedBy: 'ada' })).toMatchObject({ kind: 'proof', name: file });
      expect(await codeOf(backups.prove(file, { requestedBy: 'ada' }))).toBe('conflict');
      await ended();
      expect((await backups.state()).backups[0]?.proof?.level).toBeTypeOf('string');

      expect(backupSchema.parse(await backups.setPermanent(file, true)).permanent).toBe(true);
      expect((await backups.state()).backups[0]?.permanent).toBe(true);
      expect((await backups.setPermanent(file, false)).permanent).toBe(false);

      const { body, bytes } = await backups.read(file);
      const read = new Uint8Array(await new Response(body).arrayBuffer());
      expect(read.length).toBe(bytes);
      expect(new TextDecoder().decode(read.subarray(0, 21))).toBe('age-encryption.org/v1');
    });

    it('knows no other names, and no way out of its place', async () => {
      const { backups } = await make();
      for (const other of [MISSING, '..', '../state', 'a/b', 'x%2f..', '']) {
        expect([other, await codeOf(backups.prove(other, { requestedBy: 'ada' }))]).toEqual([other, 'not_found']);
        expect([other, await codeOf(backups.setPermanent(other, true))]).toEqual([other, 'not_found']);
        expect([other, await codeOf(backups.read(other))]).toEqual([other, 'not_found']);
      }
      expect((await backups.state()).running).toBeNull();
    });
  });
}
