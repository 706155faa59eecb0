import { readFileSync, statSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MIGRATIONS } from '../../shared/runtime/migrations/index.ts';
import { auditDatabase, type Way, wayTo } from '../e2e/embedded/audit-database.ts';
import { eventually } from '../e2e/embedded/embedded.ts';
import { auditContract, subject } from './audit-contract.ts';

const database = auditDatabase();
const { inDatabase } = database;
const MANY = 5_000;

/** What the owner of the table sees, oldest first. */
const stored = (columns: string) =>
  inDatabase<Record<string, unknown>>(`SELECT ${columns} FROM audit_record ORDER BY audit_record.seq`);

auditContract('in the database', () => database.process());

describe('the audit log in the database', () => {
  let way: Way;
  beforeAll(async () => {
    way = await wayTo(database.url());
  });
  afterAll(() => way.close());
  beforeEach(() => inDatabase('TRUNCATE audit_record, audit_checkpoint, account_epoch'));

  it('is one unbroken chain, also when two processes append at once', async () => {
    const processes = [database.process(), database.process()];
    const appends = Array.from({ length: 50 }, async (_, index) => {
      const { audit } = processes[index % 2] ?? database.process();
      const about = subject({ target: `thing-${index}` });
      await audit.conclude(await audit.intend(about), about, { result: 'ok' });
    });
    await Promise.all(appends);
    expect(await stored('seq::int')).toEqual(Array.from({ length: 100 }, (_, index) => ({ seq: index + 1 })));
    for (const { audit } of processes)
      expect(await audit.verify()).toEqual({ ok: true, records: 100, first_broken: null });
    const pairs = await stored(
      'intent::int, (SELECT i.target = audit_record.target FROM audit_record i WHERE i.seq = audit_record.intent) AS same',
    );
    expect(pairs.filter(({ intent }) => intent !== null)).toHaveLength(50);
    expect(pairs.every(({ intent, same }) => intent === null || same === true)).toBe(true);
  });

  it('is appended to by a role that can change nothing', async () => {
    const can = (what: string) =>
      inDatabase(`BEGIN; SET LOCAL ROLE holdfast_audit; ${what}; ROLLBACK`).then(
        () => true,
        (error: unknown) => (expect(String(error)).toMatch(/permission denied|must be owner/), false),
      );
    await database.process().audit.intend(subject());
    expect(await can('SELECT * FROM audit_record')).toBe(true);
    for (const what of [
      "UPDATE audit_record SET actor = 'nobody'",
      'DELETE FROM audit_record',
      'TRUNCATE audit_record',
      'DROP TABLE audit_record',
      "INSERT INTO audit_checkpoint VALUES (1, now(), '', 1, '')",
      'SELECT * FROM session',
    ])
      expect([what, await can(what)]).toEqual([what, false]);
  });

  it('says which role is missing and how to make it', async () => {
    const { audit } = database.process({ at: database.foreignUrl() });
    await expect(audit.intend(subject())).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/holdfast_audit, .* Remedy: as a superuser .*CREATE ROLE holdfast_audit NOLOGIN;/),
    });
  });

  it('is not made at all where that role is missing', async () => {
    const migration = MIGRATIONS.find(({ name }) => name === 'audit')?.sql ?? '';
    await expect(inDatabase(migration.replaceAll('holdfast_audit', 'no_such_role'))).rejects.toThrow(
      /the role no_such_role is missing\. Remedy: .*CREATE ROLE no_such_role NOLOGIN; GRANT no_such_role TO holdfast;/,
    );
  });

  it('lets nothing be intended while its table is not there', async () => {
    await inDatabase('ALTER TABLE audit_record RENAME TO audit_record_');
    const { audit, log } = database.process();
    await expect(audit.intend(subject())).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/nothing was changed/),
    });
    expect(log.events.map(({ event }) => event)).toEqual(['audit.not_written']);
    await inDatabase('ALTER TABLE audit_record_ RENAME TO audit_record');
  });

  it('lets nothing be intended without a key', async () => {
    const { audit, log } = database.process({ key: '' });
    await expect(audit.intend(subject())).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/Remedy: set AUDIT_KEY/),
    });
    await expect(audit.verify()).rejects.toMatchObject({ code: 'unavailable' });
    await audit.conclude(1, subject(), { result: 'ok' });
    await audit.note(subject(), 'denied');
    expect(await audit.list({}, 0, 10)).toEqual({ results: [], count: 0 });
    expect(log.events.map(({ event }) => event)).toEqual(['audit.off']);
  });

  it('keeps outcomes and notes while the database is away, in their order, and refuses intents', async () => {
    const { audit, ended, log } = database.process({ through: way.port });
    const about = subject({ target: 'vera' });
    const intent = await audit.intend(about);
    await way.close();
    await audit.conclude(intent, about, { result: 'ok', endsSignInsOf: 'Vera' });
    await audit.note(subject({ target: 'two' }), 'denied');
    await audit.note(subject({ target: 'three' }), 'denied');
    await expect(audit.intend(subject())).rejects.toMatchObject({ code: 'unavailable' });
    expect([ended, await stored('seq::int')]).toEqual([[], [{ seq: 1 }]]);
    await way.open();
    await eventually('what waited is written', async () => (await stored('seq')).length === 4, 10_000);
    expect(await stored('target, phase')).toEqual([
      { target: 'vera', phase: 'intent' },
      { target: 'vera', phase: 'outcome' },
      { target: 'two', phase: 'outcome' },
      { target: 'three', phase: 'outcome' },
    ]);
    expect(ended).toEqual(['Vera']);
    expect(await inDatabase('SELECT username_key, epoch::int FROM account_epoch')).toEqual([
      { username_key: 'vera', epoch: 1 },
    ]);
    expect(await audit.verify()).toMatchObject({ ok: true, records: 4 });
    expect(log.events.map(({ event }) => event)).toEqual(
      expect.arrayContaining(['audit.not_written', 'audit.written_again']),
    );
  });

  it('bounds what waits, and gives outcomes the places of notes', async () => {
    const { audit, log } = database.process({ through: way.port });
    const about = subject({ target: 'vera' });
    const intent = await audit.intend(about);
    await way.close();
    const actions = Array.from({ length: MANY }, (_, index) => `kind-${index}`);
    for (const action of actions) await audit.note(subject({ action }), 'denied');
    const outcomes = Array.from({ length: MANY }, async () => audit.conclude(intent, about, { result: 'unknown' }));
    await Promise.all(outcomes);
    await audit.conclude(intent, about, { result: 'failed' });
    await way.open();
    await eventually('all of it is written', async () => (await stored('seq')).length === MANY + 1, 10_000);
    expect(await stored('DISTINCT ON (seq) result')).not.toContainEqual({ result: 'failed' });
    expect(log.events.filter(({ event }) => event === 'audit.lost').length).toBeGreaterThan(0);
    expect(await audit.verify()).toMatchObject({ ok: true, records: MANY + 1 });
  });

  it('neither doubles nor loses what it was given when only the answer to a COMMIT is lost', async () => {
    const { audit } = database.process({ through: way.port });
    const about = subject({ target: 'vera' });
    const intent = await audit.intend(about);
    way.loseNextCommit();
    await audit.conclude(intent, about, { result: 'ok', endsSignInsOf: 'vera' });
    expect(way.hasLost()).toBe(true);
    await eventually('the outcome is there', async () => (await stored('seq')).length === 2, 10_000);
    await audit.list({}, 0, 1);
    expect(await stored('phase, result')).toEqual([
      { phase: 'intent', result: null },
      { phase: 'outcome', result: 'ok' },
    ]);
  });

  it('takes back an intent that was refused but committed', async () => {
    const { audit } = database.process({ through: way.port });
    await audit.intend(subject());
    way.loseNextCommit();
    await expect(audit.intend(subject({ target: 'refused' }))).rejects.toMatchObject({ code: 'unavailable' });
    await eventually('it is concluded', async () => (await stored('seq')).length === 3, 10_000);
    expect(await stored('target, phase, result, intent::int')).toMatchObject([
      {},
      { target: 'refused', phase: 'intent', result: null },
      { target: 'refused', phase: 'outcome', result: 'failed', intent: 2 },
    ]);
  });

  it('writes untrusted text on one line of bounded length, and details of bounded size', async () => {
    const { audit } = database.process();
    const actor = { username: `a\u0000b\n${'x'.repeat(100_000)}`, address: '192.0.2.7\r\nforged', requestId: 'r' };
    await audit.note({ actor, action: 'sign-in', target: `\u202e${'ü'.repeat(5_000)}` }, 'denied', {
      text: '\u0000"'.repeat(5_000),
    });
    const { results } = await audit.list({}, 0, 1);
    const [record] = results;
    expect(record?.actor).toMatch(/^a\?b x+\.\.\.$/);
    expect(record?.address).toBe('192.0.2.7 forged');
    expect(record?.target).toMatch(/^\?ü+\.\.\.$/);
    expect([record?.actor.length, record?.target.length]).toEqual([150, 300]);
    expect(Buffer.byteLength(record?.detail ?? '')).toBeLessThanOrEqual(4_096);
    expect(Object.keys(JSON.parse(record?.detail ?? '{}') as object)).toEqual(['shortened']);
    await expect(audit.intend(subject(), { text: 'x'.repeat(20_000) })).rejects.toMatchObject({ code: 'invalid' });
    expect(await audit.verify()).toMatchObject({ ok: true, records: 1 });
  });

  it('keeps a burst of a flood, and other kinds beside it', async () => {
    const { audit } = database.process();
    for (let n = 0; n < 5_000; n += 1) void audit.note(subject({ action: 'sign-in' }), 'denied');
    void audit.note(subject({ action: 'request.denied' }), 'denied');
    expect((await audit.list({ action: 'sign-in' }, 0, 1)).count).toBe(1_000);
    expect((await audit.list({ action: 'request.denied' }, 0, 1)).count).toBe(1);
  });

  it('keeps what people tried beside a flood of the same kind by nobody', async () => {
    const { audit } = database.process();
    const nobody = { username: '', address: '192.0.2.9', requestId: 'flood' };
    for (const action of ['sign-in', 'request.denied']) {
      for (let n = 0; n < 1_500; n += 1) void audit.note(subject({ action, actor: nobody }), 'denied');
      for (let n = 0; n < 20; n += 1) void audit.note(subject({ action }), 'denied');
      expect((await audit.list({ action }, 0, 1)).count).toBe(1_020);
    }
  });

  it('counts what it left out of a flood in one record', async () => {
    const { audit } = database.process({ minuteMs: 300 });
    for (let n = 0; n < 1_100; n += 1) void audit.note(subject({ action: 'sign-in' }), 'denied');
    const counted = async () => (await audit.list({ action: 'audit.omitted' }, 0, 10)).results;
    await eventually('it is counted', async () => (await counted()).length > 0, 10_000);
    expect(await counted()).toMatchObject([{ actor: 'holdfast', result: 'denied', detail: '{"sign-in":100}' }]);
  });

  it('keeps its last record in a file that only its owner can read', async () => {
    const { audit, headFile } = database.process();
    await audit.intend(subject());
    await audit.verify();
    const [row] = await stored('seq::int, hash');
    expect(JSON.parse(readFileSync(headFile, 'utf8'))).toEqual(row);
    expect(statSync(headFile).mode & 0o777).toBe(0o600);
  });
});
