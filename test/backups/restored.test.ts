// The record of a restore: written once by the first start after it.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { finishIntent } from '../../shared/audit/interrupted-work.ts';
import { leaveRestoredNote, recordRestore, RESTORED_FILE } from '../../shared/backups/restored-note.ts';
import { concludeParts, intendParts, INTERRUPTED_RESTORE } from '../../shared/backups/restored.ts';
import { type FakeAudit, fakeAudit } from '../audit/fake-audit.ts';

const ACTOR = { username: 'operator', address: '', requestId: '' };
const NOTE = {
  archive: 'holdfast-20260131T023000Z.tar.zst.age',
  made_at: '2026-01-31T02:30:00.000Z',
  release: '0.1.0',
  history: true,
  rows: 4711,
  restored_at: '2026-02-01T10:00:00.000Z',
};

let directory = '';
let audit: FakeAudit;
const warnings: string[] = [];
const log = { info: () => undefined, warn: (event: string) => void warnings.push(event), error: () => undefined };
const start = (): Promise<void> => recordRestore(directory, ACTOR, { audit, log, peopleLock: (_, work) => work() });
const isNoted = (): boolean => existsSync(join(directory, RESTORED_FILE));

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'holdfast-restored-'));
  audit = fakeAudit();
  warnings.length = 0;
});
afterEach(() => rmSync(directory, { recursive: true }));

it('records archive, time and release once, however often the stack starts', async () => {
  await start();
  expect(audit.records).toEqual([]);
  await leaveRestoredNote(directory, NOTE);
  await start();
  await start();
  const { archive, ...detail } = NOTE;
  expect(audit.records).toMatchObject([
    { actor: 'operator', action: 'backup.restore', target: archive, phase: 'intent' },
    { actor: 'operator', action: 'backup.restore', target: archive, phase: 'outcome', result: 'ok', intent: 1 },
  ]);
  expect(JSON.parse(audit.records[1]?.detail ?? '')).toEqual(detail);
  expect([isNoted(), warnings]).toEqual([false, []]);
});

it('records it once if the process dies before it deletes the note', async () => {
  await leaveRestoredNote(directory, NOTE);
  await start();
  await leaveRestoredNote(directory, NOTE);
  await start();
  await leaveRestoredNote(directory, { ...NOTE, restored_at: '2026-02-02T10:00:00.000Z' });
  await start();
  expect(audit.records).toHaveLength(4);
});

it('keeps the note for the next start while it is not recorded', async () => {
  await leaveRestoredNote(directory, NOTE);
  audit.mood = 'away';
  await start();
  expect([isNoted(), audit.records, warnings]).toEqual([true, [], ['backup.restore_not_recorded']]);
  audit.mood = 'up';
  await start();
  expect([isNoted(), audit.records.length]).toEqual([false, 2]);
});

it('never keeps a stack from starting: a note that is no note is reported', async () => {
  writeFileSync(join(directory, RESTORED_FILE), 'half a no');
  await start();
  expect([audit.records, warnings]).toEqual([[], ['backup.restore_not_recorded']]);
});

it('records each part that comes back, and ends the sign-ins of accounts', async () => {
  const ended: string[] = [];
  const recording = fakeAudit(undefined, (username) => void ended.push(username));
  const deps = { audit: recording };
  const of = { archive: NOTE.archive, made_at: NOTE.made_at };
  const accounts = await intendParts(deps, ACTOR, { part: 'account', targets: ['ada', 'bob'], ...of });
  const [mission = 0] = await intendParts(deps, ACTOR, { part: 'mission', targets: ['Flood'], ...of });
  const ends = ['ada', 'bob'].map((target, at) => ({ intent: accounts[at] ?? 0, target, detail: 'new: active' }));
  await concludeParts(deps, ACTOR, 'account', [
    { ...(ends[0] as (typeof ends)[number]), result: 'ok' },
    { ...(ends[1] as (typeof ends)[number]), result: 'failed' },
  ]);
  await concludeParts(deps, ACTOR, 'mission', [{ intent: mission, target: 'Flood', result: 'ok', detail: 'new' }]);
  expect(recording.records.map(({ action, target, result }) => `${action} ${target} ${result}`)).toEqual([
    'backup.restore-account ada null',
    'backup.restore-account bob null',
    'backup.restore-mission Flood null',
    'backup.restore-account ada ok',
    'backup.restore-account bob failed',
    'backup.restore-mission Flood ok',
  ]);
  expect(ended).toEqual(['ada']);
  const [left] = await recording.unfinished('9999', 1);
  expect(left).toBeUndefined();
});

it('ends the sign-ins of an account whose restore was interrupted: it may have happened', async () => {
  const ended: string[] = [];
  const recording = fakeAudit(undefined, (username) => void ended.push(username));
  const { archive, made_at } = NOTE;
  await intendParts({ audit: recording }, ACTOR, { part: 'account', targets: ['ada'], archive, made_at });
  const [open] = await recording.unfinished('9999', 1);
  if (open === undefined) throw new Error('no intent');
  expect(await finishIntent({ audit: recording }, [INTERRUPTED_RESTORE], open)).toBe('unknown');
  expect(ended).toEqual(['ada']);
});
