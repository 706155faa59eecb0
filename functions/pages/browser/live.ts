// Keeps a page up to date. The `data-live` attribute of an element names an address to poll
// (`self`: the page itself), and `data-tag` the entity tag of the shown state. When the tag
// changes, the script fetches the page and replaces its live elements. A late response of an
// earlier request is ignored. An idle page polls less often to spare the core, except for addresses
// that the server answers from memory.

import { isFilledIn, otherFace, rememberRegions, replaceRegions } from './regions.ts';
import { tick } from './times.ts';

type Content = (string | Node)[];

/** Showing the same kind again changes nothing, so that screen readers announce it once. */
export function showBanner(kind: string, ...content: Content): void {
  const line = document.getElementById('live-banner');
  if (line === null || line.dataset['kind'] === kind) return;
  line.dataset['kind'] = kind;
  line.replaceChildren(...content);
}

export function hideBanner(): void {
  const line = document.getElementById('live-banner');
  if (line === null) return;
  delete line.dataset['kind'];
  line.replaceChildren();
}

/** The time since now, hidden from screen readers because it changes all the time. */
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
/** The pause after one failed request. Two failures in a row count as a lost connection. */
const RETRY_MS = 1500;
const SIGNED_OUT_MS = 30_000;
const UNATTENDED_MS = 300_000;
const UNATTENDED_TIMES = 4;
const FROM_MEMORY = '/api/health?';
const TOUCHES = ['pointerdown', 'pointermove', 'keydown'];

/** A tag that matches no page, so that the next response counts as new. */
const NO_TAG = 'W/"none"';

const tags = new Map<string, string>();
let polls = 0;
let failures = 0;
let trouble: 'lost' | 'out' | 'turned' | undefined;
let leaving = false;
let touchedAt = performance.now();
let timer: ReturnType<typeof setTimeout> | undefined;

export function startLive(): void {
  // The page answers a POST, so a GET of its address may give something else.
  if (document.body.classList.contains('sent')) return;
  rememberRegions();
  schedule();
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) void poll();
  });
  addEventListener('online', () => void poll());
  addEventListener('offline', () => showLost('none'));
  addEventListener('pagehide', () => (leaving = true));
  addEventListener('pageshow', ({ persisted }) => {
    leaving = false;
    if (persisted) refresh();
  });
  for (const kind of TOUCHES) addEventListener(kind, noteTouch, { capture: true, passive: true });
}

function isUnattended(): boolean {
  return performance.now() - touchedAt > UNATTENDED_MS;
}

function noteTouch(): void {
  const wasUnattended = isUnattended();
  touchedAt = performance.now();
  if (wasUnattended) void poll();
}

/** Fetches everything again: the device slept, or the browser restored the page from its cache. */
export function refresh(): void {
  if (document.body.classList.contains('sent')) return;
  tags.clear();
  tags.set(addressOf(liveElement()), NO_TAG);
  void poll(true);
}

function liveElement(): HTMLElement | null {
  return document.querySelector<HTMLElement>('[data-live]');
}

function addressOf(element: HTMLElement | null): string {
  const { live = 'self' } = element?.dataset ?? {};
  return live === 'self' ? location.href : live;
}

function schedule(): void {
  clearTimeout(timer);
  const element = liveElement();
  if (element === null || trouble === 'turned') return;
  const times = isUnattended() && !addressOf(element).startsWith(FROM_MEMORY) ? UNATTENDED_TIMES : 1;
  const seconds = times * Number(element.dataset['every'] ?? DEFAULT_SECONDS);
  const pause = trouble === 'out' ? SIGNED_OUT_MS : failures === 1 ? RETRY_MS : seconds * 1000;
  timer = setTimeout(() => void poll(), pause);
}

/** `always`: also on a page without live elements. */
async function poll(always = false): Promise<void> {
  clearTimeout(timer);
  const element = liveElement();
  if ((element === null && !always) || trouble === 'turned') return;
  polls += 1;
  const own = polls;
  if (!document.hidden) {
    // Signed out, it polls the page: an API address would add an audit entry for each request with
    // the ended session.
    const where = trouble === 'out' ? location.href : addressOf(element);
    const { tag = '' } = element?.dataset ?? {};
    try {
      if (tag !== '' && !tags.has(where)) tags.set(where, tag);
      await fetchUpdate(where, () => own === polls && !leaving);
    } catch {
      if (own === polls && !leaving) countFailure('none');
    }
  }
  if (own === polls) schedule();
}

async function fetchUpdate(address: string, isWanted: () => boolean): Promise<void> {
  const answer = await request(address);
  if (!isWanted() || handleRefusal(answer)) return;
  if (answer.status === 304) return showReconnected();
  // Reload, so that the person sees that the page is gone.
  if (answer.status === 404 && address === location.href) return location.reload();
  if (!answer.ok) return countFailure('error');
  const page = address === location.href ? answer : await request(location.href);
  if (!isWanted() || handleRefusal(page)) return;
  if (page.status === 404) return location.reload();
  if (!page.ok) return countFailure('error');
  const next = new DOMParser().parseFromString(await page.text(), 'text/html');
  if (!isWanted()) return;
  const face = otherFace(next);
  if (face !== undefined) return showOtherFace(face);
  const complete = replaceRegions(next);
  tick();
  const tag = answer.headers.get('etag');
  tags.set(address, complete && tag !== null ? tag : NO_TAG);
  showReconnected();
}

/** Requests the address, with the last known entity tag. */
function request(address: string): Promise<Response> {
  // With the second header the server sends no challenge, so that the browser shows no password
  // dialog.
  const headers: Record<string, string> = { Accept: 'text/html, application/json', 'X-Holdfast-Page': '1' };
  const tag = tags.get(address);
  if (tag !== undefined) headers['If-None-Match'] = tag;
  return fetch(address, { headers, cache: 'no-store', redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS) });
}

function handleRefusal({ type, status }: Response): boolean {
  if (type === 'opaqueredirect' || status === 401) {
    trouble = 'out';
    const back = `/sign-in?return_to=${encodeURIComponent(location.pathname + location.search)}`;
    showBanner('out', 'You are signed out, so this page no longer updates. ', linkTo(back, 'Sign in again'));
    return true;
  }
  if (status !== 403) return false;
  trouble = 'out';
  showBanner('refused', 'You no longer have access to this page. ', linkTo('/', 'Go to start page'));
  return true;
}

/**
 * Console and portal share one address, and another tab has switched the browser to the other one.
 */
function showOtherFace(face: string): void {
  trouble = 'turned';
  document.documentElement.classList.remove('lost');
  const text = `This browser now shows the ${face}, so this page no longer updates. `;
  showBanner('turned', text, linkTo(location.href, 'Reload'));
}

function countFailure(answer: keyof typeof LOST): void {
  failures += 1;
  if (failures > 1) showLost(answer);
}

const LOST = {
  none: 'No connection to the server. This page may be out of date. Retrying. ',
  error: "The server responds but can't send updates. This page may be out of date. Retrying. ",
};

/** Shows the lost connection. A page without live elements would never learn that it is back. */
function showLost(answer: keyof typeof LOST): void {
  if (leaving || liveElement() === null || trouble === 'turned') return;
  failures = Math.max(failures, 2);
  trouble ??= 'lost';
  document.documentElement.classList.add('lost');
  showBanner(answer, LOST[answer], since());
}

function showReconnected(): void {
  failures = 0;
  if (trouble === undefined) return;
  const was = trouble;
  trouble = undefined;
  document.documentElement.classList.remove('lost');
  if (was === 'out') return showSignedInAgain();
  showBanner('found', 'Reconnected.');
  setTimeout(() => {
    if (trouble === undefined) hideBanner();
  }, 4000);
}

/** After a new sign-in, perhaps of another person, reloads the page unless a form is filled in. */
function showSignedInAgain(): void {
  const isFilled = [...document.querySelectorAll<HTMLInputElement>('input, select, textarea')].some(isFilledIn);
  if (!isFilled) return location.reload();
  showBanner('back', 'You are signed in again. ', linkTo(location.href, 'Reload'));
}
