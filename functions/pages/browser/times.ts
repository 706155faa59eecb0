// Updates relative times: `data-left` counts down to zero, `data-away` is the distance to now. Both
// are seconds counted by the server, so that the device's clock does not matter.

const shownAt = new WeakMap<Element, number>();
const UNITS: [unit: string, seconds: number][] = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
];
const SLEPT_MS = 30_000;

/**
 * `onSleep` runs after the device slept or its clock was set: then only the server knows the time.
 */
export function startTimes(onSleep: () => void): void {
  tick();
  let drift = Date.now() - performance.now();
  setInterval(() => {
    const now = Date.now() - performance.now();
    if (Math.abs(now - drift) > SLEPT_MS) onSleep();
    drift = now;
    tick();
  }, 1000);
}

/** Updates all times on the page, including new elements. */
export function tick(): void {
  for (const each of document.querySelectorAll<HTMLElement>('[data-left]')) countDown(each);
  for (const each of document.querySelectorAll<HTMLElement>('[data-away]'))
    write(each, distance(Number(each.dataset['away']) - passed(each)));
}

/** Takes over the server's new counts. The elements stay. */
export function setTimes(shown: Element, fresh: Element): void {
  for (const name of ['left', 'away']) {
    const next = fresh.querySelectorAll<HTMLElement>(`[data-${name}]`);
    const each = shown.querySelectorAll<HTMLElement>(`[data-${name}]`);
    if (each.length !== next.length) continue;
    each.forEach((element, at) => {
      element.dataset[name] = next[at]?.dataset[name] ?? '';
      shownAt.delete(element);
    });
  }
}

function passed(element: Element): number {
  const now = performance.now();
  const since = shownAt.get(element) ?? now;
  shownAt.set(element, since);
  return (now - since) / 1000;
}

/** Writes only real changes: screen readers announce every write. */
function write(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

function countDown(element: HTMLElement): void {
  const left = Math.ceil(Number(element.dataset['left']) - passed(element));
  write(element, left <= 0 ? (element.dataset['over'] ?? '') : `${duration(left)} left`);
  element.classList.toggle('over', left <= 0);
}

function duration(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, '0')} s`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} days`;
}

function distance(seconds: number): string {
  const size = Math.abs(seconds);
  if (size < 60) return seconds > 0 ? 'in less than a minute' : 'just now';
  const [unit, length] = UNITS.find(([, each]) => size >= each) ?? ['minute', 60];
  const count = Math.floor(size / length);
  const words = `${count} ${unit}${count === 1 ? '' : 's'}`;
  return seconds > 0 ? `in ${words}` : `${words} ago`;
}
