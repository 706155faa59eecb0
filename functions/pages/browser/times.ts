// Times that go on by themselves: `data-left` counts down to nothing, `data-away` says how long ago or how soon. Both are
// seconds as the server counted them, so that the clock of the device does not matter.

const shownAt = new WeakMap<Element, number>();
const UNITS: [unit: string, seconds: number][] = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
];

export function startTimes(): void {
  tick();
  setInterval(tick, 1000);
}

/** Takes new elements in, too. */
export function tick(): void {
  for (const each of document.querySelectorAll<HTMLElement>('[data-left]')) countDown(each);
  for (const each of document.querySelectorAll<HTMLElement>('[data-away]')) {
    const text = distance(Number(each.dataset['away']) - passed(each));
    if (each.textContent !== text) each.textContent = text;
  }
}

function passed(element: Element): number {
  const now = performance.now();
  const since = shownAt.get(element) ?? now;
  shownAt.set(element, since);
  return (now - since) / 1000;
}

function countDown(element: HTMLElement): void {
  const left = Math.ceil(Number(element.dataset['left']) - passed(element));
  element.textContent = left <= 0 ? (element.dataset['over'] ?? '') : `${duration(left)} left`;
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
