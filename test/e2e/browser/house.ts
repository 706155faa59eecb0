// The stack that all tests of pages share, a browser in front of it, and the flows: each is a test at every size that it names.

import type { Browser } from 'playwright-core';
import { expect, it } from 'vitest';
import type { TestStack } from '../embedded/embedded.ts';
import type { Furniture } from './furnished.ts';
import { type Look, newVisitor, type Visitor } from './visitor.ts';

export type Endpoint = 'console' | 'portal';

export interface House {
  stack: TestStack;
  browser: Browser;
  furniture: Furniture;
  /** The settings file that it was started with. */
  envFile: string;
  /** Without a slash at the end. */
  console: string;
  portal: string;
}

export interface Guest extends Visitor {
  house: House;
  /** Where this one comes in. */
  base: string;
  /** In names: flows run at the same time on the same stack. */
  mark: string;
  /** Goes to a path of the base; resolves with the status of the page that comes. */
  visit: (path: string) => Promise<number | undefined>;
  /** Signed in by the form's own request, without its page. */
  signedIn(as?: Person): Promise<void>;
}

export interface Person {
  username: string;
  password: string;
}

export interface FlowOptions {
  endpoint?: Endpoint;
  /** Signed in as `webadmin` when it begins; by default yes. */
  signedIn?: boolean;
  /** One size after the other: it changes what there is but one of. */
  inTurn?: boolean;
}

const COOKIE = /^(holdfast)=([^;]+)/;

/** The text of a session, as the form of signing in hands it out. */
export async function sessionOf(base: string, { username, password }: Person): Promise<string> {
  const body = new URLSearchParams({ username, password });
  const answer = await fetch(`${base}/sign-in`, {
    method: 'POST',
    body,
    headers: { origin: base },
    redirect: 'manual',
  });
  const [, , session] = COOKIE.exec(answer.headers.get('set-cookie') ?? '') ?? [];
  expect([`${username} signs in at ${base}`, answer.status, session !== undefined]).toEqual([
    `${username} signs in at ${base}`,
    303,
    true,
  ]);
  return session ?? '';
}

export async function openGuest(house: House, look: Look, endpoint: Endpoint = 'console'): Promise<Guest> {
  const base = house[endpoint];
  const visitor = await newVisitor(house.browser, look, [house.console, house.portal]);
  return {
    ...visitor,
    house,
    base,
    mark: `${look.width}${look.script ? '' : 'plain'}`,
    visit: async (path) => (await visitor.page.goto(`${base}${path}`))?.status(),
    async signedIn(as = house.stack.file().webadmin) {
      const value = await sessionOf(base, as);
      await visitor.context.addCookies([{ name: 'holdfast', value, url: base, httpOnly: true, sameSite: 'Lax' }]);
    },
  };
}

/** What a page says, for somebody who reads why a flow failed. */
async function whereItStands({ page }: Visitor): Promise<string> {
  const text = await page
    .locator('body')
    .innerText({ timeout: 1_000 })
    .catch(() => '(no page)');
  return `\n  at ${page.url()}, where it says:\n  ${text.slice(0, 1500).replaceAll('\n', '\n  ')}`;
}

/** A test for each look; nothing that must not happen has happened at its end. */
export function flow(
  house: () => House,
  name: string,
  looks: readonly Look[],
  work: (guest: Guest) => Promise<void>,
  { endpoint = 'console', signedIn = true, inTurn = false }: FlowOptions = {},
): void {
  const test = inTurn ? it : it.concurrent;
  for (const look of looks)
    test(`${name} (${look.width} px${look.script ? '' : ', no script'})`, async () => {
      const guest = await openGuest(house(), look, endpoint);
      try {
        if (signedIn) await guest.signedIn();
        await work(guest);
        await guest.fits();
        expect(guest.problems).toEqual([]);
      } catch (error) {
        if (error instanceof Error) error.message += await whereItStands(guest);
        throw error;
      } finally {
        await guest.context.close();
      }
    });
}
