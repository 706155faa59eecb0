// The client of retention before answers that a core, or something in its place, may give; over real TLS.

import { describe, expect, it } from 'vitest';
import { KEEP_ALL } from '@holdfast/kit/retention';
import type { HttpCore } from '../../shared/core/http.ts';
import { failureOf, type OddCore, type Routes, sendJson, sendPage, wrapped } from './fake-odd-core.ts';
import { withOddCore } from './with-odd-core.ts';

const BASE = '/Marti/api/retention';
const POLICY = `${BASE}/policy`;
const SCHEDULE = `${BASE}/service/schedule`;
const RUNS = `${BASE}/runs`;
const ID = '7f0c7b0a-0000-4000-8000-000000000001';
const ORDER = { id: ID, limits: { cot: '2026-01-01T00:00:00.000Z' }, maxRows: 5 };
const RUN = {
  id: ID,
  trigger: 'order',
  state: 'running',
  startedAt: '2026-02-01T00:00:00.000Z',
  limits: ORDER.limits,
  rows: { cot: 1 },
};

let server: OddCore;
let core: HttpCore;
const serve = (routes: Routes): void => server.serve(routes);
type Answers = OddCore['answers'];
const empty: Answers = (_, response) => void response.writeHead(200).end();
const fault =
  (status: number, code: number, message: string): Answers =>
  (_, response) =>
    sendJson(response, { status: 'X', code, message }, status);
const page =
  (status: number): Answers =>
  (_, response) =>
    sendPage(response, status, 'HTTP Status');

withOddCore((odd, client) => {
  server = odd;
  core = client;
});

describe('the policy', () => {
  it('is read when members are missing, null or unknown', async () => {
    serve({ [`GET ${POLICY}`]: { cot: 2_592_000, files: null, tracks: 4 } });
    expect(await core.retention.policy()).toEqual({ ...KEEP_ALL, cot: 2_592_000 });
  });

  it('is no policy when it holds text', async () => {
    serve({ [`GET ${POLICY}`]: { cot: '30' } });
    expect(await failureOf(core.retention.policy())).toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('data.cot'),
    });
  });

  it('is sent as JSON, only what is given, and read back', async () => {
    let kept: object = { cot: 5, files: 9 };
    serve({
      [`PUT ${POLICY}`]: ((_, response, body) => {
        kept = { ...kept, ...(JSON.parse(body) as object) };
        sendJson(response, wrapped({ cot: 'whatever' }));
      }) satisfies Answers,
      [`GET ${POLICY}`]: ((_, response) => sendJson(response, wrapped(kept))) satisfies Answers,
    });
    expect(await core.retention.changePolicy({ cot: null })).toEqual({ ...KEEP_ALL, files: 9 });
    expect(server.met[0]).toMatchObject({ body: '{"cot":null}', headers: { 'content-type': 'application/json' } });
    expect(server.requests).toEqual([`PUT ${POLICY}`, `GET ${POLICY}`]);
  });

  it('that was not taken is an error that names the key, what was asked and what is in force', async () => {
    serve({ [`PUT ${POLICY}`]: {}, [`GET ${POLICY}`]: { cot: 60, geochat: 7 } });
    const wrong = await failureOf(core.retention.changePolicy({ geochat: 7, cot: 30 }));
    expect([wrong.code, wrong.message]).toEqual([
      'upstream',
      expect.stringContaining('was asked to keep cot at 30 but now has at 60 in effect'),
    ]);
    const left = await failureOf(core.retention.changePolicy({ cot: null }));
    expect(left.message).toContain('keep cot forever (null) but now has at 60');
  });

  it('that is refused is told in the words of the core', async () => {
    serve({ [`PUT ${POLICY}`]: fault(400, 2, 'Invalid Request: too many\nseconds') });
    const refused = await failureOf(core.retention.changePolicy({ cot: 30 }));
    expect([refused.code, refused.message]).toEqual([
      'upstream',
      expect.stringContaining('Invalid Request: too many seconds'),
    ]);
    expect(server.requests).toEqual([`PUT ${POLICY}`]);
  });
});

describe('the schedule', () => {
  it('is sent as bare text, and read back', async () => {
    serve({ [`PUT ${SCHEDULE}`]: 'x', [`GET ${SCHEDULE}`]: '0 0 3 * * ?' });
    expect(await core.retention.changeSchedule('0 0 3 * * ?')).toBe('0 0 3 * * ?');
    expect(server.met[0]).toMatchObject({ body: '0 0 3 * * ?', headers: { 'content-type': 'text/plain' } });
  });

  it('that the core cannot read is an error, although it answers 200 with nothing', async () => {
    serve({ [`PUT ${SCHEDULE}`]: empty, [`GET ${SCHEDULE}`]: '-' });
    const wrong = await failureOf(core.retention.changeSchedule('0 0 3 * * L?'));
    expect([wrong.code, wrong.message]).toEqual([
      'upstream',
      expect.stringContaining('was asked for the schedule "0 0 3 * * L?" but has "-" in effect'),
    ]);
  });

  it('that is taken counts, although the core answers with nothing', async () => {
    serve({ [`PUT ${SCHEDULE}`]: empty, [`GET ${SCHEDULE}`]: '-' });
    expect(await core.retention.changeSchedule('-')).toBe('-');
  });

  it.each([[null], [undefined], ['  ']])('is none when the core says %j', async (text) => {
    serve({ [`GET ${SCHEDULE}`]: text });
    expect(await core.retention.schedule()).toBe('-');
  });
});

it('archiving of missions is read without its schedule too', async () => {
  const rest = {
    removeFromArchiveAfterDays: 1065.5,
    timeToArchiveAfterNoActivityDays: 365,
    archiveMissionByNoContentActivity: true,
    archiveMissionByNoSubscriptionActivity: false,
  };
  serve({ [`GET ${BASE}/missionarchiveconfig`]: rest });
  expect(await core.retention.missionArchiving()).toEqual({ cron: '-', ...rest });
});

describe('runs', () => {
  it.each([404, 405, 501])('a core that answers %d has none to tell of, and begins none', async (status) => {
    serve({ [`GET ${RUNS}`]: page(status), [`POST ${RUNS}`]: page(status) });
    expect(await core.retention.runs()).toBeUndefined();
    expect(await failureOf(core.retention.begin(ORDER))).toMatchObject({
      code: 'not_supported',
      message: "This core can't start a retention run on request. It runs only on its schedule.",
    });
  });

  it('a core that does not reach a part of itself is away, and not without the call', async () => {
    const unavailable = fault(404, 0, 'backend unreachable');
    serve({ [`GET ${RUNS}`]: unavailable, [`POST ${RUNS}`]: unavailable });
    expect((await failureOf(core.retention.runs())).code).toBe('unavailable');
    expect((await failureOf(core.retention.begin(ORDER))).code).toBe('unavailable');
  });

  it('one that is going on, and limits that are refused, are told in the words of the core, in one short line', async () => {
    serve({ [`POST ${RUNS}`]: fault(409, 4, 'run 7 is going on') });
    expect(await failureOf(core.retention.begin(ORDER))).toMatchObject({
      code: 'conflict',
      message: 'A retention run is already in progress: run 7 is going on',
    });
    serve({ [`POST ${RUNS}`]: fault(400, 2, `Invalid Request: ${'x\n'.repeat(9_000)}`) });
    const { code, message } = await failureOf(core.retention.begin(ORDER));
    expect([code, message.length < 400, message.includes('\n')]).toEqual(['invalid', true, false]);
  });

  it('are read with members missing, times in any zone, and types that we do not know', async () => {
    const odd = {
      ...RUN,
      state: 'failed',
      trigger: 'schedule',
      finishedAt: '2026-02-01T01:00:00+01:00',
      limits: { tracks: '2026-01-01T00:00:00Z' },
      rows: { cot: 2, tracks: 5, files: null },
      included: null,
      expected: null,
      error: 'disk\nfull',
    };
    serve({ [`GET ${RUNS}`]: [RUN, odd] });
    const without = { finishedAt: null, included: { cot: 0, files: 0 }, expected: null, bytes: null, error: null };
    expect(await core.retention.runs()).toEqual([
      { ...RUN, ...without },
      {
        ...without,
        id: ID,
        trigger: 'schedule',
        state: 'failed',
        startedAt: RUN.startedAt,
        finishedAt: '2026-02-01T00:00:00.000Z',
        limits: {},
        rows: { cot: 2 },
        error: 'disk full',
      },
    ]);
  });

  it('the order is sent as it is, and another run in answer is an error', async () => {
    serve({ [`POST ${RUNS}`]: RUN });
    expect(await core.retention.begin(ORDER)).toMatchObject({ id: ID, rows: { cot: 1 }, finishedAt: null });
    const { maxRows: mostRows, ...rest } = ORDER;
    expect(JSON.parse(server.met[0]?.body ?? '')).toEqual({ ...rest, mostRows });
    serve({ [`POST ${RUNS}`]: { ...RUN, id: 'another' } });
    expect((await failureOf(core.retention.begin(ORDER))).code).toBe('upstream');
  });

  it.each([
    ['a state', { state: 'sleeping' }],
    ['a time', { startedAt: 'yesterday' }],
    ['a count', { rows: { cot: -1 } }],
  ])('with %s that cannot be is another shape', async (_, wrong) => {
    serve({ [`GET ${RUNS}`]: [{ ...RUN, ...wrong }] });
    expect((await failureOf(core.retention.runs())).code).toBe('upstream');
  });
});
