// Pictures of every page for docs/img, of an embedded stack with made-up people and a made-up past: npm run screenshots.
// With a word, only the pages that have it in their name: npm run screenshots -- backups

import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { type BenchStack, benchStack, OFFSET } from '../../../bench/stack.ts';
import { startChromium } from './chromium.ts';
import { crawl, type Place } from './crawl.ts';
import { furnish, type Furniture } from './furnished.ts';
import { giveEvents, givePast } from './history.ts';
import { DESK, type Look, newVisitor, PHONE } from './visitor.ts';

const OUT = resolve(import.meta.dirname, '../../../docs/img');
const MAX_BYTES = 150_000;
const ONLY = process.argv[2] ?? '';
const BACKED_UP_WITHIN_MS = 600_000;
/** As much of a page as a picture of so many bytes holds. */
const HEIGHTS = { 1440: [1500, 1150, 900, 720, 600], 360: [1500, 1100, 740] };
/** On a phone as well. */
const MAIN =
  /^(console-(overview|people|people-one|people-one-enrollment|devices|database)|portal-(overview|add-device))$/;
const SETTINGS = {
  UPDATES_URL: 'off',
  MON_DATABASE_INTERVAL: '2',
  MON_PROBE_INTERVAL: '2',
  // So that one thing wants attention: the database is larger than it is to be.
  MON_DATABASE_WARNING: '30000000',
};

/** `/people/{}/enrollment` of the console: `console-people-one-enrollment`. */
function nameOf(face: string, kind: string): string {
  const path = kind.replace(/^\//, '').replaceAll('{}', 'one').replaceAll('/', '-');
  return `${face}-${path === '' ? 'overview' : path}`;
}

interface Scene {
  browser: Browser;
  stack: BenchStack;
}

async function main(): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), 'holdfast-pictures-'));
  const target = join(work, 'backups');
  mkdirSync(target);
  const settings = { ...SETTINGS, BACKUP_TARGET: target, BACKUP_PASSPHRASE: 'only for the pictures' };
  const [stack, browser] = await Promise.all([benchStack(settings), startChromium()]);
  let furniture: Furniture | undefined;
  try {
    const databases = { core: stack.database, state: stack.stateDatabase };
    await giveEvents(databases);
    furniture = await furnish(furnishable(stack, work));
    await givePast(databases);
    // A job, for the page of one.
    await fetch(`${stack.api}/api/ops/database/vacuum`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(`webadmin:${stack.password}`)}`, 'content-type': 'application/json' },
      body: JSON.stringify({ mode: 'standard' }),
    });
    await backedUp(stack);
    // What was read at the start is read again.
    stack.restartManagement();
    await stack.answering();
    mkdirSync(OUT, { recursive: true });
    for (const file of readdirSync(OUT).filter(
      (each) => /^(console|portal)-.*\.png$/.test(each) && each.includes(ONLY),
    ))
      rmSync(join(OUT, file));
    const webadmin = { username: 'webadmin', password: stack.password };
    await picturesOf({ browser, stack }, 'console', stack.api, webadmin);
    await picturesOf({ browser, stack }, 'portal', `http://127.0.0.1:${3000 + OFFSET}`, furniture.plain);
  } finally {
    for (const device of furniture?.devices ?? []) device.leave();
    await browser.close();
    stack.stop();
    rmSync(work, { recursive: true, force: true });
  }
}

/** One that was proven, so that the page has one of each. */
async function backedUp({ api, authorization }: BenchStack): Promise<void> {
  const until = Date.now() + BACKED_UP_WITHIN_MS;
  await fetch(`${api}/api/backups`, { method: 'POST', headers: { authorization } });
  for (;;) {
    const answer = await fetch(`${api}/api/backups`, { headers: { authorization } });
    const { backups = [] } = (await answer.json()) as { backups?: { proven: boolean }[] };
    if (backups.some(({ proven }) => proven)) return;
    if (Date.now() > until) throw new Error('no backup was proven');
    await delay(2_000);
  }
}

function furnishable(stack: BenchStack, work: string) {
  const core = {
    api: `https://127.0.0.1:${stack.corePort}`,
    enrollment: `https://127.0.0.1:${stack.enrollmentPort}`,
    streaming: `ssl://127.0.0.1:${stack.streamPort}`,
    directory: stack.coreDirectory,
  };
  return { api: stack.api, webadmin: { username: 'webadmin', password: stack.password }, core, work };
}

async function picturesOf(
  { browser }: Scene,
  face: string,
  base: string,
  person: { username: string; password: string },
): Promise<void> {
  const body = new URLSearchParams(person);
  const answer = await fetch(`${base}/sign-in`, {
    method: 'POST',
    body,
    headers: { origin: base },
    redirect: 'manual',
  });
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? '';
  const kinds = new Map<string, string>();
  for (const { kind, path, status } of await crawl({ base, cookie } satisfies Place, 1))
    if (status === 200 && !kind.includes('?') && !kinds.has(kind)) kinds.set(kind, path);
  for (const look of [{ ...DESK, scheme: 'light' } as const, PHONE]) {
    const { context, page, problems } = await newVisitor(browser, look, [base]);
    if (face === 'console') {
      await page.goto(`${base}/sign-in`);
      await keep(page, look, `${face}-sign-in${look.width === 360 ? '-phone' : ''}`);
    }
    await context.addCookies([
      { name: 'holdfast', value: cookie.slice('holdfast='.length), url: base, httpOnly: true },
    ]);
    for (const [kind, path] of kinds) {
      const name = nameOf(face, kind);
      if ((look.width === 360 && !MAIN.test(name)) || !name.includes(ONLY)) continue;
      await page.goto(base + path);
      await keep(page, look, look.width === 360 ? `${name}-phone` : name);
    }
    await context.close();
    for (const problem of problems) process.stderr.write(`${problem}\n`);
  }
}

async function keep(page: Page, { width }: Look, name: string): Promise<void> {
  if (!name.includes(ONLY)) return;
  const whole = await page.locator('html').evaluate((html) => Number(Reflect.get(html, 'scrollHeight')));
  let picture: Buffer = Buffer.alloc(0);
  for (const most of HEIGHTS[width]) {
    const height = Math.max(Math.min(whole, most), width === 360 ? 740 : 600);
    await page.setViewportSize({ width, height });
    picture = await page.screenshot({ animations: 'disabled', caret: 'hide' });
    if (picture.length <= MAX_BYTES) break;
  }
  writeFileSync(join(OUT, `${name}.png`), picture);
  process.stdout.write(`docs/img/${name}.png ${(picture.length / 1000).toFixed(0)} KB\n`);
}

await main();
process.exit(0);
