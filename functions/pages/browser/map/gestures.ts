// Moves the map by mouse, touch, wheel and keyboard.

import { moved, type View, zoomed } from './projection.ts';

export interface Steered {
  canvas: HTMLCanvasElement;
  view: () => View;
  show: (view: View) => void;
  /** Shows everything that there is. */
  fit: () => void;
}

const KEY_PIXELS = 60;
const ARROWS: Readonly<Record<string, readonly [x: number, y: number]>> = {
  ArrowLeft: [-KEY_PIXELS, 0],
  ArrowRight: [KEY_PIXELS, 0],
  ArrowUp: [0, -KEY_PIXELS],
  ArrowDown: [0, KEY_PIXELS],
};
const ZOOMS: Readonly<Record<string, number>> = { '+': 1, '=': 1, '-': -1, _: -1 };

export function steer({ canvas, view, show, fit }: Steered): void {
  const pointers = new Map<number, { x: number; y: number }>();
  const fromMiddle = ({ clientX, clientY }: MouseEvent): [number, number] => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    return [clientX - left - width / 2, clientY - top - height / 2];
  };

  canvas.addEventListener('pointerdown', (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
  canvas.addEventListener('pointermove', (event) => {
    const before = pointers.get(event.pointerId);
    if (before === undefined) return;
    const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    const now = { x: event.clientX, y: event.clientY };
    pointers.set(event.pointerId, now);
    if (other === undefined) return show(moved(view(), before.x - now.x, before.y - now.y));
    // Two fingers: the map follows their middle and their distance.
    const distance = (place: { x: number; y: number }): number => Math.hypot(place.x - other.x, place.y - other.y);
    const turned = moved(view(), (before.x - now.x) / 2, (before.y - now.y) / 2);
    show(zoomed(turned, Math.log2(Math.max(1, distance(now)) / Math.max(1, distance(before)))));
  });
  for (const kind of ['pointerup', 'pointercancel'] as const)
    canvas.addEventListener(kind, ({ pointerId }) => pointers.delete(pointerId));
  canvas.addEventListener('dblclick', (event) => show(zoomed(view(), 1, ...fromMiddle(event))));
  canvas.addEventListener(
    'wheel',
    (event) => {
      // The page scrolls, unless somebody works with the map.
      if (document.activeElement !== canvas && !event.ctrlKey) return;
      event.preventDefault();
      show(zoomed(view(), -Math.sign(event.deltaY) * 0.5, ...fromMiddle(event)));
    },
    { passive: false },
  );
  canvas.addEventListener('keydown', (event) => {
    const arrow = ARROWS[event.key];
    const zoom = ZOOMS[event.key];
    if (arrow === undefined && zoom === undefined && event.key !== '0') return;
    event.preventDefault();
    if (arrow !== undefined) show(moved(view(), ...arrow));
    else if (zoom === undefined) fit();
    else show(zoomed(view(), zoom));
  });
}
