// Somebody in front of a page: a browser context of one size, color scheme and will to run scripts, that keeps what must not happen:
// requests that leave the stack, errors in the browser's log, failures of the server, pages wider than the phone.

import type { Browser, BrowserContext, ConsoleMessage, Page, Request, Response } from 'playwright-core';

export interface Look {
  width: 360 | 1440;
  scheme: 'light' | 'dark';
  script: boolean;
}

export const PHONE: Look = { width: 360, scheme: 'dark', script: true };
export const DESK: Look = { width: 1440, scheme: 'light', script: true };
export const BOTH = [PHONE, DESK];
export const WITHOUT_SCRIPT: Look = { ...PHONE, script: false };

export const HEIGHTS = { 360: 740, 1440: 900 };
/** The machine may be busy; what comes, comes earlier. */
const WITHIN_MS = 30_000;

export interface Visitor {
  page: Page;
  context: BrowserContext;
  look: Look;
  /** What must not happen, as far as it has. */
  problems: string[];
  /** One more origin that belongs to the stack. */
  allows(origin: string): void;
  /** Says that this will be in the browser's log: a connection that is cut, for one. */
  expects(message: RegExp): void;
  /** Whether the page is wider than its window is asked of each page at its end: here of one that is left again. */
  fits: () => Promise<void>;
  /** Bytes over the wire so far. */
  transferred(): Promise<number>;
}

export async function newVisitor(browser: Browser, look: Look, places: readonly string[]): Promise<Visitor> {
  const context = await browser.newContext({
    viewport: { width: look.width, height: HEIGHTS[look.width] },
    colorScheme: look.scheme,
    javaScriptEnabled: look.script,
    reducedMotion: 'reduce',
    ...(look.width === 360 ? { hasTouch: true, isMobile: true } : {}),
  });
  context.setDefaultTimeout(WITHIN_MS);
  context.setDefaultNavigationTimeout(WITHIN_MS);
  const origins = new Set(places);
  const problems: string[] = [];
  const expected: RegExp[] = [];
  const finished: Request[] = [];
  const refusedPages = new Set<string>();

  context.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol === 'data:' || protocol === 'blob:' || origins.has(origin)) return;
    problems.push(`a request leaves the stack: ${request.url()}`);
  });
  context.on('response', (response: Response) => {
    const status = response.status();
    if (status >= 500) problems.push(`${status} for ${response.url()}`);
    // A refusal is a page of ours, and the browser's log has a line of each.
    if (status >= 400 && status < 500 && response.request().isNavigationRequest()) refusedPages.add(response.url());
  });
  context.on('requestfinished', (request) => finished.push(request));
  context.on('weberror', (error) => problems.push(`an error of the page: ${String(error.error())}`));
  context.on('console', (message: ConsoleMessage) => {
    if (!['error', 'warning'].includes(message.type())) return;
    const text = message.text();
    const { url } = message.location();
    if (/server responded with a status of 4/.test(text) && refusedPages.has(url)) return;
    if (expected.some((each) => each.test(text))) return;
    problems.push(`in the browser's log: ${text} (${url})`);
  });

  const page = await context.newPage();
  return {
    page,
    context,
    look,
    problems,
    allows: (origin) => void origins.add(origin),
    expects: (message) => void expected.push(message),
    fits: async () => void problems.push(...(await tooWide(page))),
    transferred: async () => {
      const sizes = await Promise.all(finished.map((request) => request.sizes()));
      return sizes.reduce(
        (sum, { responseBodySize, responseHeadersSize }) => sum + responseBodySize + responseHeadersSize,
        0,
      );
    },
  };
}

interface Width {
  scrollWidth: number;
  names: string[];
}

/** As text: it runs in the page, whose names the tests do not know. */
const widthIn = (width: number): string => `(() => {
  const { scrollWidth } = document.documentElement;
  const outside = [...document.querySelectorAll('body *')].filter((each) => {
    const { left, right, width } = each.getBoundingClientRect();
    return width > 0 && (right > ${width} + 1 || left < -1);
  });
  const names = outside.slice(0, 4).map((each) => each.tagName + '.' + (each.getAttribute('class') ?? ''));
  return { scrollWidth, names };
})()`;

/** Works without script too: what the debugger evaluates is no script of the page. */
export async function tooWide(page: Page): Promise<string[]> {
  // Not what the page is told: a phone that shows a page wider than itself makes it smaller.
  const { width = 0 } = page.viewportSize() ?? {};
  const { scrollWidth, names } = await page.evaluate<Width>(widthIn(width));
  return scrollWidth <= width ? [] : [`${page.url()} is ${scrollWidth} px wide in ${width}: ${names.join(', ')}`];
}

/** Waits until the page says so, somewhere in what it is about. */
export async function says(page: Page, what: RegExp | string): Promise<void> {
  await page.locator('main').filter({ hasText: what }).first().waitFor();
}
