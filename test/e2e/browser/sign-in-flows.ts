// Tests signing in and out in a browser.

import { expect } from 'vitest';
import { basic } from '../../http/fake-deps.ts';
import { barriers } from './accessible.ts';
import { flow, type Guest, type House, type Person } from './house.ts';
import { wayFrom } from './own-address.ts';
import { BOTH, PHONE, says, WITHOUT_SCRIPT } from './visitor.ts';

/** Beyond what an address may fail. */
const FAILURES = 10;

/** The form as it is shown, sent. */
export async function fillIn({ page }: Guest, { username, password }: Person): Promise<void> {
  await page.getByLabel('Username', { exact: true }).fill(username);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

const heading = async ({ page }: Guest): Promise<string> => page.getByRole('heading', { level: 1 }).innerText();

export function signInFlows(house: () => House): void {
  flow(
    house,
    'a person signs in, comes to the page that was asked for, and signs out',
    [...BOTH, WITHOUT_SCRIPT],
    async (guest) => {
      const { page } = guest;
      await guest.visit('/account');
      expect(new URL(page.url()).pathname).toBe('/sign-in');
      await guest.fits();
      if (guest.look.script) expect(await barriers(page)).toEqual([]);
      await fillIn(guest, house().stack.file().webadmin);
      await page.waitForURL('**/account');
      expect(await heading(guest)).toMatch(/account/i);
      await page.getByRole('button', { name: 'Sign out', exact: true }).first().click();
      await page.waitForURL(/\/sign-in\b/);
      await guest.visit('/account');
      expect(new URL(page.url()).pathname).toBe('/sign-in');
    },
    { signedIn: false },
  );

  flow(
    house,
    'a wrong password shows an error, and the username stays in its field',
    BOTH,
    async (guest) => {
      await guest.visit('/sign-in');
      await fillIn(guest, { username: 'webadmin', password: 'not the password' });
      const reported = guest.page.getByRole('alert');
      expect(await reported.innerText()).toMatch(/Wrong username or password/);
      expect(await barriers(guest.page)).toEqual([]);
      expect(await guest.page.getByLabel('Username', { exact: true }).inputValue()).toBe('webadmin');
      expect(await guest.page.getByLabel('Password', { exact: true }).inputValue()).toBe('');
    },
    { signedIn: false },
  );

  flow(
    house,
    'a locked-out person sees how long',
    [PHONE],
    async (guest) => {
      const { page } = guest;
      const way = await wayFrom('127.0.0.77', guest.base);
      try {
        for (let failure = 0; failure < FAILURES; failure += 1) await failAt(way.base);
        guest.allows(way.base);
        await page.goto(`${way.base}/sign-in`);
        await fillIn(guest, house().stack.file().webadmin);
        await says(page, /1[45] min( \d\d s)? left/);
        const { api, webadmin } = house().stack.file();
        const headers = { authorization: basic(webadmin.username, webadmin.password) };
        const freed = await fetch(`${api}/api/lockouts/127.0.0.77`, { method: 'DELETE', headers });
        expect(freed.status).toBe(204);
        await page.goto(`${way.base}/sign-in`);
        await fillIn(guest, webadmin);
        await page.waitForURL(`${way.base}/`);
      } finally {
        way.close();
      }
    },
    { signedIn: false },
  );
}

async function failAt(base: string): Promise<void> {
  const body = new URLSearchParams({ username: 'nobody-here', password: 'wrong' });
  const answer = await fetch(`${base}/sign-in`, { method: 'POST', body, headers: { origin: base } });
  expect(answer.status).toBe(401);
}
