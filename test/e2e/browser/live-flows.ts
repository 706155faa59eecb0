// Tests live updates: the banners when they fail, and fewer requests while the page is idle.

import type { Page, Request } from 'playwright-core';
import { expect } from 'vitest';
import { eventually } from '../embedded/eventually.ts';
import { flow, type House } from './house.ts';
import { DESK } from './visitor.ts';

const POLL_MS = 5_000;
const MINUTE_POLLS = 12;

const WITHIN_MS = 30_000;
/** Less than what is said to be well again stays. */
const STEP_MS = 1_000;

/** Lets the time of the page pass until its banner says so. */
async function inTime(page: Page, words: string): Promise<void> {
  const banner = page.locator('#live-banner').filter({ hasText: words });
  const isReported = async (): Promise<boolean> => {
    await page.clock.runFor(STEP_MS);
    return banner.isVisible();
  };
  await eventually(words, isReported, WITHIN_MS);
}

export function liveFlows(house: () => House): void {
  flow(house, 'says that the server responds when it can’t send updates', [DESK], async (guest) => {
    const { page } = guest;
    guest.expects(/status of 429/);
    await page.clock.install();
    await guest.visit('/');
    await page.route('**/api/health?*', (route) => route.fulfill({ status: 429, body: '{}' }));
    await inTime(page, 'The server responds');
    await page.unroute('**/api/health?*');
    await inTime(page, 'Reconnected');
  });

  flow(
    house,
    'asks the core less often while the page is idle, and immediately after a touch',
    [DESK],
    async (guest) => {
      const { page } = guest;
      await page.clock.install();
      await guest.visit('/devices');
      let [requested, answered] = [0, 0];
      const isIt = (request: Request): boolean => request.url().endsWith('/devices');
      page.on('request', (request) => void (requested += Number(isIt(request))));
      for (const end of ['requestfinished', 'requestfailed'] as const)
        page.on(end as 'requestfinished', (request) => void (answered += Number(isIt(request))));
      await page.clock.fastForward(301_000);
      await eventually('it asks once more', () => requested > 0 && answered >= requested, WITHIN_MS);
      const attended = requested;
      for (let poll = 0; poll < MINUTE_POLLS; poll += 1) {
        await page.clock.runFor(POLL_MS);
        await eventually('what was asked is answered', () => answered >= requested, WITHIN_MS);
      }
      expect(requested - attended).toBeGreaterThan(0);
      expect(requested - attended).toBeLessThanOrEqual(5);
      const before = requested;
      await page.mouse.move(200, 200);
      await eventually('it asks at once', () => requested > before);
    },
  );

  flow(
    house,
    'says that the browser now shows the portal, keeps the page, and polls no more',
    [DESK],
    async (guest) => {
      const { page } = guest;
      await page.clock.install();
      await guest.visit('/devices');
      const title = await page.title();
      let wanted = 0;
      await page.route('**/devices', (route) => {
        wanted += 1;
        const body = '<title>Another</title><body class="framed portal"><div id="devices">Of the portal</div></body>';
        return route.fulfill({ contentType: 'text/html', body });
      });
      await inTime(page, 'This browser now shows the portal');
      const banner = page.locator('#live-banner').filter({ hasText: 'This browser now shows the portal' });
      await banner.getByRole('link', { name: 'Reload' }).waitFor();
      expect([await page.title(), await page.getByText('Of the portal').count()]).toEqual([title, 0]);
      await page.evaluate("dispatchEvent(new Event('offline'))");
      await page.evaluate("dispatchEvent(new Event('online'))");
      await page.clock.runFor(POLL_MS * MINUTE_POLLS);
      expect(wanted).toBe(1);
      expect(await banner.count()).toBe(1);
    },
  );
}
