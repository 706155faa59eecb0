import { describe, expect, it } from 'vitest';
import type { Alert } from '../../shared/alerts/port.ts';
import { visit, type Visitor } from '../pages/page-session.ts';
import { alertsHolding, fakeTransport } from './fake-alerts.ts';

const HOSTILE = '<script>alert(1)</script>';

function alert(number: number, change: Partial<Alert> = {}): Alert {
  const raised = new Date(Date.UTC(2026, 0, 2, 3, number)).toISOString();
  return {
    id: `alert-${number}`,
    module: 'disk',
    level: 'warning',
    message: `/: ${number} % full.`,
    details: ['/data: 85 % full; warning from 80 %.'],
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

async function holding(alerts: Alert[], username = 'webadmin'): Promise<Visitor> {
  const visitor = await visit({ username });
  visitor.deps.alerts = alertsHolding(alerts);
  return visitor;
}

describe('the page of alerts', () => {
  it('shows how bad, of what, when, and what became of it, with the way to what it is about', async () => {
    const html = await (await holding([alert(5)])).page('/alerts');
    expect(html).toContain('<a href="/health/disk">Disks</a>');
    expect(html).toContain('/: 5 % full.');
    expect(html).toContain('2026-01-02 03:05');
    expect(html).toContain('1 of 1 recipient');
    expect(html).toContain('Empty /tmp first.');
    expect(html).toContain('id="alert-alert-5"');
  });

  it('says why one was not sent, and never whose address it was for', async () => {
    const reason = 'duty@example.org is over its quota';
    const html = await (await holding([alert(5, { state: 'failed', reason })], 'vera')).page('/alerts');
    expect(html).toContain('d***@example.org is over its quota');
    expect(html).toContain('Email to d***@example.org');
    expect(html).not.toContain('duty@');
  });

  it('can be had by module, level, state and days of the zone of the stack, and as the same CSV', async () => {
    const visitor = await holding([alert(1), alert(2, { module: 'core', level: 'critical', state: 'pending' })]);
    visitor.deps.timeZone = 'Europe/Berlin';
    const html = await visitor.page(
      '/alerts?module=core&level=critical&state=pending&since=2026-01-02&until=2026-01-02',
    );
    expect([html.includes('/: 1 %'), html.includes('/: 2 %')]).toEqual([false, true]);
    expect(html).toContain('Critical, Pending, from 2026-01-02, to 2026-01-02');
    expect(html).toContain(
      'href="/api/alerts?module=core&amp;level=critical&amp;state=pending&amp;since=2026-01-01T23%3A00%3A00.000Z&amp;until=2026-01-02T23%3A00%3A00.000Z&amp;format=csv"',
    );
    expect(await visitor.page('/alerts?until=2026-01-01')).toContain('No alerts match these filters');
    expect(await visitor.page('/alerts?since=2026-01-03')).toContain('No alerts match these filters');
  });

  it('ignores what is no filter, and says so beside a day that there is not', async () => {
    const html = await (await holding([alert(1)])).page('/alerts?module=x&level=ok&state=y&since=2026-02-30');
    expect(html).toContain('/: 1 %');
    expect(html).toContain('Not a valid date, so it was ignored');
  });

  it('has pages of fifty that keep the filters', async () => {
    const visitor = await holding(Array.from({ length: 55 }, (_, at) => alert(at)));
    const html = await visitor.page('/alerts?module=disk');
    expect(html).toContain('1 to 50 of 55');
    expect(html).toContain('href="/alerts?module=disk&amp;page=2"');
    expect(await visitor.page('/alerts?page=2')).toContain('51 to 55 of 55');
  });

  it('says what to do when nothing was alerted, and what each state means', async () => {
    const html = await (await holding([])).page('/alerts');
    expect(html).toContain('No alerts yet.');
    expect(html).toContain('Not sent on purpose');
  });

  it('says what is missing while the database does not answer', async () => {
    const visitor = await holding([]);
    visitor.deps.alerts.list = async () => ({ results: [], count: 0, complete: false });
    expect(await visitor.page('/alerts')).toContain('the database is unavailable');
  });

  it('shows what modules and services say as it is', async () => {
    const change = { message: HOSTILE, details: [HOSTILE], remedies: [HOSTILE], reason: HOSTILE, module: HOSTILE };
    expect(await (await holding([alert(1, change)])).page('/alerts')).not.toContain(HOSTILE);
  });
});

describe('the test of a channel', () => {
  it('is there for administrators where the channel is set up; else it is said what is missing', async () => {
    const visitor = await holding([]);
    visitor.deps.notify = { email: fakeTransport(['duty@example.org', 'ops@example.org']) };
    const html = await visitor.page('/alerts');
    expect(html).toContain('By SMTP (mail.example.org), 2 recipients: d***@example.org, o***@example.org');
    expect(html).toContain('action="/alerts/test"');
    expect(html).toContain('SMS is not set up. Set ALERT_SMS_TO');
    expect(await (await holding([], 'vera')).page('/alerts')).not.toContain('action="/alerts/test"');
  });

  it('is sent and audited, and says to whom', async () => {
    const visitor = await holding([]);
    const transport = fakeTransport(['duty@example.org']);
    visitor.deps.notify = { email: transport };
    const answer = await visitor.post('/alerts/test', { channel: 'email' });
    const html = await answer.text();
    expect([answer.status, transport.sent.length]).toEqual([200, 1]);
    expect(html).toContain('SMTP (mail.example.org) accepted it for 1 recipient.');
    expect(html).toContain('arrives at 1 recipient: d***@example.org');
    expect(visitor.deps.audit.records.at(-1)).toMatchObject({ action: 'alert.test', target: 'email', result: 'ok' });
  });

  it('says why it was not delivered', async () => {
    const visitor = await holding([]);
    visitor.deps.notify = { sms: fakeTransport(['+15551234567'], () => ({ accepted: false, detail: HOSTILE })) };
    const html = await (await visitor.post('/alerts/test', { channel: 'sms' })).text();
    expect(html).toContain('SMS didn’t reach every recipient');
    expect(html).toContain('&lt;script&gt;');
  });

  it('is refused for a channel that is not set up, and for what is none', async () => {
    const visitor = await holding([]);
    const answer = await visitor.post('/alerts/test', { channel: 'sms' });
    expect(answer.status).toBe(409);
    expect(await answer.text()).toMatch(/role="alert"><p>SMS is not set up/);
    expect((await visitor.post('/alerts/test', { channel: 'smoke' })).status).toBe(422);
  });
});
