// The audit log of a whole stack: what people do is in it, and audit.sh and the API say the same of
// it.

import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { connect } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import { auditChain } from '../../../shared/audit/chain.ts';
import { appendRecords, lockAudit, readHead } from '../../../shared/audit/table.ts';
import { basic } from '../../http/fake-deps.ts';
import { canaryHasRun } from './canary-run.ts';
import { newStack, type Outcome, outcomeOf, query, run, stop, type TestStack } from './embedded.ts';
import { RUN, stands } from './running-stack.ts';

interface Page {
  results: Record<string, unknown>[];
  count: number;
}

const VERA = `vera${RUN}`;
let stack: TestStack;

const admin = (): { authorization: string } => {
  const { username, password } = stack.file().webadmin;
  return { authorization: basic(username, password) };
};
const ask = async (path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`${stack.file().api}${path}`, { headers: admin(), ...init });
const audit = async (...args: string[]): Promise<Outcome> =>
  outcomeOf(run('audit.sh', [...args, '--data', stack.data, '--env', '/dev/null']));
const inDatabase = <T extends object>(text: string): Promise<T[]> => query<T>(stack.file().state_database, text);

beforeAll(async () => {
  stack = await newStack();
  expect((await stack.start()).code).toBe(0);
  await canaryHasRun(stack);
});

describe('the audit log of a stack', () => {
  it('has what was done, what was denied, and from where', async () => {
    const headers = { ...admin(), 'content-type': 'application/json' };
    const tried = await ask('/api/ops/alerts/test', { method: 'POST', headers, body: '{"channel":"email"}' });
    expect(tried.status).toBe(409);
    const wrong = await ask('/api/settings', { headers: { authorization: basic(VERA, 'wrong') } });
    expect(wrong.status).toBe(401);
    const found = (await (await ask('/api/audit?action=alert')).json()) as Page;
    expect(found).toMatchObject({ ...(stands ? {} : { count: 2 }), page: 1, page_size: 50 });
    const { seen_as: address = '127.0.0.1' } = stack.file();
    const shared = { actor: 'webadmin', address, action: 'alert.test', target: 'email' };
    const intent = found.results[1]?.['seq'];
    expect(found.results.slice(0, 2)).toMatchObject([
      { ...shared, phase: 'outcome', result: 'failed', intent, detail: { error: expect.stringMatching(/not set up/) } },
      { ...shared, phase: 'intent', result: null, intent: null },
    ]);
    const denied = (await (await ask(`/api/audit?actor=${VERA}`)).json()) as Page;
    expect(denied.results).toMatchObject([{ address, phase: 'outcome', result: 'denied' }]);
  });

  it.skipIf(stands)('is verified by the API and by audit.sh, which both find one changed byte', async () => {
    const [{ last } = { last: 0 }] = await inDatabase<{ last: number }>(
      'SELECT max(seq)::int AS last FROM audit_record',
    );
    expect(await (await ask('/api/audit/verify')).json()).toEqual({ ok: true, records: last, first_broken: null });
    const whole = await audit('verify');
    expect([whole.code, whole.output]).toEqual([0, `The audit log is intact: ${last} records.\n`]);
    const [{ seq } = { seq: 0 }] = await inDatabase<{ seq: number }>(
      "SELECT min(seq)::int AS seq FROM audit_record WHERE action = 'alert.test' AND target = 'email'",
    );
    await inDatabase(`UPDATE audit_record SET target = 'emaim' WHERE seq = ${seq}`);
    expect(await inDatabase("SELECT seq::int FROM audit_record WHERE target = 'emaim'")).toEqual([{ seq }]);
    expect(await (await ask('/api/audit/verify')).json()).toMatchObject({ ok: false, first_broken: seq });
    const broken = await audit('verify');
    expect(broken.code).toBe(1);
    expect(broken.output).toMatch(
      /NOT intact[^]*changed or missing record: \d+\.[^]*Remedy: .*audit-head\.json[^]*docs\/audit\.md/,
    );
    expect(broken.output).toContain(`: ${seq}.`);
    const refused = await audit('prune', '--before', '2026-01-01', '--yes');
    expect([refused.code, refused.output]).toEqual([
      1,
      expect.stringMatching(/Nothing was removed[^]*--although-broken/),
    ]);
    await inDatabase(`UPDATE audit_record SET target = 'email' WHERE seq = ${seq}`);
    expect((await audit('verify')).code).toBe(0);
    await inDatabase('DELETE FROM audit_record WHERE seq = (SELECT max(seq) FROM audit_record)');
    expect(await (await ask('/api/audit/verify')).json()).toMatchObject({ ok: false, first_broken: last });
    expect((await audit('verify')).code).toBe(1);
  });

  it.skipIf(stands)('is pruned by audit.sh after it was shown what would go, and goes on', async () => {
    await restart(['2020-01-01', '2020-01-02', '2020-02-01']);
    const shown = await audit('prune', '--before', '2020-01-15');
    expect([shown.code, shown.output]).toEqual([
      0,
      expect.stringMatching(/^Will remove: 2 records, from 2020-01-01T[^]*add --yes\n$/),
    ]);
    expect((await inDatabase('SELECT FROM audit_record')).length).toBe(3);
    const done = await audit('prune', '--before', '2020-01-15', '--yes');
    expect([done.code, done.output]).toEqual([
      0,
      expect.stringMatching(/^Removed: 2 records, from 2020-01-01T.* to 2020-01-02T/m),
    ]);
    expect(await inDatabase('SELECT seq::int, action FROM audit_record ORDER BY audit_record.seq')).toEqual([
      { seq: 3, action: 'test' },
      { seq: 4, action: 'audit.prune' },
    ]);
    expect(await (await ask('/api/audit/verify')).json()).toMatchObject({ ok: true, records: 2 });
    await ask('/api/settings', { headers: { authorization: basic(VERA, 'wrong') } });
    expect(await (await ask('/api/audit/verify')).json()).toMatchObject({ ok: true, records: 3 });
    const nothing = await audit('prune', '--before', '2020-01-15', '--yes');
    expect([nothing.code, nothing.output]).toEqual([0, expect.stringMatching(/^No records before 2020-01-15 /)]);
  });

  it.skipIf(stands).each([
    [['verify', '--before', '2020-01-01'], 2, /are options of prune/],
    [['prune'], 2, /prune needs a date/],
    [['prune', '--before', '2999-01-01'], 2, /is in the future/],
    [['prune', '--before', 'yesterday'], 2, /must be a date as YYYY-MM-DD/],
    [['burn'], 2, /Unknown command: burn/],
    [[], 2, /verify or prune/],
    [['verify', '--nonsense'], 2, /--nonsense/],
  ])('says how audit.sh is used to %j', async (args, code, text) => {
    const outcome = await audit(...args);
    expect([outcome.code, outcome.output]).toEqual([code, expect.stringMatching(text)]);
  });

  it.skipIf(stands)('tells audit.sh nothing where there is no stack or no key', async () => {
    const nowhere = await outcomeOf(run('audit.sh', ['verify', '--data', '/nowhere', '--env', '/dev/null']));
    expect([nowhere.code, nowhere.output]).toEqual([
      1,
      expect.stringMatching(/No running stack in \/nowhere[^]*Remedy/),
    ]);
    const env = { DATABASE_URL: stack.file().state_database };
    const keyless = await outcomeOf(run('audit.sh', ['verify', '--env', '/dev/null'], { env }));
    expect([keyless.code, keyless.output]).toEqual([1, expect.stringMatching(/AUDIT_KEY is not set[^]*Remedy/)]);
    const unavailable = { DATABASE_URL: 'postgres://nobody:secret@127.0.0.1:1/nowhere', AUDIT_KEY: 'x'.repeat(32) };
    const unreachable = await outcomeOf(run('audit.sh', ['verify', '--env', '/dev/null'], { env: unavailable }));
    expect([unreachable.code, unreachable.output]).toEqual([
      1,
      expect.stringMatching(/does not answer[^]*Remedy: correct DATABASE_URL/),
    ]);
    expect(unreachable.output).not.toContain('secret');
    const noFile = await outcomeOf(run('audit.sh', ['verify', '--data', stack.data, '--env', '/nowhere']));
    expect([noFile.code, noFile.output]).toEqual([
      1,
      expect.stringMatching(/--env \/nowhere: file not found[^]*Remedy/),
    ]);
  });
});

describe.skipIf(stands)('the audit log of a stack that is stopped', () => {
  it('is not looked at, and the start is named', async () => {
    await stop(stack.data);
    const outcome = await audit('verify');
    expect(outcome.code).toBe(1);
    expect(outcome.output).toContain(
      `start the stack, whose database holds the log: ./scripts/start.sh --embedded --data ${stack.data}`,
    );
  });
});

/** A log of these days, under the key of the stack. */
async function restart(days: string[]): Promise<void> {
  const secrets = JSON.parse(readFileSync(join(stack.data, 'secrets.json'), 'utf8')) as Record<string, string>;
  const chain = auditChain(new Secret(secrets['AUDIT_KEY'] ?? ''));
  await inDatabase('TRUNCATE audit_record, audit_checkpoint');
  rmSync(join(stack.data, 'management/audit-head.json'));
  const sql = connect(new Secret(stack.file().state_database), { name: 'audit-test' });
  const rest = { actor: 'a', address: '', action: 'test', target: '', detail: '{}', request_id: '' };
  const records = days.map((day) => ({
    ...rest,
    at: `${day}T00:00:00.000Z`,
    phase: 'outcome' as const,
    result: 'ok' as const,
    intent: null,
  }));
  await sql.begin(async (transaction) => {
    await lockAudit(transaction);
    await appendRecords(transaction, chain, await readHead(transaction), records);
  });
  await sql.end({ timeout: 2 });
}
