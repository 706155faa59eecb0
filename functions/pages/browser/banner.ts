// The line that says what the page itself cannot: that the connection is lost, or that one is signed out. It is always
// there, empty: what appears together with its place is not read aloud.

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
