// The line that says what the page itself cannot: that the connection is lost, or that one is signed out.

function banner(): HTMLElement | null {
  return document.getElementById('live-banner');
}

export function showBanner(text: string): void {
  const line = banner();
  if (line === null) return;
  if (line.textContent !== text) line.textContent = text;
  line.hidden = false;
}

export function hideBanner(): void {
  const line = banner();
  if (line !== null) line.hidden = true;
}

export function showSignedOut(): void {
  const line = banner();
  if (line === null) return;
  const link = document.createElement('a');
  link.href = `/sign-in?return_to=${encodeURIComponent(location.pathname + location.search)}`;
  link.textContent = 'Sign in again';
  line.replaceChildren('You are signed out, so nothing here is up to date any more. ', link, '.');
  line.hidden = false;
  for (const element of document.querySelectorAll('[data-live]')) element.removeAttribute('data-live');
}
