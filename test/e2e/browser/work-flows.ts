// Tests other work of an administrator: retention, vacuum, changes of people, tokens, lockouts.

import { expect } from 'vitest';
import { asAdministrator } from '../embedded/devices-api.ts';
import { barriers } from './accessible.ts';
import { flow, type Guest, type House, sessionOf } from './house.ts';
import { wayFrom } from './own-address.ts';
import { BOTH, DESK, PHONE, says, WITHOUT_SCRIPT } from './visitor.ts';

const PASSWORD = 'given by somebody else 5';

export function workFlows(house: () => House): void {
  const { ask, newUser, json } = asAdministrator(() => house().stack);

  flow(
    house,
    'a full vacuum is asked for by typing its word, and is followed to its result',
    BOTH,
    async (guest) => {
      const { page } = guest;
      await guest.visit('/database/vacuum');
      await page.getByRole('radio', { name: /^Full/ }).check();
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByLabel('Type full to confirm').waitFor();
      await guest.fits();
      expect(await barriers(page)).toEqual([]);
      await page.getByLabel('Type full to confirm').fill('full');
      await page.getByRole('button', { name: 'Start full vacuum' }).click();
      await page.waitForURL(/\/jobs\/[\w-]+/);
      // Not `3 of 5 tables`.
      await says(page, /(?<!of )\b\d+ tables? vacuumed\. .* returned to the disk\./);
    },
    { inTurn: true },
  );

  const policyIsShown = async (guest: Guest): Promise<void> => {
    const { page, look } = guest;
    const days = look.width === DESK.width ? 45 : 46;
    await guest.visit('/database/retention');
    await page.getByRole('textbox', { name: /^GeoChat|chat/i }).fill(String(days));
    await page.getByRole('button', { name: 'Preview' }).click();
    await page.waitForURL(/\/database\/retention\/preview/);
    await says(page, 'What would be deleted');
    await page.getByRole('button', { name: 'Save policy' }).click();
    await page.waitForURL(/\/database\/retention\?done=/);
    const { policy } = await json<{ policy: Record<string, number | null> }>('GET', '/api/retention');
    expect(policy).toMatchObject({ cot: 30, geochat: days });
  };
  flow(house, 'a policy is shown with what it deletes before it can be saved', BOTH, policyIsShown, { inTurn: true });

  flow(house, 'a person gets groups, a role and a password, and is deactivated', BOTH, async (guest) => {
    const { page, mark, base } = guest;
    const { id, username } = await newUser(`changed.${mark}`, { groups: ['Blue'] });
    const there = new RegExp(`/people/${id}\\b`);
    await guest.visit(`/people/${id}`);
    await page.locator('details#groups > summary').click();
    await page.getByRole('checkbox', { name: /^core_Red/ }).check();
    await page.getByRole('button', { name: 'Save groups' }).click();
    await says(page, /Connected devices apply them within 75 seconds/);
    await page.locator('details#role > summary').click();
    await page.getByRole('radio', { name: /^Viewer/i }).check();
    await page.getByRole('button', { name: 'Save role' }).click();
    await says(page, /Role saved/);
    await page.locator('details#password > summary').click();
    await page.getByLabel('New password', { exact: true }).fill(PASSWORD);
    await page.getByLabel('Repeat new password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Set password' }).click();
    await says(page, 'Password set');
    await guest.fits();
    expect(await json('GET', `/api/users/${id}`)).toMatchObject({ groups: ['core_Blue', 'core_Red'], role: 'viewer' });
    const cookie = `holdfast=${await sessionOf(base, { username, password: PASSWORD })}`;
    expect((await fetch(`${base}/api/me`, { headers: { cookie } })).status).toBe(200);
    await page.getByText('Deactivate…').click();
    await page.getByRole('button', { name: `Deactivate ${username}` }).click();
    await page.waitForURL(there);
    await says(page, 'Account deactivated: sessions ended');
    expect((await fetch(`${base}/api/me`, { headers: { cookie } })).status).toBe(401);
  });

  flow(
    house,
    'a backup is made and followed to its end, and a sheet says how to restore it',
    [DESK],
    async (guest) => {
      const { page } = guest;
      await guest.visit('/backups');
      await page.getByRole('button', { name: 'Run now' }).click();
      await page.waitForURL(/\/backups\?done=run/);
      await page.getByRole('button', { name: /^Mark permanent holdfast-/ }).waitFor();
      await page.getByRole('button', { name: 'Run now' }).waitFor();
      await page.getByRole('button', { name: /^Mark permanent/ }).click();
      await page.waitForURL(/\/backups\?done=kept/);
      await page.getByText('Unmark…').waitFor();
      await guest.fits();
      expect(await barriers(page)).toEqual([]);
      const { backups } = await json<{ backups: { name: string; permanent: boolean }[] }>('GET', '/api/backups');
      expect(backups).toMatchObject([{ permanent: true }]);
      await page.getByRole('link', { name: 'Emergency sheet', exact: true }).first().click();
      await page.waitForURL('**/backups/emergency-sheet');
      const sheet = await page.locator('.sheet').innerText();
      expect(sheet).toMatch(/start\.sh --embedded --data NEW --restore .*--passphrase-file FILE/);
      expect(await page.content()).not.toContain('only for the tests of pages');
      await page.emulateMedia({ media: 'print' });
      expect(await page.getByText('Print this page, and keep it').isVisible()).toBe(false);
    },
    { inTurn: true },
  );

  flow(
    house,
    'a mission is archived, deleted and restored with what was in it',
    [PHONE],
    async (guest) => {
      const { page } = guest;
      await guest.visit('/missions');
      await page.getByRole('link', { name: 'Search North', exact: true }).click();
      await page.waitForURL(/\/missions\/[0-9a-f-]{36}/);
      await says(page, 'Team 2 is at the hut');
      await says(page, 'plan.json');
      await page.getByText('Archive…').click();
      await page.getByRole('button', { name: 'Archive Search North' }).click();
      await says(page, 'Archive kept on this server');
      await page.getByRole('link', { name: 'Search North', exact: true }).click();
      await page.getByText('Delete…').click();
      await page.getByRole('button', { name: 'Delete Search North' }).click();
      await says(page, 'Mission deleted');
      await page.getByText('Restore…').click();
      await page.getByRole('button', { name: 'Restore Search North' }).click();
      await says(page, 'Mission restored');
      await guest.fits();
      expect(await barriers(page)).toEqual([]);
      const [found] = (await json<{ results: { guid: string }[] }>('GET', '/api/missions')).results;
      expect(await json('GET', `/api/missions/${found?.guid}`)).toMatchObject({
        name: 'Search North',
        groups: ['Search North'],
        size: { items: 1, files: 1, bytes: 11 },
        files: [{ name: 'plan.json' }],
      });
    },
    { inTurn: true },
  );

  flow(house, 'a token is shown once, and never again', BOTH, async (guest) => {
    const { page, mark } = guest;
    await guest.visit('/tokens');
    const link = page.getByRole('link', { name: /token/i }).filter({ hasText: /new|create/i });
    if (!(await page.getByLabel('Name', { exact: true }).isVisible())) await link.first().click();
    await page.getByLabel('Name', { exact: true }).fill(`script-${mark}`);
    await page.getByRole('radio').first().check();
    await page.getByRole('button', { name: 'Create token' }).click();
    const token = await page.locator('#token').innerText();
    const headers = { authorization: `Bearer ${token}` };
    expect((await fetch(`${guest.base}/api/groups`, { headers })).status).toBe(200);
    await guest.fits();
    expect(await barriers(page)).toEqual([]);
    await guest.visit('/tokens');
    await says(page, `script-${mark}`);
    expect(await page.locator('body').innerText()).not.toContain(token);
  });

  flow(house, 'a person is added without scripts', [WITHOUT_SCRIPT], async (guest) => {
    const { page } = guest;
    await guest.visit('/people/new');
    await page.getByLabel('Name', { exact: true }).fill('Scarlett "<b>O’Hara</b>"');
    await page.getByLabel('Username', { exact: true }).fill('no.script');
    await page.getByLabel('Access expires').selectOption('days-7');
    await page.getByRole('button', { name: 'Add person' }).click();
    await page.waitForURL(/\/people\/\d+\b/);
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toContain('<b>O’Hara</b>');
    await page
      .getByRole('link', { name: /add device/i })
      .first()
      .click();
    await page.getByRole('button', { name: 'Create code' }).click();
    await page.locator('.qr svg').waitFor();
    expect(await page.content()).toContain('Reload this page to check for enrolled devices');
  });

  flow(house, 'the revocation of a device is visible at every width', [DESK], async (guest) => {
    const { page } = guest;
    await guest.visit('/devices');
    const button = page.getByText('Revoke…').first();
    for (const width of [768, 1024, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      const { x = width, width: own = 0 } = (await button.boundingBox()) ?? {};
      expect([width, x + own < width]).toEqual([width, true]);
    }
  });

  flow(house, 'a locked-out address is listed and unlocked', [PHONE], async (guest) => {
    const { page, base } = guest;
    const way = await wayFrom('127.0.0.78', base);
    const body = new URLSearchParams({ username: 'nobody', password: 'wrong' });
    for (let failure = 0; failure < 10; failure += 1)
      await fetch(`${way.base}/sign-in`, { method: 'POST', body, headers: { origin: way.base } });
    way.close();
    await guest.visit('/lockouts');
    const row = page.getByRole('row').filter({ hasText: '127.0.0.78' });
    await row.getByText('Unlock…').click();
    await row.getByRole('button').last().click();
    await row.waitFor({ state: 'detached' });
    expect((await ask('DELETE', '/api/lockouts/127.0.0.78')).status).toBe(404);
  });
}
