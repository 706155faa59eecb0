// What somebody with the whole database can do to the audit log, and whether it is found.

import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { Secret } from '@holdfast/kit/secret';
import { auditChain } from '../../shared/audit/chain.ts';
import { prunable, pruneAudit } from '../../shared/audit/prune.ts';
import { type AuditBench, auditDatabase, KEY } from '../e2e/embedded/audit-database.ts';
import { subject } from './audit-contract.ts';

const database = auditDatabase();
const { inDatabase } = database;
const RECORDS = 6;

let bench: AuditBench;
const verdict = async () => {
  const { ok, first_broken } = await bench.audit.verify();
  return [ok, first_broken];
};

/** Six records: three intents, each with its outcome. */
beforeEach(async () => {
  await inDatabase('TRUNCATE audit_record, audit_checkpoint');
  bench = database.process();
  for (let n = 0; n < RECORDS / 2; n += 1) {
    const about = subject({ target: `thing-${n}` });
    await bench.audit.conclude(await bench.audit.intend(about, { n }), about, { result: 'ok', detail: { n } });
  }
  expect(await bench.audit.verify()).toEqual({ ok: true, records: RECORDS, first_broken: null });
});

describe('a changed audit log', () => {
  it.each([
    ["at = at + interval '1 ms'"],
    ["at = 'infinity'"],
    ["actor = 'nobody'"],
    ["actor = actor || ' '"],
    ["address = ''"],
    ["action = 'user.delete'"],
    ["target = 'other'"],
    ["phase = 'intent'"],
    ["result = 'failed'"],
    ['result = NULL'],
    ["detail = detail || ' '"],
    ['intent = intent + 1'],
    ['intent = NULL'],
    ["request_id = ''"],
    ["hash = repeat('0', 64)"],
    ['hash = upper(hash)'],
    ["actor = actor || address, address = ''"],
  ])('is found: %s', async (change) => {
    await inDatabase(`UPDATE audit_record SET ${change} WHERE seq = 4`);
    expect(await verdict()).toEqual([false, 4]);
  });

  it.each([
    ['the first', 1, 1],
    ['one in the middle', 3, 3],
    ['the last', 6, 6],
  ])('is found when %s is changed or missing', async (_, seq, broken) => {
    await inDatabase(`UPDATE audit_record SET target = 'x' WHERE seq = ${seq}`);
    expect(await verdict()).toEqual([false, broken]);
    await inDatabase(`DELETE FROM audit_record WHERE seq = ${seq}`);
    expect(await verdict()).toEqual([false, broken]);
  });

  it.each([
    [
      'two change places',
      'UPDATE audit_record SET seq = CASE seq WHEN 3 THEN -4 ELSE -3 END WHERE seq IN (3, 4); UPDATE audit_record SET seq = -seq WHERE seq < 0',
      3,
    ],
    [
      'what follows closes the gap',
      'DELETE FROM audit_record WHERE seq = 3; UPDATE audit_record SET seq = -(seq - 1) WHERE seq > 3; UPDATE audit_record SET seq = -seq WHERE seq < 0',
      3,
    ],
    [
      'one is copied to the end',
      'INSERT INTO audit_record SELECT 7, at, actor, address, action, target, phase, result, detail, intent, request_id, hash FROM audit_record WHERE seq = 6',
      7,
    ],
    [
      'one stands before the first',
      'INSERT INTO audit_record SELECT 0, at, actor, address, action, target, phase, result, detail, intent, request_id, hash FROM audit_record WHERE seq = 1',
      0,
    ],
    [
      'one stands far behind',
      'INSERT INTO audit_record SELECT 9000000000000000000, at, actor, address, action, target, phase, result, detail, intent, request_id, hash FROM audit_record WHERE seq = 1',
      7,
    ],
    ['the end is cut off', 'DELETE FROM audit_record WHERE seq >= 5', 5],
    ['all are gone', 'TRUNCATE audit_record', 1],
  ])('is found when %s', async (_, change, broken) => {
    await inDatabase(change);
    expect(await verdict()).toEqual([false, broken]);
  });

  it('is found under another key', async () => {
    const other = database.process({ key: `${KEY}.`, headFile: bench.headFile });
    expect(await other.audit.verify()).toMatchObject({ ok: false, first_broken: 1 });
  });

  it('stays found after its end was cut off and others were appended, by this process or a new one', async () => {
    await inDatabase('DELETE FROM audit_record WHERE seq >= 5');
    for (let n = 0; n < 3; n += 1) await bench.audit.intend(subject());
    expect(await verdict()).toEqual([false, 6]);
    expect(bench.log.events.map(({ event }) => event)).toEqual(['audit.cut_off']);
    const next = database.process({ headFile: bench.headFile });
    await next.audit.intend(subject());
    expect(await next.audit.verify()).toMatchObject({ ok: false, first_broken: 6 });
    rmSync(bench.headFile);
    await next.audit.intend(subject());
    expect(await next.audit.verify()).toEqual({ ok: true, records: 9, first_broken: null });
    expect(JSON.parse(readFileSync(bench.headFile, 'utf8'))).toMatchObject({ seq: 9 });
  });

  it('is noticed by a process that has not appended for long, and its file is left as it was', async () => {
    const idle = database.process({ headFile: bench.headFile });
    await idle.audit.intend(subject());
    for (let n = 0; n < 3; n += 1) await bench.audit.intend(subject());
    await bench.audit.verify();
    await inDatabase('DELETE FROM audit_record WHERE seq >= 9');
    await idle.audit.intend(subject());
    expect(idle.log.events.map(({ event }) => event)).toEqual(['audit.cut_off']);
    expect(JSON.parse(readFileSync(bench.headFile, 'utf8'))).toMatchObject({ seq: 10 });
    expect(await idle.audit.verify()).toMatchObject({ ok: false, first_broken: 10 });
  });

  it('says nothing about its end without the file, or with one that cannot be read, and logs the latter', async () => {
    await inDatabase('DELETE FROM audit_record WHERE seq >= 5');
    writeFileSync(bench.headFile, '{"seq": "many"');
    expect(await verdict()).toEqual([true, null]);
    expect(bench.log.events.map(({ event }) => event)).toEqual(['audit.head_not_read']);
    rmSync(bench.headFile);
    expect(await verdict()).toEqual([true, null]);
    expect(bench.log.events).toHaveLength(1);
  });

  it('says once, with a remedy, that the file of its end cannot be replaced, and says it again only after it could', async () => {
    const events = () => bench.log.events.filter(({ event }) => event === 'audit.head_not_written');
    const append = async (): Promise<void> => {
      await bench.audit.intend(subject());
      await bench.audit.verify();
    };
    for (const expected of [1, 2]) {
      rmSync(bench.headFile, { recursive: true });
      mkdirSync(bench.headFile);
      await append();
      await append();
      expect(events()).toHaveLength(expected);
      expect(events()[0]?.fields).toMatchObject({ remedy: expect.stringMatching(/free some disk space/) });
      rmdirSync(bench.headFile);
      await append();
      expect(existsSync(bench.headFile)).toBe(true);
    }
  });

  it('gives no job anything to do that nobody was allowed to do', async () => {
    const unfinished = async () =>
      (await bench.audit.unfinished(new Date(Date.now() + 60_000).toISOString(), 10)).map(({ seq }) => seq);
    await bench.audit.intend(subject());
    await bench.audit.intend(subject());
    expect(await unfinished()).toEqual([7, 8]);
    await inDatabase("UPDATE audit_record SET target = 'eve' WHERE seq = 7");
    expect(await unfinished()).toEqual([8]);
    expect(bench.log.events.at(-1)).toMatchObject({ event: 'audit.intents_left', fields: { first_broken: 7 } });
    await inDatabase("UPDATE audit_record SET detail = '{}', hash = repeat('0', 64) WHERE seq = 8");
    expect(await unfinished()).toEqual([]);
  });

  it('does not have a thing done again because its outcome was taken away', async () => {
    const unfinished = async () => bench.audit.unfinished(new Date(Date.now() + 60_000).toISOString(), 10);
    await inDatabase('DELETE FROM audit_record WHERE seq = 4');
    expect(await unfinished()).toEqual([]);
    await inDatabase('DELETE FROM audit_record WHERE seq > 3');
    expect(await unfinished()).toEqual([]);
  });

  it('is whole while others append to it', async () => {
    const other = database.process();
    let stopped = false;
    const appending = (async () => {
      while (!stopped) await other.audit.intend(subject());
    })();
    for (let n = 0; n < 20; n += 1) expect(await verdict()).toEqual([true, null]);
    stopped = true;
    await appending;
  });
});

describe('pruning', () => {
  const DAY_MS = 86_400_000;
  const run = () =>
    keptDatabase(new Secret(database.url()), {
      name: 'prune-test',
      called: 'our own database',
      variable: 'DATABASE_URL',
    });
  const inDays = (days: number): Date => new Date(Date.now() + days * DAY_MS);
  const prune = (before: Date, now = new Date()) =>
    pruneAudit({
      run: run(),
      chain: auditChain(new Secret(KEY)),
      before: before.toISOString(),
      now,
      actor: 'audit.sh',
    });

  it('removes nothing that is not older, and then writes nothing', async () => {
    expect(await prune(inDays(-1))).toMatchObject({ records: 0, oldest: null });
    expect(await bench.audit.verify()).toMatchObject({ ok: true, records: RECORDS });
    expect(await inDatabase('SELECT * FROM audit_checkpoint')).toEqual([]);
  });

  it('removes what is older, oldest first, and the chain goes on from a signed checkpoint', async () => {
    await new Promise((tick) => setTimeout(tick, 5));
    const before = new Date();
    const late = subject({ target: 'late' });
    await bench.audit.conclude(await bench.audit.intend(late), late, { result: 'ok' });
    expect(await prunable({ run: run(), before: before.toISOString(), now: new Date() })).toMatchObject({
      records: RECORDS,
    });
    expect(await prune(before)).toMatchObject({ records: RECORDS, oldest: expect.any(String) });
    const { results } = await bench.audit.list({}, 0, 10);
    expect(results.map(({ seq, action }) => [seq, action])).toEqual([
      [9, 'audit.prune'],
      [8, 'user.create'],
      [7, 'user.create'],
    ]);
    expect(JSON.parse(results[0]?.detail ?? '{}')).toMatchObject({ removed: RECORDS, last_removed: RECORDS });
    expect(await bench.audit.verify()).toEqual({ ok: true, records: 3, first_broken: null });
    await bench.audit.intend(subject());
    expect(await bench.audit.verify()).toEqual({ ok: true, records: 4, first_broken: null });
  });

  it('may remove everything, again and again', async () => {
    for (const last of [7, 8, 9]) {
      expect(await prune(inDays(1))).toMatchObject({ records: last === 7 ? RECORDS : 1 });
      expect(await bench.audit.verify()).toEqual({ ok: true, records: 1, first_broken: null });
      expect((await bench.audit.list({}, 0, 1)).results[0]?.seq).toBe(last);
    }
  });

  it('stops before an intent without outcome that is younger than a day', async () => {
    const open = subject({ target: 'open' });
    const intent = await bench.audit.intend(open);
    const done = subject();
    await bench.audit.conclude(await bench.audit.intend(done), done, { result: 'ok' });
    expect(await prune(inDays(1))).toMatchObject({ records: RECORDS, stopsAt: intent });
    expect((await bench.audit.unfinished(inDays(1).toISOString(), 10)).map(({ seq }) => seq)).toEqual([intent]);
    expect(await prune(inDays(1), inDays(2))).toMatchObject({ records: 4, stopsAt: null });
  });

  it.each([
    ['its hash', "hash = repeat('0', 64)"],
    ['its signature', "signature = repeat('0', 64)"],
    ['its number', 'seq = 5'],
    ['its count', 'removed = 1'],
    ['its time', "at = at - interval '1 ms'"],
  ])('leaves a checkpoint that is found when %s is changed', async (_, change) => {
    await prune(inDays(1));
    await inDatabase(`UPDATE audit_checkpoint SET ${change}`);
    expect((await verdict())[0]).toBe(false);
  });

  it('cannot be pretended: without a checkpoint, or with one that is forged or older', async () => {
    await prune(inDays(1));
    await inDatabase('CREATE TABLE kept_checkpoint AS SELECT * FROM audit_checkpoint');
    await bench.audit.intend(subject());
    await inDatabase('DELETE FROM audit_checkpoint');
    expect(await verdict()).toEqual([false, 1]);
    await inDatabase(
      'INSERT INTO audit_checkpoint SELECT 7, at, hash, 7, signature FROM kept_checkpoint; DELETE FROM audit_record WHERE seq = 7',
    );
    expect(await verdict()).toEqual([false, 1]);
    await inDatabase(
      'TRUNCATE audit_checkpoint; INSERT INTO audit_checkpoint SELECT * FROM kept_checkpoint; DROP TABLE kept_checkpoint',
    );
    expect(await verdict()).toEqual([false, 7]);
  });
});
