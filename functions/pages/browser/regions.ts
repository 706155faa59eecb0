// Takes the live elements of a new page into the one that is shown, by their ids. What somebody is typing stays, and so do
// the focus and what is unfolded.

const REGIONS = '[data-live][id], [data-refresh][id]';

export function replaceRegions(text: string): void {
  const next = new DOMParser().parseFromString(text, 'text/html');
  document.title = next.title;
  for (const region of document.querySelectorAll<HTMLElement>(REGIONS)) {
    const fresh = next.getElementById(region.id);
    if (fresh === null || fresh.outerHTML === region.outerHTML || isBeingFilledIn(region)) continue;
    const focused =
      document.activeElement !== null && region.contains(document.activeElement) ? document.activeElement.id : '';
    const open = [...region.querySelectorAll('details[open][id]')].map(({ id }) => id);
    region.replaceWith(fresh);
    for (const id of open) document.getElementById(id)?.setAttribute('open', '');
    if (focused !== '') document.getElementById(focused)?.focus({ preventScroll: true });
  }
}

function isBeingFilledIn(region: Element): boolean {
  const inputs = [...region.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>('input, textarea')];
  return (
    inputs.some((input) =>
      input.type === 'checkbox' || input.type === 'radio'
        ? (input as HTMLInputElement).checked !== (input as HTMLInputElement).defaultChecked
        : input.value !== input.defaultValue,
    ) ||
    (document.activeElement?.matches('input, select, textarea') === true && region.contains(document.activeElement))
  );
}
