// Tiles of a map server, where a setting names one: loaded as they are needed, a bounded number of
// them kept.

import { scaleOf, type View } from './projection.ts';

const TILE = 256;
const MAX_KEPT = 256;
const MAX_TILE_ZOOM = 19;

export class TileLayer {
  readonly #template: string;
  readonly #onLoad: () => void;
  readonly #kept = new Map<string, HTMLImageElement>();

  constructor(template: string, onLoad: () => void) {
    this.#template = template;
    this.#onLoad = onLoad;
  }

  /** Those that are there; the others are drawn once they have come. */
  draw(context: CanvasRenderingContext2D, view: View, width: number, height: number): void {
    const zoom = Math.min(Math.round(view.zoom), MAX_TILE_ZOOM);
    const count = 2 ** zoom;
    const size = scaleOf(view.zoom) / count;
    const [left, top] = [view.x * count * size - width / 2, view.y * count * size - height / 2];
    const last = (edge: number): number => Math.min(count - 1, Math.floor(edge / size));
    for (let x = Math.max(0, Math.floor(left / size)); x <= last(left + width); x += 1)
      for (let y = Math.max(0, Math.floor(top / size)); y <= last(top + height); y += 1) {
        const image = this.#tile(zoom, x, y);
        if (image.complete && image.naturalWidth > 0)
          context.drawImage(image, x * size - left, y * size - top, size + 0.5, size + 0.5);
      }
  }

  #tile(zoom: number, x: number, y: number): HTMLImageElement {
    const key = `${zoom}/${x}/${y}`;
    const known = this.#kept.get(key);
    if (known !== undefined) return known;
    const [oldest] = this.#kept.keys();
    if (this.#kept.size >= MAX_KEPT && oldest !== undefined) this.#kept.delete(oldest);
    const image = new Image(TILE, TILE);
    image.addEventListener('load', this.#onLoad);
    image.src = this.#template.replace('{z}', String(zoom)).replace('{x}', String(x)).replace('{y}', String(y));
    this.#kept.set(key, image);
    return image;
  }
}
