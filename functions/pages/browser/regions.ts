// Replaces the live elements of the page by those of a new version, by id. Elements with typed or
// selected text stay, and so do the focus and expanded details.

import { withoutClock } from '../../../shared/http/text.ts';
import { setTimes } from './times.ts';

const REGIONS = '[data-live][id], [data-refresh][id]';
const FOCUSABLE = 'a, button, summary, input, select, textarea, [tabindex]';
const FACES = ['console', 'portal'];

/** The HTML of each region as the server sent it. */
const sent = new Map<string, string>();

export function rememberRegions(): void {
  for (const region of document.querySelectorAll(REGIONS)) sent.set(region.id, region.outerHTML);
}

/** The face of the new page, when it is another one. */
export function otherFace(next: Document): string | undefined {
  const has = ({ body }: Document, face: string): boolean => body.classList.contains(face);
  return FACES.find((face) => has(next, face) && !has(document, face));
}

/**
 * Returns false when a region in use was left as it was: then the same version must be fetched
 * again.
 */
export function replaceRegions(next: Document): boolean {
  if (document.title !== next.title) document.title = next.title;
  let complete = true;
  for (const region of document.querySelectorAll<HTMLElement>(REGIONS)) {
    const fresh = next.getElementById(region.id);
    if (fresh === null || !region.isConnected) continue;
    if (isSame(fresh, region.id)) setTimes(region, fresh);
    else if (isInUse(region)) complete = false;
    else replace(region, fresh);
  }
  return complete;
}

function isSame(fresh: Element, id: string): boolean {
  return withoutClock(fresh.outerHTML) === withoutClock(sent.get(id) ?? '');
}

function replace(region: HTMLElement, fresh: HTMLElement): void {
  for (const each of [fresh, ...fresh.querySelectorAll(REGIONS)]) sent.set(each.id, each.outerHTML);
  const focused = region.contains(document.activeElement) ? document.activeElement : null;
  for (const { id } of region.querySelectorAll('details[open][id]'))
    [...fresh.querySelectorAll('details')].find((each) => each.id === id)?.setAttribute('open', '');
  region.replaceWith(fresh);
  if (focused === null) return;
  const key = keyOf(focused);
  const same = [fresh, ...fresh.querySelectorAll<HTMLElement>(FOCUSABLE)].find((each) => keyOf(each) === key);
  same?.focus({ preventScroll: true });
}

/** A key that finds the same element in the next version of the page. */
function keyOf(element: Element): string {
  const row = element.closest('tr')?.querySelector('th')?.textContent;
  const box = element.closest('[id]')?.id;
  return element.id || [element.tagName, element.getAttribute('href'), box, row, element.textContent].join('|');
}

function isInUse(region: Element): boolean {
  const active = document.activeElement;
  if (active?.matches('input, select, textarea') === true && region.contains(active)) return true;
  const selection = getSelection();
  if (selection?.isCollapsed === false && selection.containsNode(region, true)) return true;
  const fields = region.querySelectorAll<HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement>(
    'input, select, textarea',
  );
  return [...fields].some(isFilledIn);
}

export function isFilledIn(field: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement): boolean {
  if (field instanceof HTMLSelectElement) {
    const options = [...field.options];
    const initial = options.some(({ defaultSelected }) => defaultSelected);
    return options.some((each, at) => each.selected !== (initial ? each.defaultSelected : at === 0));
  }
  if (field instanceof HTMLInputElement && (field.type === 'checkbox' || field.type === 'radio'))
    return field.checked !== field.defaultChecked;
  return field.value !== field.defaultValue;
}
