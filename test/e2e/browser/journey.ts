// The main journey in the browser: a new administrator adds a person for two days, sees the device connected, and revokes it.

import { expect } from 'vitest';
import { coreOf, enroll, workDirectory } from '../embedded/core-client.ts';
import { eventually } from '../embedded/eventually.ts';
import { type StreamDevice, letIn } from '../embedded/stream-device.ts';
import { flow, type Guest, type House } from './house.ts';
import { BOTH, says } from './visitor.ts';

const WITHIN_MS = 30_000;

/** Name and app password out of the link that the page shows. */
async function credentialsOn({ page }: Guest): Promise<{ username: string; token: string }> {
  const href = await page.locator('a[href^="tak://"]').first().getAttribute('href');
  const { searchParams } = new URL(href ?? '');
  return { username: searchParams.get('username') ?? '', token: searchParams.get('token') ?? '' };
}

export function journey(house: () => House): void {
  flow(
    house,
    'a new administrator adds a person for two days, sees the device connected, and revokes it',
    BOTH,
    async (guest) => {
      const { page, mark } = guest;
      const [username, callsign] = [`journey.${mark}`, `Wanderer-${mark}`];
      let device: StreamDevice | undefined;
      try {
        await guest.visit('/');
        await page.getByRole('link', { name: 'Add person' }).click();
        await page.waitForURL('**/people/new');
        await page.getByLabel('Name', { exact: true }).fill('Wanda Rer');
        await page.getByLabel('Username', { exact: true }).fill(username);
        await page.getByRole('checkbox', { name: /^core_Blue/ }).check();
        await page.getByLabel('Access expires').selectOption('days-2');
        await page.getByRole('button', { name: 'Add and show code' }).click();
        await page.waitForURL(/\/people\/\d+\/enrollment/);
        await page.locator('a[href^="tak://"]').first().waitFor();
        await guest.fits();
        const given = await credentialsOn(guest);
        expect(given.username).toBe(username);
        const core = coreOf(house().stack);
        const enrolled = await enroll(core, workDirectory(house().stack), username, given.token, `ANDROID-${callsign}`);
        await says(page, /Device enrolled: ANDROID-/);
        device = await letIn(core, enrolled, callsign);
        device.report();
        await says(page, `Connected as ${callsign}`);

        await guest.visit('/devices');
        const row = page.getByRole('row').filter({ hasText: callsign });
        await row.waitFor();
        expect(await row.innerText()).toContain(username);
        await row.getByText('Revoke…').click();
        await row.getByRole('button', { name: `Revoke ${callsign}` }).click();
        const disconnected = device;
        await eventually('the stream has ended', () => !disconnected.isOpen, WITHIN_MS);
        await page.waitForURL(/\/devices\?done=shut/);
        await row.waitFor({ state: 'detached' });
      } finally {
        device?.leave();
      }
    },
  );
}
