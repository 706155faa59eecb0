import { beforeEach, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '@holdfast/kit/time';
import { run as pollHealth } from '../../jobs/poll-health.ts';
import { run as sampleHealth } from '../../jobs/sample-health.ts';
import { HEALTH_MODULES } from '../../shared/health/modules/index.ts';
import { visit, type Visitor, textOf as words } from '../pages/page-session.ts';
import { mount, type World, world } from './fake-monitored.ts';

const HOSTILE = '<script>alert(1)</script>"><img src=x>';

let around: World;
let visitor: Visitor;
beforeEach(async () => {
  around = world();
  visitor = await visit({ around });
});

async function measure(afterMs = 0): Promise<void> {
  around.now = new Date(around.now.getTime() + afterMs);
  await pollHealth(visitor.deps, around.now);
}
/** Goes on for that long, with a look each five minutes. */
async function goOn(minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute += 5) {
    await measure(5 * MINUTE_MS);
    await sampleHealth(visitor.deps, around.now);
  }
}
const heading = (html: string): string => /<h1>.*?<\/h1>/.exec(html)?.[0].replaceAll(/<[^>]+>/g, '') ?? '';
const cardOf = (html: string, module: string): string =>
  new RegExp(`<section[^>]* id="module-${module}">.*?</section>`, 's').exec(html)?.[0] ?? '';
const cards = (html: string): string[] => [...html.matchAll(/ id="module-([a-z]+)"/g)].map(([, name = '']) => name);

describe('the overview', () => {
  it('says in its first sentence that everything works, and since when', async () => {
    await goOn(10);
    const html = await visitor.page('/');
    expect(heading(html)).toBe('Everything works');
    expect(words(html)).toContain('since 2026-03-04 05:11 or earlier');
    expect(cards(html)).toEqual(HEALTH_MODULES.map(({ name }) => name));
  });

  it('says nothing of a trend that has not begun, and the size of the database once', async () => {
    await measure();
    const html = await visitor.page('/');
    expect(html).not.toContain('No trend yet');
    expect(words(cardOf(html, 'database')).match(/warning threshold/g)).toBeNull();
    expect(await visitor.page('/health/database')).toContain(
      'No trend yet. The first values arrive within 10 minutes.',
    );
  });

  it('counts the checks that are pending after a start', async () => {
    expect(heading(await visitor.page('/'))).toBe('Just started: 16 of 16 checks pending');
    const html = await visitor.page('/');
    expect(cardOf(html, 'disk')).toContain('Not measured yet.');
    expect(words(html)).toContain('Not checked yet');
    expect(words(html)).not.toContain('Needs attention');
  });

  it('names the warnings, and shows the worst first with its next steps', async () => {
    await measure();
    around.mounts = [mount('/', 85)];
    around.changed = ['SMTP_URL'];
    await measure(MINUTE_MS);
    const html = await visitor.page('/');
    expect(heading(html)).toBe('1 warning: Disks');
    expect(cards(html).slice(0, 3)).toEqual(['disk', 'config', 'database']);
    const disk = words(cardOf(html, 'disk'));
    expect(disk).toContain('Warning');
    expect(disk).toContain('/: 85 % full');
    expect(disk).toContain('since 2026-03-04 05:07, just now');
    expect(disk).toContain('Next steps');
    expect(cardOf(html, 'disk')).toContain('<code id="do-disk-0-1">sudo du -xh --max-depth=3 MOUNT');
    expect(words(cardOf(html, 'database'))).not.toContain('Next steps');
  });

  it('names the critical problems when there are several', async () => {
    around.databaseError = 'gone';
    around.caller = new Error('refused');
    around.mounts = [mount('/', 99)];
    await measure();
    const html = await visitor.page('/');
    expect(heading(html)).toMatch(/^\d critical problems: Database, Dead rows, /);
    expect(cardOf(html, 'disk')).toMatch(/<details class="next" id="next-disk" open/);
  });

  it('says that a part was not measured for too long', async () => {
    await measure();
    around.now = new Date(around.now.getTime() + 60 * MINUTE_MS);
    const html = await visitor.page('/');
    expect(heading(html)).toContain('16 critical problems: Database, Dead rows, Retention and 13 more');
    expect(cardOf(html, 'tls')).toContain('Not measured since');
  });

  it('answers from memory while database, core and directory are unavailable', async () => {
    await measure();
    const { deps } = visitor;
    deps.healthTrend.unavailable = true;
    around.databaseError = 'gone';
    const unavailable = (): never => {
      throw new Error('must not be asked');
    };
    deps.core.clients = unavailable;
    deps.monitored.coreDatabase.size = unavailable;
    expect(heading(await visitor.page('/'))).toBe('Everything works');
  });

  it('escapes what outside systems say', async () => {
    around.databaseError = HOSTILE;
    around.mounts = [mount(`/${HOSTILE}`, 95)];
    await goOn(10);
    for (const path of ['/', '/health/database', '/health/disk']) {
      const html = await visitor.page(path);
      expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
      expect(html).not.toMatch(/<script>|<img/);
    }
  });

  it('shows the connection check, and where it stops', async () => {
    await measure();
    expect(await visitor.page('/')).toContain('<h2>Devices can connect</h2>');
    around.directory.mood = 'empty';
    await measure(MINUTE_MS * 10);
    const html = words(await visitor.page('/'));
    expect(html).toContain("Devices can't connect: the check stops at “Has its channel”");
    expect(html).toMatch(/Has its channel failed, 0 ms [A-Z]/);
    expect(html).toContain('not tried');
  });

  it('draws the last day of each part, with what it says in words', async () => {
    await goOn(20);
    const html = await visitor.page('/');
    expect(cardOf(html, 'disk')).toContain(
      'role="img" aria-label="fullest disk over time: first 41.5 %, last 41.5 %, lowest 41.5 %, highest 41.5 %"',
    );
    expect(cardOf(html, 'config')).toContain('aria-label="status over time: ok for 16 minutes, now ok"');
    expect(html).not.toMatch(/ style=/);
  });

  it('follows by itself: a new measurement is a new page, and without one it is the same', async () => {
    await measure();
    const first = await visitor.get('/');
    const tag = first.headers.get('etag') ?? '';
    expect((await visitor.get('/', { 'if-none-match': tag })).status).toBe(304);
    expect(await first.text()).toContain('id="health" data-live="/api/health?view=status"');
    around.mounts = [mount('/', 85)];
    await measure(MINUTE_MS);
    expect((await visitor.get('/', { 'if-none-match': tag })).status).toBe(200);
  });

  it('offers administrators to add a person, and lets viewers only look', async () => {
    expect(await visitor.page('/')).toContain('href="/people/new"');
    const html = await (await visit({ username: 'vera' })).page('/');
    expect(html).not.toContain('href="/people/new"');
    expect(html).toContain('action="/people"');
  });

  it('sends people without a role to the portal, and shows nothing of health', async () => {
    const html = await (await visit({ username: 'nora' })).page('/');
    expect(heading(html)).toBe('Welcome, nora');
    expect(words(html)).toContain('Your devices, your password and the guides are in the portal.');
    expect(cards(html)).toEqual([]);
  });

  it('stays small with a day of samples, which it has from memory', async () => {
    await goOn(24 * 60);
    // A session lasts 12 hours.
    visitor = await visit({ around, deps: visitor.deps });
    let reads = 0;
    visitor.deps.healthTrend.read = async () => {
      reads++;
      return [];
    };
    const html = await visitor.page('/');
    expect(html.length).toBeLessThan(60_000);
    expect(cardOf(html, 'disk')).toContain('<path class="line"');
    expect(reads).toBe(0);
  }, 30_000);
});
