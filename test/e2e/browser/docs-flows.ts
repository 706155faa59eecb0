// Tests the documents as the console serves them, under the policy of its pages.

import { expect } from 'vitest';
import { barriersInEveryLook } from './accessible.ts';
import { flow, type House } from './house.ts';
import { BOTH, DESK } from './visitor.ts';

/** Pages with everything: tables, code, pictures, long words. */
const FULL_PAGES = ['console', 'containers', 'settings'];

export function docsFlows(house: () => House): void {
  flow(house, 'an administrator opens the documents and finds "revoke"', BOTH, async ({ page, visit }) => {
    await visit('/more');
    await page.locator('main').getByRole('link', { name: 'Documentation' }).click();
    await page.waitForURL('**/docs/index.html');
    await page.getByRole('searchbox', { name: 'Search the documentation' }).fill('revoke');
    await page.locator('#results a', { hasText: 'Revoke a certificate' }).first().click();
    await page.waitForURL('**/docs/devices.html#revoke-a-certificate');
    expect(await page.locator('#revoke-a-certificate').innerText()).toBe('Revoke a certificate');
  });

  flow(house, 'the documents have no serious barrier', [DESK], async ({ page, visit }) => {
    const found: string[] = [];
    for (const name of FULL_PAGES) {
      await visit(`/docs/${name}.html`);
      found.push(...(await barriersInEveryLook(page)).map((each) => `${name}: ${each}`));
    }
    expect(found).toEqual([]);
  });
}
