import { beforeEach, describe, expect, it } from 'vitest';
import type { AuditSubject } from '../../shared/audit/port.ts';
import { visit, type Visitor } from '../pages/page-session.ts';

const HOSTILE = '"><img src=x>';
let visitor: Visitor;
beforeEach(async () => {
  visitor = await visit();
  visitor.deps.audit.records.length = 0;
});

const about = (change: Partial<AuditSubject> = {}): AuditSubject => ({
  actor: { username: 'ada', address: '192.0.2.9', requestId: 'request-7' },
  action: 'user.create',
  target: 'vera',
  ...change,
});

describe('the page of the audit log', () => {
  it('shows who did what to whom and how it ended; unfolded everything that the record holds', async () => {
    const { audit } = visitor.deps;
    const intent = await audit.intend(about(), {
      groups: ['core_Red', 'core_Blue'],
      more_detail: { days: 2 },
      deep: { a: [1] },
    });
    await audit.conclude(intent, about(), { result: 'ok' });
    const html = await visitor.page('/audit');
    expect(html).toMatch(/<strong>ada<\/strong> <code>user.create<\/code> vera/);
    expect(html.indexOf('id="record-2"')).toBeLessThan(html.indexOf('id="record-1"'));
    expect(html).toMatch(/groups<\/dt><dd>core_Red, core_Blue<\/dd>/);
    expect(html).toMatch(/more detail<\/dt><dd>days 2<\/dd>/);
    expect(html).toContain('<code>{&quot;a&quot;:[1]}</code>');
    expect(html).toContain('192.0.2.9');
    expect(html).toContain('2, result of record 1');
    expect(html).toContain('Started. The result has its own record');
  });

  it('leads from what is long work to how it went', async () => {
    await visitor.deps.audit.intend(about({ action: 'database.vacuum', target: 'job-1' }));
    await visitor.deps.audit.intend(about({ action: 'user.create', target: 'job-2' }));
    const html = await visitor.page('/audit');
    expect([html.includes('href="/jobs/job-1"'), html.includes('href="/jobs/job-2"')]).toEqual([true, false]);
  });

  it('can be had by who, what, to whom and days, and as the same CSV', async () => {
    const { audit } = visitor.deps;
    await audit.note(about(), 'denied');
    await audit.note(about({ action: 'group.create', target: 'core_Red' }), 'failed');
    visitor.deps.timeZone = 'Asia/Kathmandu';
    const html = await visitor.page('/audit?actor=ada&action=group&target=core_Red');
    expect([html.includes('id="record-1"'), html.includes('id="record-2"')]).toEqual([false, true]);
    expect(html).toContain('Filter: ada, group, core_Red');
    expect(html).toContain('href="/api/audit?actor=ada&amp;action=group&amp;target=core_Red&amp;format=csv"');
    const none = await visitor.page('/audit?until=2001-01-01');
    expect(none).toContain('No records match these filters.');
    expect(none).toContain('until=2001-01-01T18%3A15%3A00.000Z');
  });

  it('says in words that the chain is whole, and what to do when it is not', async () => {
    const { audit } = visitor.deps;
    await audit.note(about(), 'ok');
    expect(await visitor.page('/audit?verify=yes')).toContain('The only record is unchanged, and none is missing.');
    audit.verify = async () => ({ ok: true, records: 12_345, first_broken: null });
    expect(await visitor.page('/audit?verify=yes')).toContain('All 12,345 records are unchanged');
    audit.verify = async () => ({ ok: false, records: 12, first_broken: 7 });
    const html = await visitor.page('/audit?verify=yes');
    expect(html).toContain('The log was tampered with: record 7 was changed or removed');
    expect(html).toContain('Save the log as CSV now');
    audit.verify = () => Promise.reject(new Error('not asked for'));
    expect(await visitor.page('/audit')).not.toContain('role="alert"');
  });

  it('has pages of fifty, and does not verify again on the way through them', async () => {
    for (let at = 0; at < 55; at++) await visitor.deps.audit.note(about(), 'ok');
    const html = await visitor.page('/audit?verify=yes');
    expect(html).toContain('1 to 50 of 55');
    expect(html).toContain('href="/audit?page=2"');
  });

  it('shows names as they are', async () => {
    const subject = about({
      actor: { username: HOSTILE, address: HOSTILE, requestId: HOSTILE },
      action: HOSTILE,
      target: HOSTILE,
    });
    await visitor.deps.audit.note(subject, 'ok', { [HOSTILE]: HOSTILE, list: [HOSTILE], deep: { [HOSTILE]: 1 } });
    for (const path of ['/audit', `/audit?actor=${encodeURIComponent(HOSTILE)}`])
      expect(await visitor.page(path)).not.toContain('<img');
  });
});
