// Keeps a page up to date. An element with `data-live` names an address that tells by its entity tag whether something is
// new (`self`: the page itself; `data-tag`: the tag of what is shown). Then the page is asked for, and its live elements take
// the place of those that are shown. One question at a time counts: what an earlier one answers later is not looked at. A page
// that nobody touches asks less often, for what it asks costs the core as well; what is told from memory goes on.

import { isFilledIn, otherFace, rememberRegions, replaceRegions } from './regions.ts';
import { tick } from './times.ts';

type Words = (string | Node)[];

/** The same words again change nothing, so that they are read aloud once. */
export function showBanner(kind: string, ...words: Words): void {
  const line = document.getElementById('live-banner');
  if (line === null || line.dataset['kind'] === kind) return;
  line.dataset['kind'] = kind;
  line.replaceChildren(...words);
}

export function hideBanner(): void {
  const line = document.getElementById('live-banner');
  if (line === null) return;
  delete line.dataset['kind'];
  line.replaceChildren();
}

/** How long that is so already; it is not read aloud each time that it changes. */
export function since(): HTMLElement {
  const time = document.createElement('span');
  time.setAttribute('aria-hidden', 'true');
  time.dataset['away'] = '0';
  return time;
}

export function linkTo(href: string, text: string): HTMLAnchorElement {
  const link = document.createElement('a');
  link.href = href;
  link.textContent = text;
  return link;
}

const DEFAULT_SECONDS = 5;
const TIMEOUT_MS = 10_000;
/** A question may be lost; what is lost twice is a lost connection. */
const AGAIN_MS = 1500;
const UNAVAILABLE_MS = 30_000;
const UNATTENDED_MS = 300_000;
const UNATTENDED_TIMES = 4;
const FROM_MEMORY = '/api/health?';
const TOUCHES = ['pointerdown', 'pointermove', 'keydown'];

/** Of nothing: whatever there is, it is news. */
const NO_TAG = 'W/"none"';

const tags = new Map<string, string>();
let turns = 0;
let failures = 0;
let trouble: 'lost' | 'out' | 'turned' | undefined;
let leaving = false;
let touchedAt = performance.now();
let timer: ReturnType<typeof setTimeout> | undefined;

export function startLive(): void {
  // At the address of a form that was sent something else may be, or nothing.
  if (document.body.classList.contains('sent')) return;
  rememberRegions();
  plan();
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) void turn();
  });
  addEventListener('online', () => void turn());
  addEventListener('offline', () => lost('none'));
  addEventListener('pagehide', () => (leaving = true));
  addEventListener('pageshow', ({ persisted }) => {
    leaving = false;
    if (persisted) lookAgain();
  });
  for (const kind of TOUCHES) addEventListener(kind, touched, { capture: true, passive: true });
}

function isUnattended(): boolean {
  return performance.now() - touchedAt > UNATTENDED_MS;
}

function touched(): void {
  const wasUnavailable = isUnattended();
  touchedAt = performance.now();
  if (wasUnavailable) void turn();
}

/** Whatever is known is old: the device slept, or the page comes back out of the memory of the browser. */
export function lookAgain(): void {
  if (document.body.classList.contains('sent')) return;
  tags.clear();
  tags.set(addressOf(watched()), NO_TAG);
  void turn(true);
}

function watched(): HTMLElement | null {
  return document.querySelector<HTMLElement>('[data-live]');
}

function addressOf(element: HTMLElement | null): string {
  const { live = 'self' } = element?.dataset ?? {};
  return live === 'self' ? location.href : live;
}

function plan(): void {
  clearTimeout(timer);
  const element = watched();
  if (element === null || trouble === 'turned') return;
  const times = isUnattended() && !addressOf(element).startsWith(FROM_MEMORY) ? UNATTENDED_TIMES : 1;
  const seconds = times * Number(element.dataset['every'] ?? DEFAULT_SECONDS);
  const pause = trouble === 'out' ? UNAVAILABLE_MS : failures === 1 ? AGAIN_MS : seconds * 1000;
  timer = setTimeout(() => void turn(), pause);
}

/** `always`: also where nothing is live. */
async function turn(always = false): Promise<void> {
  clearTimeout(timer);
  const element = watched();
  if ((element === null && !always) || trouble === 'turned') return;
  turns += 1;
  const own = turns;
  if (!document.hidden) {
    // The page itself only says whether somebody is in again: every address of programs enters a session that has ended in the audit log.
    const where = trouble === 'out' ? location.href : addressOf(element);
    const { tag = '' } = element?.dataset ?? {};
    try {
      if (tag !== '' && !tags.has(where)) tags.set(where, tag);
      await look(where, () => own === turns && !leaving);
    } catch {
      if (own === turns && !leaving) failed('none');
    }
  }
  if (own === turns) plan();
}

async function look(address: string, isWanted: () => boolean): Promise<void> {
  const answer = await ask(address);
  if (!isWanted() || isRefused(answer)) return;
  if (answer.status === 304) return found();
  // Deleted by now, say: that is for the reader to see.
  if (answer.status === 404 && address === location.href) return location.reload();
  if (!answer.ok) return failed('error');
  const page = address === location.href ? answer : await ask(location.href);
  if (!isWanted() || isRefused(page)) return;
  if (page.status === 404) return location.reload();
  if (!page.ok) return failed('error');
  const next = new DOMParser().parseFromString(await page.text(), 'text/html');
  if (!isWanted()) return;
  const face = otherFace(next);
  if (face !== undefined) return turned(face);
  const complete = replaceRegions(next);
  tick();
  const tag = answer.headers.get('etag');
  tags.set(address, complete && tag !== null ? tag : NO_TAG);
  found();
}

/** Says what is known of that address, where it was asked before for news. */
function ask(address: string): Promise<Response> {
  // By the second the server knows that it is not to ask for a password by a window of the browser.
  const headers: Record<string, string> = { Accept: 'text/html, application/json', 'X-Holdfast-Page': '1' };
  const tag = tags.get(address);
  if (tag !== undefined) headers['If-None-Match'] = tag;
  return fetch(address, { headers, cache: 'no-store', redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS) });
}

function isRefused({ type, status }: Response): boolean {
  if (type === 'opaqueredirect' || status === 401) {
    trouble = 'out';
    const back = `/sign-in?return_to=${encodeURIComponent(location.pathname + location.search)}`;
    const words = 'You are signed out, so nothing here is up to date any more. ';
    showBanner('out', words, linkTo(back, 'Sign in again'));
    return true;
  }
  if (status !== 403) return false;
  trouble = 'out';
  showBanner('refused', 'You may not see this page any more. ', linkTo('/', 'To the start'));
  return true;
}

/** Where monitor and portal share one address, another tab has turned the browser: nothing here is answered any more. */
function turned(face: string): void {
  trouble = 'turned';
  document.documentElement.classList.remove('lost');
  const words = `This browser shows the ${face === 'console' ? 'monitor' : face} now, so nothing here is up to date any more. `;
  showBanner('turned', words, linkTo(location.href, 'Load this page anew'));
}

function failed(answer: keyof typeof LOST): void {
  failures += 1;
  if (failures > 1) lost(answer);
}

const LOST = {
  none: 'No connection to the server, so what you see may be old. Trying again. ',
  error: 'The server is there, but cannot tell what is new: what you see may be old. Trying again. ',
};

/** Where nothing is live nobody would tell that it is there again. */
function lost(answer: keyof typeof LOST): void {
  if (leaving || watched() === null || trouble === 'turned') return;
  failures = Math.max(failures, 2);
  trouble ??= 'lost';
  document.documentElement.classList.add('lost');
  showBanner(answer, LOST[answer], since());
}

function found(): void {
  failures = 0;
  if (trouble === undefined) return;
  const was = trouble;
  trouble = undefined;
  document.documentElement.classList.remove('lost');
  if (was === 'out') return comeBack();
  showBanner('found', 'Connected again.');
  setTimeout(() => {
    if (trouble === undefined) hideBanner();
  }, 4000);
}

/** Somebody has signed in, perhaps somebody else: the whole page is theirs. */
function comeBack(): void {
  const typed = [...document.querySelectorAll<HTMLInputElement>('input, select, textarea')].some(isFilledIn);
  if (!typed) return location.reload();
  showBanner('back', 'You are signed in again. ', linkTo(location.href, 'Load this page anew'));
}
