// The map: devices on it, by keyboard too, a replay of what they reported, and its export.

import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { eventually } from '../embedded/eventually.ts';
import { barriers } from './accessible.ts';
import { flow, type House } from './house.ts';
import { BOTH, DESK, says } from './visitor.ts';

const WITHIN_MS = 10_000;

/** What the canvas shows; two that are alike show the same. */
function pictureOf(page: Page): Promise<string> {
  return page.locator('#map canvas').evaluate((canvas) => (canvas as unknown as { toDataURL(): string }).toDataURL());
}

async function changes(page: Page, before: string): Promise<string> {
  await eventually('the map changes', async () => (await pictureOf(page)) !== before, WITHIN_MS);
  return pictureOf(page);
}

export function mapFlows(house: () => House): void {
  flow(house, 'the map shows devices, moves by keyboard, and replays what they reported', BOTH, async (guest) => {
    const { page } = guest;
    const outlines = page.waitForResponse(/\/map\/outlines\.json/);
    await guest.visit('/map?group=Blue');
    expect((await outlines).status()).toBe(200);
    await says(page, /Lantern 1/);
    expect(await page.locator('[data-device]').count()).toBe(3);
    expect(await barriers(page)).toEqual([]);
    await page.locator('#map canvas').focus();
    let picture = await pictureOf(page);
    for (const key of ['+', 'ArrowLeft', '0', '-']) {
      await page.keyboard.press(key);
      picture = await changes(page, picture);
    }
    guest.expects(/status of 422/);
    await page.getByLabel('From').fill('2026-01-01T00:00');
    await page.getByRole('button', { name: 'Replay', exact: true }).click();
    await says(page, /The time is longer than 31 days|The time must begin before it ends/);
    await guest.visit('/map');
    const startedAt = performance.now();
    await page.getByRole('button', { name: 'Replay', exact: true }).click();
    await says(page, /\d+ positions of 4 devices\./);
    expect(performance.now() - startedAt).toBeLessThan(WITHIN_MS);
    await page.getByRole('button', { name: 'Pause' }).click();
    const slider = page.getByLabel('Time', { exact: true });
    await slider.fill(String(await slider.getAttribute('max')));
    await says(page, /, 4 shown/);
    expect(await barriers(page)).toEqual([]);
    await page.getByRole('button', { name: 'Back to live' }).click();
    await slider.waitFor({ state: 'hidden' });
  });

  flow(house, 'an export has what was reported', [DESK], async (guest) => {
    const { page } = guest;
    await guest.visit('/map');
    for (const [format, words] of [
      ['CSV', /,Lantern 1,ANDROID-Lantern 1,47\.5,8\.25,421\.5\r\n/],
      ['GPX', /<trkpt lat="47\.5" lon="8\.25"><ele>421\.5<\/ele>/],
      ['KML', /<name>Lantern 1<\/name>/],
    ] as const) {
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: `Export ${format}` }).click(),
      ]);
      expect(download.suggestedFilename()).toMatch(new RegExp(`^tracks-.*\\.${format.toLowerCase()}$`));
      expect(readFileSync(await download.path(), 'utf8')).toMatch(words);
    }
  });
}
