// A form is sent once: its button says so while the server works.

/** What is sent may answer with a file, and then the page stays. */
const AGAIN_MS = 20_000;

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
