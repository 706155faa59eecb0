// /database/retention: nothing is saved before somebody has seen what it deletes, and what is seen is what is saved.

import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { KEEP_ALL } from '@holdfast/kit/retention';
import { DAY_MS } from '@holdfast/kit/time';
import { world } from '../health/fake-monitored.ts';
import { fakeDeps } from '../http/fake-deps.ts';
import { textOf as text, visit, type Visitor } from '../pages/page-session.ts';

const PREVIEW = '/database/retention/preview';

let visitor: Visitor;
async function begin(values: Record<string, string> = {}, username = 'webadmin'): Promise<void> {
  const around = world();
  const deps = fakeDeps({ CORE_RETENTION_UNIT: 'days', ...values }, around);
  visitor = await visit({ username, deps, around });
  around.retention.rows.cot = [1, 10, 40, 50, 60].map(ago);
}
const ago = (days: number): string => new Date(visitor.around.now.getTime() - days * DAY_MS).toISOString();
beforeEach(() => begin());

/** What the form of a preview sends. */
function saveForm(html: string): Record<string, string> {
  const form = /<form method="post" action="\/database\/retention".*?<\/form>/s.exec(html)?.[0];
  if (form === undefined) throw new Error(`no form to save in ${text(html)}`);
  const fields = [...form.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g)];
  return Object.fromEntries(fields.map(([, name = '', value = '']) => [name, value.replaceAll('&quot;', '"')]));
}

describe('GET /database/retention', () => {
  it('says that everything is kept, and how it can be otherwise', async () => {
    const html = await visitor.page('/database/retention');
    expect(text(html)).toContain('Everything is kept forever. Nothing is deleted by age.');
    expect(html).toContain('action="/database/retention/preview"');
    for (const type of Object.keys(KEEP_ALL)) expect(html).toContain(`name="${type}"`);
  });

  it('shows days, schedule and the next five runs', async () => {
    Object.assign(visitor.deps.retention, { policy: { ...KEEP_ALL, cot: 30 }, schedule: '0 0 3 ? * MON' });
    const html = await visitor.page('/database/retention');
    expect(text(html)).toContain('Kept: positions and events 30 days. Everything else is kept forever.');
    expect(text(html)).toContain('every Monday at 03:00');
    expect(html).toMatch(/name="cot"[^>]*value="30"/);
    expect(html.match(/<li><time /g)).toHaveLength(5);
  });

  it('locks what a variable sets, and names it', async () => {
    await begin({ COT_RETENTION_DAYS: '30', RETENTION_CRON: '0 0 4 * * ?' });
    const html = await visitor.page('/database/retention');
    expect(html).not.toContain('name="cot"');
    expect(html).not.toContain('name="cron"');
    expect(text(html)).toContain('Set by COT_RETENTION_DAYS.');
    expect(text(html)).toContain('Set by RETENTION_CRON.');
    expect(html).toContain('name="geochat"');
  });

  it('has no editor where nobody knows what the core counts, and says what to set', async () => {
    visitor.deps.settings = { ...visitor.deps.settings, CORE_RETENTION_UNIT: undefined };
    const html = await visitor.page('/database/retention');
    expect(html).not.toContain('name="geochat"');
    expect(text(html)).toContain('CORE_RETENTION_UNIT=seconds for a TAK Server release');
    expect((await visitor.get(`${PREVIEW}?cot=30`)).status).toBe(409);
  });

  it('is there while the core is away, with what its files say', async () => {
    visitor.deps.retention.mood = 'down';
    visitor.deps.retention.files.policy = { ...KEEP_ALL, geochat: 60 };
    const html = text(await visitor.page('/database/retention'));
    expect(html).toContain('The core does not answer');
    expect(html).toContain('chat 60 days');
  });

  it('is there while nothing can be read at all', async () => {
    visitor.deps.retention.mood = 'down';
    visitor.deps.retentionFiles = { ...visitor.deps.retentionFiles, read: () => Promise.reject(new Error('EIO')) };
    const html = text(await visitor.page('/database/retention', 503));
    expect(html).toContain('Couldn’t load the current policy');
    expect(html).toContain('EIO');
  });

  it('tells of a release that it ignores the days of data packages', async () => {
    visitor.deps.settings = { ...visitor.deps.settings, CORE_RETENTION_UNIT: 'seconds' };
    const html = text(await visitor.page('/database/retention'));
    expect(html).toContain('A TAK Server release deletes these by the days of files');
    expect(html).toContain('days here, seconds in the core');
  });
});

describe('the preview of a policy', () => {
  it('says what the next run deletes for ever, beside what is in force', async () => {
    visitor.deps.retention.policy.cot = 55;
    const html = await visitor.page(`${PREVIEW}?cot=30&schedule=daily&time=04:30`);
    expect(text(html)).toMatch(
      /The next run, \S+ 04:30, permanently deletes 3 rows\. The current policy permanently deletes 1 row/,
    );
    expect(html).toContain('<span class="gone"><strong>3 rows</strong></span>');
    expect(text(html)).toContain('every day at 04:30');
    expect(saveForm(html)).toMatchObject({ cot: '30', schedule: 'daily', time: '04:30', rows: '3' });
  });

  it('takes an expression that somebody has written for what is wanted', async () => {
    const html = await visitor.page(`${PREVIEW}?cot=30&schedule=keep&cron=${encodeURIComponent('0 0 5 ? * MON-FRI')}`);
    expect(text(html)).toContain('0 0 5 ? * MON-FRI');
    await visitor.post('/database/retention', saveForm(html));
    expect(visitor.deps.retention.schedule).toBe('0 0 5 ? * MON-FRI');
  });

  it('names estimates as such', async () => {
    visitor.deps.retention.isSlow = true;
    const html = text(await visitor.page(`${PREVIEW}?cot=30`));
    expect(html).toContain('permanently deletes about 3 rows');
    expect(html).not.toContain('"exact"');
  });

  it.each([
    ['cot=0', 'must be a whole number of days from 1 to 36500'],
    ['cot=-3', 'must be a whole number of days'],
    ['cot=99999999', 'must be a whole number of days from 1 to 36500'],
    [`cot=${encodeURIComponent('"><img src=x>')}`, 'must be a whole number of days'],
    ['schedule=daily&time=25:00', 'must be a time of day such as 03:00'],
    ['schedule=weekly&weekday=XXX', 'must be a time of day'],
    ['schedule=own&cron=nonsense', 'must be a Quartz schedule'],
    ['schedule=never-heard', 'must be one of the choices'],
  ])('refuses %s beside its field', async (query, words) => {
    const html = await visitor.page(`${PREVIEW}?${query}`, 422);
    expect(text(html)).toContain(words);
    expect(html).toContain('class="fault"');
    expect(html).not.toContain('<img');
    expect(html).not.toContain('action="/database/retention" class="save"');
  });

  it('can be looked at by a viewer, who cannot save it', async () => {
    await begin({}, 'vera');
    const html = await visitor.page(`${PREVIEW}?cot=30`);
    expect(text(html)).toContain('Only administrators can save a policy.');
    expect(html).not.toContain('method="post" action="/database/retention"');
    expect((await visitor.post('/database/retention', { cot: '30' })).status).toBe(403);
  });

  it('is no way to save while the rows cannot be counted; keeping more needs no counting', async () => {
    visitor.deps.retention.policy.cot = 30;
    visitor.deps.retention.databaseError = new AppError('unavailable', 'The database of the core does not answer.');
    const less = await visitor.page(`${PREVIEW}?cot=10`);
    expect(text(less)).toContain('Couldn’t count what would be deleted: The database of the core does not answer.');
    expect(less).not.toContain('class="save"');
    const more = await visitor.page(`${PREVIEW}?cot=`);
    const answer = await visitor.post('/database/retention', saveForm(more));
    expect(answer.headers.get('location')).toBe('/database/retention?done=saved');
    expect(visitor.deps.retention.policy.cot).toBeNull();
  });
});

describe('saving a policy', () => {
  it('does what the preview has shown, and is in the audit log', async () => {
    const form = saveForm(await visitor.page(`${PREVIEW}?cot=30&schedule=weekly&weekday=SUN&time=2:05`));
    const answer = await visitor.post('/database/retention', form);
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/database/retention?done=saved']);
    expect(visitor.deps.retention.policy).toEqual({ ...KEEP_ALL, cot: 30 });
    expect(visitor.deps.retention.schedule).toBe('0 5 2 ? * SUN');
    expect(text(await visitor.page('/database/retention?done=saved'))).toContain('Policy saved.');
    expect(visitor.deps.audit.records.some(({ action }) => action === 'retention.change')).toBe(true);
  });

  it('is refused without the figures of a preview', async () => {
    const form = saveForm(await visitor.page(`${PREVIEW}?cot=30`));
    for (const rows of ['', 'x', '-1']) {
      const answer = await visitor.post('/database/retention', { ...form, rows });
      expect(text(await answer.text())).toContain('Preview what this policy deletes first');
    }
    expect(visitor.deps.retention.policy).toEqual(KEEP_ALL);
  });

  it('is refused when somebody has changed what is in force meanwhile, and shows the new preview', async () => {
    const form = saveForm(await visitor.page(`${PREVIEW}?cot=30`));
    visitor.deps.retention.policy.geochat = 7;
    const answer = await visitor.post('/database/retention', form);
    const html = await answer.text();
    expect(answer.status).toBe(409);
    expect(text(html)).toContain('the policy was changed since the preview');
    expect(visitor.deps.retention.policy.cot).toBeNull();
    expect(saveForm(html)['base']).toContain('7');
  });

  it('is refused when much more would go than was shown', async () => {
    const form = saveForm(await visitor.page(`${PREVIEW}?cot=30`));
    visitor.deps.retention.rows.cot = Array.from({ length: 500 }, () => ago(45));
    const answer = await visitor.post('/database/retention', form);
    const html = await answer.text();
    expect(text(html)).toContain('The preview showed 3 rows, now it is 500 rows');
    expect(saveForm(html)['rows']).toBe('500');
    expect(visitor.deps.retention.policy).toEqual(KEEP_ALL);
  });

  it('leaves what a variable sets as it is, whatever is sent', async () => {
    await begin({ COT_RETENTION_DAYS: '30' });
    visitor.deps.retention.policy.cot = 30;
    const form = saveForm(await visitor.page(`${PREVIEW}?geochat=10&cot=1`));
    await visitor.post('/database/retention', { ...form, cot: '1' });
    expect(visitor.deps.retention.policy).toEqual({ ...KEEP_ALL, cot: 30, geochat: 10 });
  });

  it('has nothing to do where nothing changes', async () => {
    visitor.deps.retention.policy.cot = 30;
    const html = await visitor.page(PREVIEW);
    expect(text(html)).toContain('Current policy preview');
    expect(html).not.toContain('class="save"');
  });
});
