// Tests the overview: problems first, live updates, and the banners of a lost connection or session.

import { appendFileSync } from 'node:fs';
import { expect } from 'vitest';
import { flow, type House } from './house.ts';
import { BOTH, DESK, PHONE } from './visitor.ts';

const PHONE_HEIGHT = 740;
const LINE_HEIGHT = 60;
/** At one moment: the page replaces its parts as they are measured. */
const PLACES = `({
  attention: document.querySelector('.cards.bad').getBoundingClientRect().y,
  lines: [...document.querySelectorAll('.cards.good > .health')].map((each) => each.getBoundingClientRect().height),
})`;

export function overviewFlows(house: () => House): void {
  flow(house, 'on a phone what works is a line each, and what does not is seen first', [PHONE], async (guest) => {
    const { page } = guest;
    await guest.visit('/');
    await page.locator('#module-database.warning').waitFor();
    const { attention, lines } = await page.evaluate<{ attention: number; lines: number[] }>(PLACES);
    expect(attention).toBeLessThan(PHONE_HEIGHT / 2);
    expect(lines.length).toBeGreaterThan(5);
    expect(Math.max(...lines)).toBeLessThan(LINE_HEIGHT);
  });

  flow(
    house,
    'one glance tells why the database turned yellow, and leads to where it is mended',
    BOTH,
    async (guest) => {
      const { page } = guest;
      await guest.visit('/');
      const card = page.locator('#module-database');
      await card.getByText('Warning', { exact: true }).waitFor();
      expect(await card.innerText()).toMatch(/\d MB/);
      await page.getByRole('heading', { level: 1, name: /^\d+ warnings?: / }).waitFor();
      await card.getByRole('link', { name: 'Database size' }).click();
      await page.waitForURL('**/database');
      const next = page.locator('.card.warning').filter({ hasText: 'Next steps' });
      await next.getByText(/\d MB has reached the warning threshold of 5 MB/).waitFor();
      await next.getByRole('link', { name: 'Retention policy' }).click();
      await page.waitForURL('**/database/retention');
      await page.getByRole('button', { name: 'Preview' }).waitFor();
    },
  );

  flow(house, 'says so when the connection is lost, and when it is found again', BOTH, async (guest) => {
    const { page, context } = guest;
    guest.expects(/ERR_INTERNET_DISCONNECTED/);
    await guest.visit('/');
    const banner = page.locator('#live-banner');
    expect(await banner.isVisible()).toBe(false);
    await context.setOffline(true);
    await banner.filter({ hasText: /No connection to the server/ }).waitFor();
    await guest.fits();
    await context.setOffline(false);
    await banner.filter({ hasText: /Reconnected/ }).waitFor();
  });

  flow(house, 'changes by itself when a setting is changed in its file', [DESK], async (guest) => {
    const { page } = guest;
    await guest.visit('/');
    const card = page.locator('#module-config');
    await card.getByText('OK', { exact: true }).waitFor();
    appendFileSync(house().envFile, '\nVIEWER_GROUP=readers\n');
    await card.getByText(/VIEWER_GROUP changed since the start/).waitFor();
    await card.getByText('Note', { exact: true }).waitFor();
  });

  flow(house, 'tells a person who was signed out elsewhere, and leads back', [PHONE], async (guest) => {
    const { page, context } = guest;
    guest.expects(/status of 401/);
    await guest.visit('/');
    const cookies = await context.cookies();
    const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
    await fetch(`${guest.base}/sign-out`, { method: 'POST', headers: { cookie, origin: guest.base } });
    await page
      .locator('#live-banner')
      .filter({ hasText: /signed out/ })
      .waitFor();
    // Of programs nothing is asked any more, which would be a denied attempt in the audit log each time.
    const requested = page.waitForRequest((request) => request.resourceType() === 'fetch');
    await page.evaluate(`dispatchEvent(new Event('online'))`);
    expect(new URL((await requested).url()).pathname).toBe('/');
    await page.getByRole('link', { name: 'Sign in again' }).click();
    await page.waitForURL('**/sign-in?return_to=*');
  });
}
