// Retention at a real core: by its schedule, by order, killed in the middle, with events that keep
// arriving.

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { CoreRetentionRun } from '@holdfast/kit/core-wire';
import { DAY_MS } from '@holdfast/kit/time';
import { apiDevice, asDevice, coreOf, type CurlAnswer, enroll, newPerson, workDirectory } from './core-client.ts';
import { eventually, newStack, query, type TestStack } from './embedded.ts';
import { type Held, inTransaction } from './stopped-table.ts';
import { letIn } from './stream-device.ts';

const BASE = '/Marti/api/retention';
const OFTEN = '*/2 * * * * ?';
let stack: TestStack;
let admin: Awaited<ReturnType<typeof apiDevice>>;

beforeAll(async () => {
  stack = await newStack();
  expect((await stack.start()).code).toBe(0);
  admin = await apiDevice(coreOf(stack), workDirectory(stack));
});

const core = (path: string, more: string[] = []): Promise<CurlAnswer> =>
  asDevice(coreOf(stack), admin, `${BASE}${path}`, more);
const sent = (method: string, body: unknown): string[] => {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return ['-X', method, '-H', 'content-type: application/json', '--data-binary', text];
};
const setPolicy = async (policy: object): Promise<void> =>
  expect((await core('/policy', sent('PUT', policy))).status).toBe(200);
const setSchedule = async (cron: string): Promise<void> =>
  expect((await core('/service/schedule', sent('PUT', cron))).body).toContain(`"data":"${cron}"`);
const dataOf = ({ status, body }: CurlAnswer): unknown => {
  const { type, data } = JSON.parse(body) as { type: string; data: unknown };
  expect([status, type]).toEqual([200, 'RetentionRun']);
  return data;
};
const runs = async (): Promise<CoreRetentionRun[]> => dataOf(await core('/runs')) as CoreRetentionRun[];
const order = (limits: object, id: string = randomUUID(), maxRows: number | null = null): Promise<CurlAnswer> =>
  core('/runs', sent('POST', { id, limits, mostRows: maxRows }));
const ago = (days: number): string => new Date(Date.now() - days * DAY_MS - 60_000).toISOString();
const addOld = (count: number, uid = 'old') =>
  query(
    stack.file().database,
    `INSERT INTO cot_router (uid, cot_type, servertime)
     SELECT '${uid}', 'a-f-G', now() - interval '40 days' + n * interval '1 ms' FROM generate_series(1, ${count}) n`,
  );
const countOf = async (uid = 'old'): Promise<number> =>
  (
    await query<{ n: number }>(stack.file().database, `SELECT count(*)::int AS n FROM cot_router WHERE uid = '${uid}'`)
  )[0]?.n ?? -1;
/** A run waits before its last batch until it is let go. */
const lastOldHeld = (): Promise<Held> =>
  inTransaction(
    stack.file().database,
    "SELECT FROM cot_router WHERE uid = 'old' ORDER BY servertime DESC LIMIT 1 FOR UPDATE",
  );
const ended = async (id: string): Promise<CoreRetentionRun> => {
  await eventually(
    'the run has ended',
    async () => (await runs()).some((run) => run.id === id && run.state !== 'running'),
    60_000,
  );
  return (await runs()).find((run) => run.id === id) as CoreRetentionRun;
};
const coreLog = (): string => readFileSync(join(stack.data, 'logs/core.log'), 'utf8');
const retentionLog = (): string => readFileSync(join(coreOf(stack).directory, 'logs/takserver-retention.log'), 'utf8');

describe('retention', () => {
  it('deletes nothing while no days are set, and leaves no run', async () => {
    await addOld(10);
    await setSchedule(OFTEN);
    await eventually('the schedule has fired', () => coreLog().includes('retention.nothing_to_do'), 10_000);
    await setSchedule('-');
    expect([await runs(), await countOf()]).toEqual([[], 10]);
  });

  it('deletes nothing while its schedule is a hyphen, and says so of what may not be ordered', async () => {
    await setPolicy({ cot: 30 });
    const firings = coreLog().split('retention.started').length;
    expect((await order({ cot: ago(29) })).status).toBe(400);
    expect((await order({ geochat: ago(400) })).body).toContain('keeps geochat forever');
    expect((await order({ cot: 'soon' })).status).toBe(400);
    expect([await runs(), await countOf(), coreLog().split('retention.started').length]).toEqual([[], 10, firings]);
  });

  it('runs by its schedule, and is found in both logs', async () => {
    await setSchedule(OFTEN);
    await eventually('the old events are gone', async () => (await countOf()) === 0, 20_000);
    await setSchedule('-');
    await eventually('no run goes on', async () => (await runs()).every(({ state }) => state === 'done'), 10_000);
    expect((await runs()).find(({ rows }) => rows.cot === 10)).toMatchObject({ trigger: 'schedule', error: null });
    await expect.poll(retentionLog).toContain('rows deleted: cot 10');
    for (const line of retentionLog().trim().split('\n')) expect(line).toMatch(/retention.*retention/);
    await expect.poll(coreLog).toMatch(/"event":"retention\.run".*"unit":"days".*"rows":\{"cot":10\}/);
    expect(coreLog()).toMatch(/"event":"retention\.scheduled".*"time_zone":/);
  });

  it('runs by order once for each id, while events keep arriving', async () => {
    await newPerson(stack, 'ada', 'correct horse battery');
    const device = await enroll(coreOf(stack), workDirectory(stack), 'ada', 'correct horse battery');
    const ada = await letIn(coreOf(stack), device, 'ADA');
    await addOld(4_000);
    const last = await lastOldHeld();
    const id = randomUUID();
    const limits = { cot: ago(30) };
    expect(dataOf(await order(limits, id))).toMatchObject({ id, state: 'running', trigger: 'order' });
    expect((await order(limits)).status).toBe(409);
    let reports = 0;
    const reporting = setInterval(() => {
      ada.report(47 + ++reports / 1000);
    }, 20);
    await eventually('some are stored', async () => (await countOf(ada.uid)) > 10);
    await last.letGo();
    const run = await ended(id);
    clearInterval(reporting);
    expect(run).toMatchObject({ state: 'done', rows: { cot: 4_000 }, expected: 4_000 });
    expect(dataOf(await order(limits, id))).toEqual(run);
    await eventually('every report is stored', async () => (await countOf(ada.uid)) === reports);
    ada.leave();
  });

  it('that is killed in the middle is finished by the next run', async () => {
    await addOld(4_000);
    const last = await lastOldHeld();
    const id = randomUUID();
    expect((await order({ cot: ago(30) }, id)).status).toBe(200);
    await eventually('a batch is gone', async () => (await countOf()) < 4_000);
    const pid = stack.pid('core');
    process.kill(pid, 'SIGKILL');
    await last.letGo();
    await eventually(
      'the core is back',
      async () => stack.pid('core') !== pid && (await core('/runs')).status === 200,
      30_000,
    );
    const run = await ended(id);
    expect(run).toMatchObject({
      state: 'interrupted',
      error: expect.stringContaining('The next run deletes the rest'),
    });
    const left = await countOf();
    expect(left).toBe(4_000 - (run.rows.cot ?? 0));
    expect(left).toBeGreaterThan(0);
    const next = randomUUID();
    expect((await order({ cot: ago(30) }, next)).status).toBe(200);
    expect((await ended(next)).rows).toEqual({ cot: left });
    expect(await countOf()).toBe(0);
  });
});
