import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { csvLine } from '@holdfast/kit/text';
import { createApp } from '../../functions/app.ts';
import type { Alert } from '../../shared/alerts/port.ts';
import type { Bindings } from '../../shared/http/context.ts';
import { problemSchema } from '../../shared/http/route.ts';
import { ADMIN, fakeDeps, READER } from '../http/fake-deps.ts';
import { alertsHolding, fakeTransport } from './fake-alerts.ts';
import { anyCharacter } from '../support/runs.ts';

const CONNECTION: Bindings = { requestId: 'request-1', clientAddress: '192.0.2.7', secure: false };

function alert(number: number, change: Partial<Alert> = {}): Alert {
  const raised = new Date(Date.UTC(2026, 0, 2, 3, number)).toISOString();
  return {
    id: `alert-${number}`,
    module: 'disk',
    level: 'warning',
    message: `/: ${80 + number} % full.`,
    details: ['/: 80 % full; warning from 80 %.', '/data: 85 % full; warning from 80 %.'],
    remedies: ['Empty /tmp first.'],
    since: '2026-01-02T03:00:00.000Z',
    raised_at: raised,
    state: 'sent',
    reason: null,
    sent_at: raised,
    attempts: 1,
    next_attempt_at: null,
    deliveries: [{ channel: 'email', recipient: 'duty@example.org', accepted: true, detail: '250 OK', at: raised }],
    ...change,
  };
}

function started(kept: Alert[] = [], values: Record<string, string> = {}) {
  const deps = fakeDeps(values);
  deps.alerts = alertsHolding(kept);
  const app = createApp(deps);
  const ask = async (query: string, headers: Record<string, string> = READER): Promise<Response> =>
    app.request(`/api/alerts${query}`, { headers }, CONNECTION);
  return { deps, app, ask };
}

interface Page {
  results: Alert[];
  count: number;
  page: number;
  page_size: number;
  complete: boolean;
}

const many = Array.from({ length: 55 }, (_, index) => alert(index));

describe('GET /api/alerts', () => {
  it('shows readers a page, newest first, with everything that an alert has', async () => {
    const { ask } = started(many);
    const response = await ask('');
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
    const page = (await response.json()) as Page;
    expect(page).toMatchObject({ count: 55, page: 1, page_size: 50, complete: true });
    expect(page.results.map(({ id }) => id)).toEqual(Array.from({ length: 50 }, (_, index) => `alert-${54 - index}`));
    const masked = { ...alert(54).deliveries[0], recipient: 'd***@example.org' };
    expect(page.results[0]).toEqual({ ...alert(54), deliveries: [masked] });
  });

  it('has further pages, and empty ones beyond the last', async () => {
    const { ask } = started(many);
    const page = async (query: string) => {
      const { results, count } = (await (await ask(query)).json()) as Page;
      return [results.length, count];
    };
    expect(await page('?page=2')).toEqual([5, 55]);
    expect(await page('?page=3')).toEqual([0, 55]);
    expect(await page('?page=999999999&page_size=200')).toEqual([0, 55]);
    expect(await page('?page=6&page_size=10')).toEqual([5, 55]);
  });

  it('says when the database does not answer and not everything is shown', async () => {
    const { deps, ask } = started(many);
    const { alerts } = deps;
    const list = alerts.list.bind(alerts);
    alerts.list = async (...args) => ({ ...(await list(...args)), complete: false });
    expect(await (await ask('')).json()).toMatchObject({ complete: false });
    expect((await ask('?format=csv')).headers.get('x-complete')).toBe('false');
  });

  it.each([
    ['?module=disk', ['2', '1']],
    ['?module=nothing', []],
    ['?level=critical', ['3']],
    ['?state=pending', ['2']],
    ['?since=2026-01-02T03:02:00Z', ['3', '2']],
    ['?until=2026-01-02T03:02:00Z', ['1']],
    ['?since=2026-01-02T05:02:00%2B02:00&until=2026-01-02T03:03Z', ['2']],
    ['?since=2026-01-02', ['3', '2', '1']],
    ['?until=2026-01-02', []],
    ['?module=disk&state=sent', ['1']],
  ])('takes the filter %s', async (query, ids) => {
    const { ask } = started([
      alert(1),
      alert(2, { state: 'pending', sent_at: null }),
      alert(3, { module: 'tls', level: 'critical' }),
    ]);
    const { results, count } = (await (await ask(query)).json()) as Page;
    expect(results.map(({ id }) => id.replace('alert-', ''))).toEqual(ids);
    expect(count).toBe(ids.length);
  });

  it.each([
    ['level', ['ok', 'fatal', '', 'Warning']],
    ['state', ['done', '']],
    ['format', ['xml', 'CSV', '']],
    [
      'since',
      ['yesterday', '2026-13-01', '2026-02-30T00:00:00Z', '2026-01-02T03:04:05', '2026-01-02T03:04:05+02:00', ''],
    ],
    [
      'until',
      [
        '1767322800',
        '2026-01-02 03:04:05Z',
        '2026-01-02T25:00:00Z',
        '0000-01-01',
        '9999-12-31T23:59:59-23:59',
        '0001-01-01T00:00:00+23:59',
      ],
    ],
    ['page', ['0', '-1', '1.5', 'x', '9999999999']],
    ['page_size', ['0', '201', 'all']],
    ['module', ['', 'x'.repeat(101), '\u0000', 'a b', "'"]],
  ])('refuses bad values of %s by its name', async (name, values) => {
    const { ask } = started();
    for (const value of values) {
      const response = await ask(`?${name}=${value}`);
      const { errors } = problemSchema.parse(await response.json());
      expect([value, response.status, errors?.map(({ path }) => path)]).toEqual([value, 422, [name]]);
    }
    const twice = await ask(`?${name}=1&${name}=2`);
    expect(twice.status).toBe(422);
  });

  it('never shows an address of anybody, however a service spelled it', async () => {
    const deliveries = [
      { channel: 'email', recipient: 'duty@example.org', accepted: false, detail: '550 <DUTY@example.org> unknown' },
      { channel: 'sms', recipient: '+15551234567', accepted: false, detail: "21211: 'To' number 15551234567" },
    ] as const;
    const reason = 'duty@example.org: 550; +1 555 123 4567: 21211; chief%40example.org was not asked';
    const at = '2026-01-02T03:04:05.000Z';
    const { ask } = started([alert(1, { reason, deliveries: deliveries.map((each) => ({ ...each, at })) })], {
      ALERT_EMAIL_TO: 'chief@example.org',
      SMTP_URL: 'smtp://mail.example.org',
    });
    for (const query of ['', '?format=csv']) {
      const text = await (await ask(query)).text();
      expect(text).not.toMatch(/duty|chief|5551234567|123 4567/i);
      expect(text).toContain('d***@example.org');
      expect(text).toContain('c***@example.org was not asked');
      expect(text).toContain('+1555***67');
    }
  });
});

describe('GET /api/alerts?format=csv', () => {
  const rowsOf = async (response: Response): Promise<number> => (await response.text()).split('\r\n').length - 2;

  it('is a file with a header line and one line for each alert', async () => {
    const { ask } = started([alert(1, { message: 'a "quoted", word', reason: '=1+1' })]);
    const response = await ask('?format=csv');
    expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect(response.headers.get('content-disposition')).toBe('attachment; filename=alerts.csv');
    expect(await response.text()).toBe(
      'id,module,level,message,raised_at,state,sent_at,attempts,since,details,remedies,reason,next_attempt_at,deliveries\r\n' +
        'alert-1,disk,warning,"a ""quoted"", word",2026-01-02T03:01:00.000Z,sent,2026-01-02T03:01:00.000Z,1,2026-01-02T03:00:00.000Z,' +
        '"/: 80 % full; warning from 80 %.\n/data: 85 % full; warning from 80 %.",Empty /tmp first.,\'=1+1,,' +
        'email d***@example.org accepted 2026-01-02T03:01:00.000Z: 250 OK\r\n',
    );
  });

  it('holds everything that matches up to 10,000, or the page that was asked for', async () => {
    const { ask } = started(Array.from({ length: 10_001 }, (_, index) => alert(index)));
    const all = await ask('?format=csv');
    expect(all.headers.get('x-total-count')).toBe('10001');
    expect(await rowsOf(all)).toBe(10_000);
    expect(await rowsOf(await ask('?format=csv&page=1'))).toBe(50);
    expect(await rowsOf(await ask('?format=csv&page_size=200'))).toBe(200);
    expect(await rowsOf(await ask('?format=csv&page=500&page_size=50'))).toBe(0);
    expect(await rowsOf(await ask('?format=csv&module=nothing'))).toBe(0);
  });
});

describe('a line of CSV', () => {
  it.each(['=1', '+1', '-1', '@a', '\t=1', ' =1', '\r=1', '＝1', '\u0000=1'])('takes no formula such as %j', (text) => {
    expect(csvLine([text])).toMatch(/^"?'/);
  });

  it.each(['a=1', '/: 90 %', "it's", '1', ''])('leaves %j as it is', (text) =>
    expect(csvLine([text])).toBe(`${text}\r\n`),
  );

  it('can be read back whatever it holds', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: anyCharacter }), { minLength: 1 }), (cells) => {
        const line = csvLine(cells);
        const read = [...`,${line.slice(0, -2)}`.matchAll(/,(?:"((?:[^"]|"")*)"|([^",]*))/g)].map(
          ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? '',
        );
        expect(read.map((cell, index) => (cell === `'${cells[index]}` ? cells[index] : cell))).toEqual(cells);
      }),
    );
  });
});

describe('POST /api/ops/alerts/test', () => {
  function testing(values: Record<string, string> = {}) {
    const { deps, app } = started([], values);
    const send = async (body: unknown, headers: Record<string, string> = ADMIN): Promise<[number, unknown]> => {
      const init = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } };
      const response = await app.request('/api/ops/alerts/test', { ...init, body: JSON.stringify(body) }, CONNECTION);
      return [response.status, await response.json()];
    };
    return { deps, send };
  }

  it('sends a test message to everybody and says by which service', async () => {
    const { deps, send } = testing();
    const transport = fakeTransport(['duty@example.org', 'chief@example.org']);
    deps.notify.email = transport;
    expect(await send({ channel: 'email' })).toEqual([
      200,
      { delivered: true, detail: 'SMTP (mail.example.org) accepted it for 2 recipients.' },
    ]);
    expect(transport.sent.map(({ subject }) => subject)).toEqual(['[Holdfast] Test message from cot.example.org']);
    expect(deps.log.events).toEqual([
      {
        level: 'info',
        event: 'alert.test',
        fields: { channel: 'email', by: 'SMTP (mail.example.org)', delivered: true, recipients: 2, accepted: 2 },
      },
    ]);
  });

  it('says what went wrong for whom, without addresses, and logs none', async () => {
    const { deps, send } = testing();
    deps.notify.sms = fakeTransport(['+15551234567', '+15557654321'], (recipient) =>
      recipient.endsWith('1')
        ? { accepted: true, detail: 'queued' }
        : { accepted: false, detail: `21211: ${recipient} is\nno phone.` },
    );
    const [status, answer] = await send({ channel: 'sms' });
    expect([status, answer]).toEqual([
      200,
      {
        delivered: false,
        detail: 'SMTP (mail.example.org) accepted it for 1 of 2 recipients. +1555***67: 21211: +1555***67 is no phone.',
      },
    ]);
    expect(deps.log.events[0]).toMatchObject({ level: 'warn', fields: { channel: 'sms', delivered: false } });
    expect(JSON.stringify(deps.log.events)).not.toMatch(/1234567|7654321/);
  });

  it.each([
    ['email', 'ALERT_EMAIL_TO, and SMTP_URL or RESEND_API_KEY'],
    ['sms', 'ALERT_SMS_TO and SMS_PROVIDER'],
  ])('is 409 with the remedy while %s is not set up', async (channel, remedy) => {
    const [status, answer] = await testing().send({ channel });
    expect(status).toBe(409);
    expect(problemSchema.parse(answer)).toMatchObject({ code: 'conflict', detail: expect.stringContaining(remedy) });
  });

  it('is for administrators only, and takes the two channels only', async () => {
    const { send } = testing();
    expect((await send({ channel: 'email' }, READER))[0]).toBe(403);
    for (const body of [{ channel: 'fax' }, {}, [], null]) {
      const [status, answer] = await send(body);
      expect([status, problemSchema.parse(answer).code]).toEqual([422, 'invalid']);
    }
  });
});
