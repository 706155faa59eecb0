import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { AuditBacklog, type Entry } from '../../shared/audit/backlog.ts';
import { memoryLog } from '../http/fake-deps.ts';

function entry(kind: Entry['kind'], target: string): Entry {
  const who = { actor: 'webadmin', address: '', action: 'user.create', target, request_id: '' };
  const what = { phase: 'outcome', result: 'ok', detail: '{}', intent: null } as const;
  return { kind, record: { at: '2026-01-02T03:04:05.678Z', ...who, ...what }, uncertain: false };
}

/** A backlog over a store that refuses some targets, or everything. */
function started() {
  const written: string[] = [];
  const batches: number[] = [];
  const refusing = { targets: new Set<string>(), everything: false };
  const log = memoryLog();
  const backlog = new AuditBacklog({
    log,
    async write(entries) {
      batches.push(entries.length);
      await Promise.resolve();
      if (refusing.everything) throw new AppError('unavailable', 'Our own database does not answer');
      if (entries.some(({ record }) => refusing.targets.has(record.target))) throw new Error('refused');
      written.push(...entries.map(({ kind, record }) => (kind === 'withdrawal' ? `-${record.target}` : record.target)));
      return entries.map((_, index) => written.length - entries.length + index + 1);
    },
  });
  return { written, batches, refusing, log, backlog };
}

const settle = async (work: Promise<unknown>): Promise<unknown> =>
  work.catch((error: unknown) => (error instanceof Error ? error.message : error));

describe('what waits for the audit log', () => {
  it('is written in its order, many records at once', async () => {
    const { written, batches, backlog } = started();
    const names = Array.from({ length: 450 }, (_, index) => `t${index}`);
    const seqs = await Promise.all(names.map((name) => backlog.append(entry('intent', name))));
    expect(written).toEqual(names);
    expect(seqs).toEqual(names.map((_, index) => index + 1));
    expect(batches).toEqual([1, 200, 200, 49]);
  });

  it('goes on without a record that the database refuses, which is kept and tried again', async () => {
    const { written, refusing, backlog } = started();
    refusing.targets.add('bad');
    const outcomes = await Promise.all(
      ['one', 'bad', 'two'].map((target) => settle(backlog.append(entry('outcome', target)))),
    );
    expect(outcomes).toEqual([1, 'refused', 2]);
    expect(await settle(backlog.append(entry('intent', 'three')))).toBe(3);
    await backlog.settled(1_000);
    refusing.targets.clear();
    await backlog.settled(1_000);
    expect(written).toEqual(['one', 'two', 'three', 'bad']);
  });

  it('tells everybody at once that the database is away, keeps outcomes and notes, and no intents', async () => {
    const { written, refusing, log, backlog } = started();
    refusing.everything = true;
    const kinds = ['outcome', 'intent', 'note', 'intent'] as const;
    const notices = await Promise.all(
      kinds.map((kind, index) => settle(backlog.append(entry(kind, `${kind}-${index}`)))),
    );
    expect(new Set(notices)).toEqual(new Set(['Our own database does not answer']));
    refusing.everything = false;
    await backlog.append(entry('intent', 'next'));
    await backlog.settled(1_000);
    expect(written).toEqual(['outcome-0', 'note-2', 'next']);
    expect(log.events.map(({ event }) => event)).toEqual(['audit.not_written', 'audit.written_again']);
  });

  it('takes back an intent whose COMMIT may have arrived', async () => {
    const { written, refusing, backlog } = started();
    refusing.everything = true;
    await settle(backlog.append({ ...entry('intent', 'perhaps'), uncertain: true }));
    refusing.everything = false;
    await backlog.settled(1_000);
    expect(written).toEqual(['-perhaps']);
  });

  it('tries again by itself', async () => {
    const { written, refusing, backlog } = started();
    refusing.everything = true;
    await settle(backlog.append(entry('outcome', 'later')));
    refusing.everything = false;
    await expect.poll(() => written, { timeout: 9_000 }).toEqual(['later']);
  });

  it('has an end: an outcome takes the place of the oldest note, anything else is refused', async () => {
    const { written, refusing, log, backlog } = started();
    refusing.everything = true;
    const fill = Array.from({ length: 5_000 }, (_, index) => settle(backlog.append(entry('note', `n${index}`))));
    const late = settle(backlog.append(entry('note', 'late')));
    const outcome = settle(backlog.append(entry('outcome', 'outcome')));
    expect(await late).toMatch(/^The audit log is 5000 records behind/);
    await Promise.all([...fill, outcome]);
    refusing.everything = false;
    await backlog.settled(1_000);
    expect([written.length, written.at(0), written.at(-1)]).toEqual([5_000, 'n1', 'outcome']);
    expect(log.events.filter(({ event }) => event === 'audit.lost').map(({ fields }) => fields['target'])).toEqual([
      'late',
      'n0',
    ]);
  });
});
