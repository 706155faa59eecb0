// Buttons that copy the text of an element: `data-copy` is its id. Without TLS browsers have no clipboard for scripts: then
// the text is selected and copied as by hand, and when that is not allowed either it stays selected.

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
