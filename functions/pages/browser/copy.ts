// Buttons that copy the text of an element: `data-copy` is its id.

/** Shows them, also those that come later. */
export function startCopying(): void {
  document.documentElement.classList.add('scripted');
  document.addEventListener('click', (event) => {
    const button = (event.target as Element).closest<HTMLButtonElement>('[data-copy]');
    const text = document.getElementById(button?.dataset['copy'] ?? '')?.textContent;
    if (button === null || text === undefined || text === null) return;
    const label = button.textContent;
    navigator.clipboard.writeText(text).then(
      () => show(button, 'Copied', label),
      () => show(button, 'Not allowed here', label),
    );
  });
}

function show(button: HTMLButtonElement, text: string, label: string | null): void {
  button.textContent = text;
  setTimeout(() => {
    button.textContent = label;
  }, 2000);
}
