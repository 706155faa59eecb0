// The documents in a browser, opened from the disk: every page fits a phone, and the search finds.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROOT } from '../../house.ts';
import { chromiumMissing, startChromium } from './chromium.ts';
import { newVisitor, PHONE, tooWide } from './visitor.ts';

const SITE = join(ROOT, 'dist/docs');
/** Pages with everything: tables, code, pictures, long words. */
const FULL_PAGES = ['index.html', 'console.html', 'containers.html', 'settings.html', 'api.html'];

const addressOf = (page: string): string => String(pathToFileURL(join(SITE, page)));

describe.skipIf(chromiumMissing !== undefined)(chromiumMissing ?? 'the documents from the disk', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startChromium();
  });
  afterAll(() => browser?.close());

  it('find "revoke", and lead there', async () => {
    // The origin of a file has no name.
    const { page, context, problems } = await newVisitor(browser, PHONE, ['null']);
    await page.goto(addressOf('index.html'));
    await page.getByRole('searchbox', { name: 'Search the documentation' }).fill('revoke');
    const found = page.locator('#results li a');
    await found.first().waitFor();
    expect(await found.count()).toBeGreaterThan(5);
    const link = found.filter({ hasText: 'Revoke a certificate' }).first();
    await link.click();
    await page.waitForURL('**/devices.html#revoke-a-certificate');
    expect(await page.locator('#revoke-a-certificate').innerText()).toBe('Revoke a certificate');
    await page.getByRole('searchbox').fill('xyzzy plugh');
    await page.getByRole('heading', { name: 'Nothing found for “xyzzy plugh”' }).waitFor();
    await context.close();
    expect(problems).toEqual([]);
  });

  it('fit a phone, and ask nothing of a server', async () => {
    const { page, context, problems } = await newVisitor(browser, PHONE, ['null']);
    const found: string[] = [];
    for (const name of FULL_PAGES) {
      await page.goto(addressOf(name));
      found.push(...(await tooWide(page)));
    }
    await context.close();
    expect([...found, ...problems]).toEqual([]);
  });
});
