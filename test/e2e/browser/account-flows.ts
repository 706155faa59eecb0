// Tests the person's own account in console and portal: sessions, password, and what the portal shows.

import { expect } from 'vitest';
import { asAdministrator } from '../embedded/devices-api.ts';
import { flow, type Guest, type House, type Person, sessionOf } from './house.ts';
import { fillIn } from './sign-in-flows.ts';
import { BOTH, DESK, PHONE, says } from './visitor.ts';

const OLD = 'a password for a while 1';
const NEW = 'another one for ever after 2';

export function accountFlows(house: () => House): void {
  const { ask, newUser } = asAdministrator(() => house().stack);

  async function personWithPassword({ mark }: Guest, name: string): Promise<Person> {
    const { id, username } = await newUser(`${name}.${mark}`, { groups: ['Blue'] });
    const set = await ask('POST', `/api/users/${id}/password`, { password: OLD });
    expect(set.status).toBe(204);
    return { username, password: OLD };
  }

  flow(
    house,
    'a person sees where she is signed in, and ends a session elsewhere',
    BOTH,
    async (guest) => {
      const { page, base } = guest;
      const person = await personWithPassword(guest, 'sessions');
      await guest.signedIn(person);
      const elsewhere = await sessionOf(base, person);
      await guest.visit('/account');
      const sessions = page.locator('#sessions');
      expect(await sessions.getByText('(current)').count()).toBe(1);
      await sessions.getByRole('button', { name: /^End session of/ }).click();
      await says(page, 'Session ended');
      expect(await sessions.getByRole('button', { name: /^End session of/ }).count()).toBe(0);
      const headers = { cookie: `holdfast=${elsewhere}` };
      expect((await fetch(`${base}/api/sessions`, { headers })).status).toBe(401);
      await page.getByText('Sign out everywhere…').click();
      await page.getByRole('button', { name: 'Sign out everywhere', exact: true }).click();
      await page.waitForURL('**/sign-in?*');
    },
    { signedIn: false, endpoint: 'portal' },
  );

  flow(
    house,
    'a person changes her password, sees errors at the field, and signs in only with the new one',
    BOTH,
    async (guest) => {
      const { page } = guest;
      const person = await personWithPassword(guest, 'changes');
      await guest.signedIn(person);
      await guest.visit('/account');
      const change = async (current: string, password: string, again: string): Promise<void> => {
        await page.getByLabel('Current password').fill(current);
        await page.getByLabel('New password', { exact: true }).fill(password);
        await page.getByLabel('Repeat new password').fill(again);
        await page.getByRole('button', { name: 'Change password' }).click();
      };
      await change(OLD, NEW, 'something else entirely');
      await says(page, /must match the new password/);
      expect(await page.getByLabel('New password', { exact: true }).inputValue()).toBe('');
      await change(OLD, NEW, NEW);
      await page.waitForURL('**/sign-in?done=password');
      await fillIn(guest, person);
      await page.getByRole('alert').filter({ hasText: 'Wrong username or password' }).waitFor();
      await fillIn(guest, { ...person, password: NEW });
      await page.waitForURL(`${guest.base}/`);
    },
    { signedIn: false, endpoint: 'portal' },
  );

  flow(
    house,
    'the portal shows a person her own devices, how to add one, and nothing of others',
    BOTH,
    async (guest) => {
      const { page } = guest;
      await guest.signedIn(house().furniture.plain);
      await guest.visit('/');
      await says(page, /ANDROID-nora/);
      expect(await page.locator('body').innerText()).not.toMatch(/ada\.lindt|Lantern 1/);
      expect(await page.getByRole('link', { name: 'People' }).count()).toBe(0);
      await page.getByRole('link', { name: 'Guides' }).first().click();
      await page.waitForURL('**/guides');
      await page.getByRole('link', { name: /ATAK/ }).first().click();
      await page.waitForURL('**/guides/*');
      await says(page, new RegExp(`port ${8089 + house().stack.offset}\\b`));
      const refused = await page.request.get(`${guest.base}/people`, { headers: { accept: 'text/html' } });
      expect(refused.status()).toBe(403);
    },
    { signedIn: false, endpoint: 'portal' },
  );

  flow(
    house,
    'an administrator creates and deactivates a person in the portal, where hidden accounts do not exist',
    [PHONE, DESK],
    async (guest) => {
      const { page, mark } = guest;
      const username = `portal.${mark}`;
      await guest.visit('/people/new');
      await page.getByLabel('Name', { exact: true }).fill('Porter Gate');
      await page.getByLabel('Username', { exact: true }).fill(username);
      await page.getByRole('button', { name: 'Add person' }).click();
      await page.waitForURL(/\/people\/\d+\?done=created/);
      await page.getByText('Deactivate…').click();
      await page.getByRole('button', { name: `Deactivate ${username}` }).click();
      await says(page, 'Account deactivated: sessions ended');
      await guest.visit('/people?search=svc_');
      expect(await page.locator('main').innerText()).not.toMatch(/svc_api|svc_canary/);
      await guest.visit('/people?include=hidden');
      expect(await page.locator('main').innerText()).not.toMatch(/svc_api|svc_canary|akadmin/);
      await guest.visit('/people?search=ada');
      await page
        .getByRole('link', { name: /ada\.lindt|Ada Lindt/ })
        .first()
        .click();
      await page.waitForURL(/\/people\/\d+/);
      await says(page, 'core_Blue');
    },
    { endpoint: 'portal' },
  );
}
