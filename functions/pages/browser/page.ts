// The script of all pages: live updates, countdowns, copy buttons, filters and forms. Pages also
// work without it.

import { refresh, startLive } from './live.ts';
import { startTimes } from './times.ts';

/** Enables the copy buttons, including those that are added later. */
export function startCopying(): void {
  document.documentElement.classList.add('scripted');
  document.addEventListener('click', (event) => {
    const button = (event.target as Element).closest<HTMLButtonElement>('[data-copy]');
    const source = document.getElementById(button?.dataset['copy'] ?? '');
    if (button !== null && source !== null) void copy(source).then((done) => showResult(button, done));
  });
}

async function copy(source: HTMLElement): Promise<boolean> {
  try {
    // `navigator.clipboard` is undefined on a page without TLS, despite its type.
    await navigator.clipboard.writeText(source.textContent ?? '');
    return true;
  } catch {
    getSelection()?.selectAllChildren(source);
    return document.execCommand('copy');
  }
}

function showResult(button: HTMLButtonElement, done: boolean): void {
  button.dataset['label'] ??= button.textContent ?? '';
  button.textContent = done ? 'Copied' : 'Selected. Copy it now';
  setTimeout(() => {
    button.textContent = button.dataset['label'] ?? '';
  }, 3000);
}

/**
 * Filters a long list of checkboxes. `data-filter` is the id of their container. Checked ones stay
 * visible.
 */
export function startFilters(): void {
  document.addEventListener('input', ({ target }) => {
    const field = fieldOf(target);
    if (field !== undefined) narrow(field);
  });
  // Enter in the filter must not submit the surrounding form.
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
    const isChecked = label.querySelector('input')?.checked === true;
    label.hidden = !isChecked && !label.textContent.toLowerCase().includes(wanted);
  }
}

/**
 * Buttons are enabled again after this time, because the response may be a file and then the page
 * stays.
 */
const RELEASE_MS = 20_000;

/** Disables the button of a submitted form, so that it is sent once. */
export function startForms(): void {
  document.addEventListener('submit', ({ target, submitter }) => {
    const form = target as HTMLFormElement;
    if (form.getAttribute('method')?.toLowerCase() !== 'post' || submitter === null) return;
    // Deferred: a button that is already disabled would not send its value.
    setTimeout(() => {
      submitter.setAttribute('aria-busy', 'true');
      (submitter as HTMLButtonElement).disabled = true;
    });
    setTimeout(release, RELEASE_MS);
  });
  // The browser may restore the page from its cache with disabled buttons.
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
startTimes(refresh);
