// The script of all pages. Each works without it; with it they stay up to date, count and copy.

import { lookAgain, startLive } from './live.ts';
import { startTimes } from './times.ts';

/** Shows them, also those that come later. */
export function startCopying(): void {
  document.documentElement.classList.add('scripted');
  document.addEventListener('click', (event) => {
    const button = (event.target as Element).closest<HTMLButtonElement>('[data-copy]');
    const source = document.getElementById(button?.dataset['copy'] ?? '');
    if (button !== null && source !== null) void copy(source).then((done) => say(button, done));
  });
}

async function copy(source: HTMLElement): Promise<boolean> {
  try {
    // In the types it is always there; in a page without TLS it is not.
    await navigator.clipboard.writeText(source.textContent ?? '');
    return true;
  } catch {
    getSelection()?.selectAllChildren(source);
    return document.execCommand('copy');
  }
}

function say(button: HTMLButtonElement, done: boolean): void {
  button.dataset['label'] ??= button.textContent ?? '';
  button.textContent = done ? 'Copied' : 'Selected: copy it';
  setTimeout(() => {
    button.textContent = button.dataset['label'] ?? '';
  }, 3000);
}

/**
 * Narrows a long list of boxes to tick: `data-filter` is the id of what holds their labels. What is ticked stays in sight.
 */
export function startFilters(): void {
  document.addEventListener('input', ({ target }) => {
    const field = fieldOf(target);
    if (field !== undefined) narrow(field);
  });
  // Enter means the list here, not the form around it.
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && fieldOf(event.target) !== undefined) event.preventDefault();
  });
}

function fieldOf(target: EventTarget | null): HTMLInputElement | undefined {
  return target instanceof HTMLInputElement && target.dataset['filter'] !== undefined ? target : undefined;
}

function narrow({ value, dataset }: HTMLInputElement): void {
  const wanted = value.trim().toLowerCase();
  for (const label of document.querySelectorAll<HTMLElement>(`#${dataset['filter']} label`)) {
    const isTicked = label.querySelector('input')?.checked === true;
    label.hidden = !isTicked && !label.textContent.toLowerCase().includes(wanted);
  }
}

/** What is sent may answer with a file, and then the page stays. */
const AGAIN_MS = 20_000;

/** A form is sent once: its button says so while the server works. */
export function startForms(): void {
  document.addEventListener('submit', ({ target, submitter }) => {
    const form = target as HTMLFormElement;
    if (form.getAttribute('method')?.toLowerCase() !== 'post' || submitter === null) return;
    // Only now: a button that is disabled before does not send its own value.
    setTimeout(() => {
      submitter.setAttribute('aria-busy', 'true');
      (submitter as HTMLButtonElement).disabled = true;
    });
    setTimeout(release, AGAIN_MS);
  });
  // The page comes back out of the memory of the browser as it was left.
  addEventListener('pageshow', release);
}

function release(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>('button[aria-busy]')) {
    button.removeAttribute('aria-busy');
    button.disabled = false;
  }
}

startCopying();
startFilters();
startForms();
startLive();
startTimes(lookAgain);
