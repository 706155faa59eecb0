// Keeps a page up to date. An element with `data-live` names an address that tells by its entity tag whether something is
// new (`self`: the page itself; `data-tag`: the tag of what is shown). Then the page is asked for, and its live elements take the place of those that are shown.

import { hideBanner, showBanner, showSignedOut } from './banner.ts';
import { replaceRegions } from './regions.ts';
import { tick } from './times.ts';

const DEFAULT_SECONDS = 5;
const TIMEOUT_MS = 10_000;

const tags = new Map<string, string>();
let lostSince: Date | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;

export function startLive(): void {
  plan();
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) void turn();
  });
  addEventListener('online', () => void turn());
  addEventListener('offline', () => lost());
}

function watched(): HTMLElement | null {
  return document.querySelector<HTMLElement>('[data-live]');
}

function plan(): void {
  clearTimeout(timer);
  const element = watched();
  if (element === null) return;
  const seconds = Number(element.dataset['every'] ?? DEFAULT_SECONDS);
  timer = setTimeout(() => void turn(), seconds * 1000);
}

async function turn(): Promise<void> {
  clearTimeout(timer);
  const element = watched();
  if (element === null) return;
  if (!document.hidden) {
    try {
      const { live: address = 'self', tag = '' } = element.dataset;
      if (tag !== '' && !tags.has(address)) tags.set(address, tag);
      await look(address === 'self' ? location.href : address);
    } catch {
      lost();
    }
  }
  plan();
}

async function look(address: string): Promise<void> {
  const own = address === location.href;
  const answer = await ask(address);
  if (answer.type === 'opaqueredirect' || answer.status === 401 || answer.status === 403) return showSignedOut();
  if (answer.status !== 304) {
    if (!answer.ok) return lost();
    const page = own ? answer : await ask(location.href);
    if (page.type === 'opaqueredirect') return showSignedOut();
    // Deleted by now, say: that is for the reader to see.
    if (page.status === 404) return location.reload();
    if (!page.ok && page.status !== 304) return lost();
    if (page.ok) {
      replaceRegions(await page.text());
      tick();
    }
    const tag = answer.headers.get('etag');
    if (tag !== null) tags.set(address, tag);
  }
  found();
}

/** Says what is known of that address, where it was asked before for news. */
function ask(address: string): Promise<Response> {
  const headers: Record<string, string> = { Accept: 'text/html, application/json' };
  const tag = tags.get(address);
  if (tag !== undefined) headers['If-None-Match'] = tag;
  return fetch(address, { headers, cache: 'no-store', redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS) });
}

function lost(): void {
  lostSince ??= new Date();
  document.documentElement.classList.add('lost');
  showBanner(`Connection lost at ${lostSince.toLocaleTimeString()}. What you see is from then. Trying again.`);
}

function found(): void {
  if (lostSince === undefined) return;
  lostSince = undefined;
  document.documentElement.classList.remove('lost');
  showBanner('Connected again.');
  setTimeout(() => {
    if (lostSince === undefined) hideBanner();
  }, 4000);
}
