// Tests every page, found by following the links, in console and portal and for each role.

import { describe, expect, it } from 'vitest';
import { barriersInEveryLook } from './accessible.ts';
import { crawl, kindOf, type Place, type Visited } from './crawl.ts';
import { type Endpoint, type Guest, type House, openGuest, type Person, sessionOf } from './house.ts';
import { DESK, HEIGHTS, tooWide, WITHOUT_SCRIPT } from './visitor.ts';

const MAX_BYTES = 150_000;
/** Pages that are looked at at the same time. */
const CONCURRENCY = 3;
const LONG = { timeout: 300_000 };

interface Role {
  /** Its pages are not all those of another one. */
  own: boolean;
  name: string;
  endpoint: Endpoint;
  person: (house: House) => Person;
}

const webadmin = ({ stack }: House): Person => stack.file().webadmin;

const ROLES: readonly Role[] = [
  { own: true, name: 'an administrator in the console', endpoint: 'console', person: webadmin },
  { own: false, name: 'a viewer in the console', endpoint: 'console', person: ({ furniture }) => furniture.viewer },
  { own: true, name: 'a person in the portal', endpoint: 'portal', person: ({ furniture }) => furniture.plain },
  { own: false, name: 'an administrator in the portal', endpoint: 'portal', person: webadmin },
];

async function placeOf(house: House, { endpoint, person }: Role): Promise<Place> {
  const base = house[endpoint];
  return { base, cookie: `holdfast=${await sessionOf(base, person(house))}` };
}

/** One page of each kind, in the order of the links. */
function oneOfEach(pages: readonly Visited[]): Visited[] {
  return pages.filter(({ kind }, at) => pages.findIndex((each) => each.kind === kind) === at);
}

/** What has no field takes effect at once: of a certificate of the furniture it would. */
const REMOVES = /^\/sign-out$|^\/my-devices\/[^/]+\/revoke$/;

/** Whoever has ended the session by that form is told so there. */
const isToSignIn = (location: string): boolean => /^\/sign-in(?:\?return_to=|$)/.test(location);

const FORMS = /<form\b[^>]*>/g;

/** Where the forms of a page go that change something. */
function actionsOf({ html, path }: Visited): string[] {
  const forms = [...html.matchAll(FORMS)].map(([form]) => form).filter((form) => /\smethod="post"/.test(form));
  return forms.map((form) => /\saction="([^"]*)"/.exec(form)?.[1]?.replaceAll('&amp;', '&') ?? path);
}

/** Goes there; says what came instead, if anything else did. */
async function arrival({ page, visit }: Guest, path: string): Promise<string[]> {
  const status = await visit(path);
  const { pathname } = new URL(page.url());
  const isThere = status === 200 && pathname === new URL(path, page.url()).pathname;
  return isThere ? [] : [`${path} is answered with ${status} at ${pathname}`];
}

/** The first of each path: another query shows the same page with other rows. */
function oneOfEachPath(pages: readonly Visited[]): Set<Visited> {
  const pathOf = ({ kind }: Visited): string | undefined => kind.split('?')[0];
  return new Set(pages.filter((page, at) => pages.findIndex((each) => pathOf(each) === pathOf(page)) === at));
}

/** A page of its own kind at both sizes; with `barriers` in both schemes by axe. */
async function lookedAt(guest: Guest, path: string, wantsBarriers: boolean): Promise<string[]> {
  const { page } = guest;
  await page.setViewportSize({ width: 1440, height: HEIGHTS[1440] });
  await page.emulateMedia({ colorScheme: 'light' });
  const astray = await arrival(guest, path);
  const wide = await tooWide(page);
  await page.setViewportSize({ width: 360, height: HEIGHTS[360] });
  const narrow = await tooWide(page);
  return [...astray, ...wide, ...narrow, ...(wantsBarriers ? await barriersInEveryLook(page) : [])];
}

/** What the first visit transfers, uncompressed: the page with its styles and scripts. */
async function weightOf(base: string, html: string): Promise<number> {
  const parts = [...html.matchAll(/<(?:link|script|img)\b[^>]*?\s(?:href|src)="(\/[^"]+)"/g)].map(
    ([, part = '']) => part,
  );
  const bodies = await Promise.all(parts.map(async (part) => (await fetch(`${base}${part}`)).arrayBuffer()));
  return bodies.reduce((sum, { byteLength }) => sum + byteLength, Buffer.byteLength(html));
}

export function everyPage(house: () => House): void {
  describe.each(ROLES)('to $name', (role) => {
    let crawled: Promise<Visited[]> | undefined;
    /** Followed once for all tests: what they do changes no page. */
    const everyLink = (): Promise<Visited[]> => (crawled ??= placeOf(house(), role).then((place) => crawl(place)));

    it('every link leads to a page, and every page shows something', async () => {
      const pages = await everyLink();
      expect(pages.length).toBeGreaterThan(3);
      expect(pages.filter(({ status }) => status !== 200).map(({ path, status }) => `${path}: ${status}`)).toEqual([]);
      const bare = pages.filter(({ html }) => html.match(/<h1[ >]/g)?.length !== 1);
      expect(bare.map(({ path }) => path)).toEqual([]);
    });

    // To an administrator nothing is refused for what they are.
    it.skipIf(role.person === webadmin)('no page offers what would be refused', async () => {
      const actions = new Set((await everyLink()).flatMap(actionsOf).filter((path) => !REMOVES.test(path)));
      const kinds = [...actions].filter(
        (path, at, all) => all.findIndex((each) => kindOf(each) === kindOf(path)) === at,
      );
      expect(kinds.length).toBeGreaterThan(0);
      const refused: string[] = [];
      for (const action of kinds) {
        // One may end every session: each is sent from one of its own, and after the one before.
        const { base, cookie } = await placeOf(house(), role);
        // A body that no form takes: who may send it is told before what is wrong with it.
        const body = new URLSearchParams({ nothing: 'x'.repeat(10) });
        const answer = await fetch(`${base}${action}`, {
          method: 'POST',
          headers: { cookie, origin: base },
          body,
          redirect: 'manual',
        });
        const isRejected = isToSignIn(answer.headers.get('location') ?? '');
        if (isRejected || [401, 403, 404, 405].includes(answer.status)) refused.push(`${action}: ${answer.status}`);
      }
      expect(refused).toEqual([]);
    });

    it(
      'every kind of page is for everybody: no serious barrier, no sideways scrolling, no error, no request outside',
      LONG,
      async () => {
        const pages = oneOfEach(await everyLink());
        const waiting = [...pages];
        const searched = role.own ? oneOfEachPath(pages) : new Set<Visited>();
        const look = async (): Promise<string[]> => {
          const guest = await openGuest(house(), DESK, role.endpoint);
          await guest.signedIn(role.person(house()));
          const found: string[] = [];
          for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
            found.push(...(await lookedAt(guest, next.path, searched.has(next))));
          await guest.context.close();
          return [...found, ...guest.problems];
        };
        const found = await Promise.all(Array.from({ length: CONCURRENCY }, look));
        expect(found.flat()).toEqual([]);
        const weights = await Promise.all(
          pages.map(async ({ path, html }) => ({ path, bytes: await weightOf(house()[role.endpoint], html) })),
        );
        expect(weights.filter(({ bytes }) => bytes > MAX_BYTES)).toEqual([]);
      },
    );

    it('every kind of page can be read without script', LONG, async () => {
      const pages = oneOfEach(await everyLink());
      const guest = await openGuest(house(), WITHOUT_SCRIPT, role.endpoint);
      await guest.signedIn(role.person(house()));
      const found: string[] = [];
      for (const { path } of pages) {
        found.push(...(await arrival(guest, path)));
        await guest.fits();
        const text = await guest.page.locator('main').innerText();
        if (text.length < 40) found.push(`${path} says only: ${text}`);
      }
      await guest.context.close();
      expect([...found, ...guest.problems]).toEqual([]);
    });
  });
}
