// Narrows a long list of boxes to tick: `data-filter` is the id of what holds their labels. What is ticked stays in sight.

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
