// /database/runs: what was deleted when, and a run now, which deletes no more than what somebody has typed.

import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { DAY_MS } from '@holdfast/kit/time';
import type { RetentionRun } from '../../shared/retention/port.ts';
import { world } from '../health/fake-monitored.ts';
import { fakeDeps } from '../http/fake-deps.ts';
import { textOf as text, visit, type Visitor } from '../pages/page-session.ts';

let visitor: Visitor;
async function begin(username = 'webadmin'): Promise<void> {
  const around = world();
  const deps = fakeDeps({ CORE_RETENTION_UNIT: 'days' }, around);
  visitor = await visit({ username, deps, around });
  around.retention.rows.cot = [1, 40, 50, 60].map(ago);
  around.retention.policy.cot = 30;
  around.retention.schedule = '0 0 3 * * ?';
}
const ago = (days: number): string => new Date(visitor.around.now.getTime() - days * DAY_MS).toISOString();
beforeEach(() => begin());

function run(change: Partial<RetentionRun> = {}): RetentionRun {
  return {
    id: 'run-1',
    source: 'core',
    trigger: 'schedule',
    state: 'done',
    startedAt: ago(1),
    finishedAt: new Date(Date.parse(ago(1)) + 90_000).toISOString(),
    limits: {},
    rows: { cot: 1_234_567, geochat: 12 },
    included: { cot: 0, files: 0 },
    expected: null,
    bytes: 2.5e9,
    error: null,
    ...change,
  };
}

/** What the form of an order sends, with what somebody has typed. */
function orderForm(html: string, confirm?: string): Record<string, string> {
  const form = /<form method="post" action="\/database\/runs".*?<\/form>/s.exec(html)?.[0] ?? '';
  const fields = [...form.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g)];
  const hidden = Object.fromEntries(fields.map(([, name = '', value = '']) => [name, value]));
  const wanted = /Type <strong>([^<]+)<\/strong>/.exec(form)?.[1];
  if (wanted === undefined) throw new Error(`no order in ${text(html)}`);
  return { ...hidden, confirm: confirm ?? wanted };
}

describe('GET /database/runs', () => {
  it('says what to do where no run was yet, and when the next one is', async () => {
    const html = text(await visitor.page('/database/runs'));
    expect(html).toContain('No runs yet.');
    expect(html).toContain('every day at 03:00');
    expect(html).toContain('Set a retention policy');
  });

  it('lists runs with what went of which type, space, time and errors', async () => {
    await visitor.deps.retentionHistory.keepRuns([
      run(),
      run({ id: 'run-2', state: 'failed', startedAt: ago(2), error: 'disk <b>full</b>', rows: {}, bytes: null }),
      run({ id: 'run-3', startedAt: ago(3), rows: { missions: 1 }, included: { cot: 40, files: 2 }, trigger: 'order' }),
    ]);
    const html = await visitor.page('/database/runs');
    const words = text(html);
    expect(words).toContain('1,234,579 rows');
    expect(words).toContain('Positions and events 1,234,567, Chat 12');
    expect(words).toContain('about 2.5 GB');
    expect(words).toContain('1 minute');
    expect(words).toContain('Missions 1, with missions 42');
    expect(html).toContain('disk &lt;b&gt;full&lt;/b&gt;');
    expect(words).toContain('Failed');
  });

  it('has pages of fifty', async () => {
    await visitor.deps.retentionHistory.keepRuns(
      Array.from({ length: 51 }, (_, n) => run({ id: `run-${n}`, startedAt: ago(n + 1) })),
    );
    expect(text(await visitor.page('/database/runs'))).toContain('1 to 50 of 51');
    expect(text(await visitor.page('/database/runs?page=2'))).toContain('51 to 51 of 51');
  });

  it('says that there may be later ones while the core is away', async () => {
    visitor.deps.retention.mood = 'down';
    await visitor.deps.retentionHistory.keepRuns([run()]);
    const html = text(await visitor.page('/database/runs'));
    expect(html).toContain('newer runs may be missing');
    expect(html).toContain('1,234,579 rows');
  });

  it("is there while Holdfast's own database is away", async () => {
    const unavailable = (): Promise<never> => Promise.reject(new AppError('unavailable', 'No answer.'));
    visitor.deps.retentionHistory = { ...visitor.deps.retentionHistory, runs: unavailable };
    visitor.deps.opsJobs = { ...visitor.deps.opsJobs, open: unavailable };
    const html = text(await visitor.page('/database/runs'));
    expect(html).toContain('Couldn’t load earlier runs');
    expect(html).toContain('Next run');
  });

  it('offers no run now where the core has no call for it, nor to a viewer', async () => {
    expect(await visitor.page('/database/runs')).toContain('href="/database/runs/new"');
    visitor.deps.settings = { ...visitor.deps.settings, CORE_RETENTION_UNIT: 'seconds' };
    const release = await visitor.page('/database/runs');
    expect(release).not.toContain('href="/database/runs/new"');
    expect(text(release)).toContain('which has no call to start a run');
    await begin('vera');
    expect(await visitor.page('/database/runs')).not.toContain('href="/database/runs/new"');
  });
});

describe('a run now', () => {
  it('shows what goes and is ordered by typing how much that is', async () => {
    const html = await visitor.page('/database/runs/new');
    expect(text(html)).toContain('A run now permanently deletes 3 rows.');
    const answer = await visitor.post('/database/runs', orderForm(html));
    const [job] = await visitor.deps.opsJobs.open();
    expect([answer.status, answer.headers.get('location')]).toEqual([303, `/jobs/${job?.id}`]);
    expect(job?.input).toMatchObject({ most_rows: 3 });
    expect(await visitor.page('/database/runs')).toContain(`href="/jobs/${job?.id}"`);
  });

  it.each(['', 'delete 4 rows', 'DELETE 3 ROWS', 'yes'])('is refused with "%s" typed', async (typed) => {
    const answer = await visitor.post('/database/runs', orderForm(await visitor.page('/database/runs/new'), typed));
    expect(answer.status).toBe(409);
    expect(text(await answer.text())).toContain('Nothing was deleted. To confirm, type exactly: delete 3 rows');
    expect(await visitor.deps.opsJobs.open()).toEqual([]);
  });

  it('is refused with new figures when more would go than was confirmed', async () => {
    const form = orderForm(await visitor.page('/database/runs/new'));
    visitor.deps.retention.rows.cot.push(ago(70), ago(80));
    const answer = await visitor.post('/database/runs', form);
    const html = await answer.text();
    expect(text(html)).toContain('A run would delete 5 rows, but you confirmed 3 rows.');
    expect(orderForm(html)).toMatchObject({ rows: '5', confirm: 'delete 5 rows' });
    expect(await visitor.deps.opsJobs.open()).toEqual([]);
  });

  it('speaks of the better figures also where its own preview finds nothing', async () => {
    const { around, deps } = visitor;
    const form = orderForm(await visitor.page('/database/runs/new'));
    around.retention.rows.cot.push(ago(70), ago(80));
    const facts = { ...deps.retentionFacts };
    deps.retentionFacts.expired = async (question) => (question.withinMs < 1000 ? {} : facts.expired(question));
    const html = await (await visitor.post('/database/runs', form)).text();
    expect(text(html)).not.toContain('Nothing to delete');
    expect(text(html)).toContain('A run now permanently deletes 5 rows.');
    expect(orderForm(html)).toMatchObject({ rows: '5', confirm: 'delete 5 rows' });
  });

  it.each([
    [{ rows: 'all' }, 'must be the number shown'],
    [{ cutoff: 'yesterday' }, 'must be'],
    [{ rows: '1'.repeat(20) }, 'must be the number shown'],
  ])('is refused with %o', async (change, words) => {
    const form = orderForm(await visitor.page('/database/runs/new'));
    const answer = await visitor.post('/database/runs', { ...form, ...change });
    expect(answer.status).toBe(422);
    expect(text(await answer.text())).toContain(words);
    expect(await visitor.deps.opsJobs.open()).toEqual([]);
  });

  it('deletes nothing younger than the policy keeps, whatever cutoff is sent', async () => {
    const form = orderForm(await visitor.page('/database/runs/new'));
    const answer = await visitor.post('/database/runs', { ...form, cutoff: ago(0) });
    expect(answer.status).toBe(422);
    expect(await visitor.deps.opsJobs.open()).toEqual([]);
  });

  it('is refused while another one goes on', async () => {
    const form = orderForm(await visitor.page('/database/runs/new'));
    await visitor.post('/database/runs', form);
    const answer = await visitor.post('/database/runs', form);
    expect(answer.status).toBe(409);
    expect(text(await answer.text())).toContain('is already queued');
  });

  it('has nothing to confirm where nothing is older than its days', async () => {
    visitor.deps.retention.rows.cot = [ago(1)];
    const html = await visitor.page('/database/runs/new');
    expect(text(html)).toContain('Nothing to delete');
    expect(html).not.toContain('method="post" action="/database/runs"');
  });

  it('cannot be ordered while nobody can count, and says why', async () => {
    visitor.deps.retention.databaseError = new AppError('unavailable', 'The database of the core does not answer.');
    const html = await visitor.page('/database/runs/new');
    expect(text(html)).toContain(
      'Couldn’t count what a run would delete, so none can start: The database of the core does not answer.',
    );
    expect(html).not.toContain('method="post" action="/database/runs"');
  });

  it('says in a sentence that a release cannot do it', async () => {
    const form = orderForm(await visitor.page('/database/runs/new'));
    visitor.deps.retention.tellsRuns = false;
    const answer = await visitor.post('/database/runs', form);
    expect(text(await answer.text())).toContain('This core has no call to start a retention run.');
  });
});
