// Tests the keyboard: everything is reached by Tab and done by Enter, and the focus is always visible.

import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { flow, type House } from './house.ts';
import { DESK } from './visitor.ts';

const MAX_STEPS = 120;

interface Focused {
  name: string;
  outline: string;
}

/** What has the focus, by its words. */
const FOCUSED = `(() => {
  const it = document.activeElement;
  if (it === document.body) return { name: '', outline: '' };
  const label = it.labels?.[0]?.innerText ?? it.getAttribute('aria-label') ?? it.innerText ?? '';
  const { outlineStyle, outlineWidth } = getComputedStyle(it);
  return { name: label.trim(), outline: outlineStyle + ' ' + outlineWidth };
})()`;

/** Tab, until something of that name has the focus, and it can be seen to have it. */
export async function tabTo(page: Page, name: RegExp): Promise<void> {
  const passed: string[] = [];
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const focused = await page.evaluate<Focused>(FOCUSED);
    if (name.test(focused.name)) {
      expect([focused.name, focused.outline]).toEqual([focused.name, expect.not.stringMatching(/^none|^\S+ 0px/)]);
      return;
    }
    passed.push(focused.name.split('\n')[0] ?? '');
    await page.keyboard.press('Tab');
  }
  throw new Error(`Tab does not come to ${String(name)}; it came to ${passed.join(', ')}`);
}

export function keyboardFlows(house: () => House): void {
  flow(
    house,
    'a person without a mouse signs in, skips to the content, and adds a person',
    [DESK],
    async (guest) => {
      const { page } = guest;
      const { username, password } = house().stack.file().webadmin;
      await guest.visit('/sign-in?return_to=/people/new');
      await tabTo(page, /^Username$/);
      await page.keyboard.type(username);
      await tabTo(page, /^Password$/);
      await page.keyboard.type(password);
      await page.keyboard.press('Enter');
      await page.waitForURL(/\d\/people\/new$/);
      await tabTo(page, /^Skip to content/);
      await page.keyboard.press('Enter');
      expect(await page.evaluate<string>('document.activeElement.id')).toBe('content');
      await tabTo(page, /^Name$/);
      await page.keyboard.type('Kay Board');
      await tabTo(page, /^Username$/);
      await page.keyboard.type('kay.board');
      await page.keyboard.press('Enter');
      await page.waitForURL(/\/people\/\d+\/enrollment\b/);
      expect(await page.getByRole('heading', { level: 1 }).innerText()).toMatch(/kay\.board/);
    },
    { signedIn: false },
  );
}
