// Draws the map: outlines or tiles, a grid, trails, and a mark with a name for each device.

import { steer } from './gestures.ts';
import { trace, type WorldOutlines } from './outlines.ts';
import { fitted, gridStep, project, scaleBar, scaleOf, type Spot, unproject, type View, zoomed } from './projection.ts';
import { TileLayer } from './tiles.ts';

export interface Mark extends Spot {
  name: string;
  color: string;
}

export interface Trail {
  color: string;
  spots: readonly Spot[];
}

const MARK_PIXELS = 7;
/** Nearer by, there would be nothing but marks to see. */
const [NEAREST_OUTLINES, NEAREST_TILES] = [11, 14];
const NAME_HEIGHT = 14;

export class MapCanvas {
  outlines: WorldOutlines | undefined;
  readonly #canvas: HTMLCanvasElement;
  readonly #tiles: TileLayer | undefined;
  #view: View = { x: 0.5, y: 0.42, zoom: 1 };
  #marks: readonly Mark[] = [];
  #trails: readonly Trail[] = [];
  #frame = 0;

  constructor(canvas: HTMLCanvasElement, tileUrl: string | undefined) {
    this.#canvas = canvas;
    this.#tiles = tileUrl === undefined ? undefined : new TileLayer(tileUrl, () => this.draw());
    const show = (view: View): void => {
      this.#view = view;
      this.draw();
    };
    steer({ canvas, view: () => this.#view, show, fit: () => this.fit() });
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw());
  }

  show(marks: readonly Mark[], trails: readonly Trail[] = []): void {
    this.#marks = marks;
    this.#trails = trails;
    this.draw();
  }

  /** All marks, or these places. */
  fit(spots: readonly Spot[] = this.#marks): void {
    const { width, height } = this.#canvas.getBoundingClientRect();
    const nearest = this.#tiles === undefined ? NEAREST_OUTLINES : NEAREST_TILES;
    this.#view = fitted(spots, Math.max(1, width), Math.max(1, height), nearest);
    this.draw();
  }

  zoom(by: number): void {
    this.#view = zoomed(this.#view, by);
    this.draw();
  }

  /** Once for all that changes in a moment. */
  draw(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#draw());
  }

  #draw(): void {
    const canvas = this.#canvas;
    const { width, height } = canvas.getBoundingClientRect();
    const context = canvas.getContext('2d');
    if (context === null || width === 0) return;
    const ratio = devicePixelRatio;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const color = colorsOf(canvas);
    context.fillStyle = color('--tint');
    context.fillRect(0, 0, width, height);
    if (this.outlines !== undefined) this.#drawOutlines(context, this.outlines, color);
    this.#tiles?.draw(context, this.#view, width, height);
    this.#drawGrid(context, width, height, color);
    for (const { color: stroke, spots } of this.#trails) this.#drawTrail(context, spots, stroke);
    this.#drawMarks(context, color);
  }

  #at(context: CanvasRenderingContext2D, { x, y }: Spot): [number, number] {
    const { width, height } = context.canvas.getBoundingClientRect();
    const scale = scaleOf(this.#view.zoom);
    return [(x - this.#view.x) * scale + width / 2, (y - this.#view.y) * scale + height / 2];
  }

  #drawOutlines(context: CanvasRenderingContext2D, { land, borders }: WorldOutlines, color: Colors): void {
    context.beginPath();
    trace(context, land, this.#view, true);
    context.fillStyle = color('--card');
    context.fill('evenodd');
    context.strokeStyle = color('--edge');
    context.lineWidth = 1;
    context.stroke();
    context.beginPath();
    trace(context, borders, this.#view, false);
    context.setLineDash([4, 3]);
    context.stroke();
    context.setLineDash([]);
  }

  #drawGrid(context: CanvasRenderingContext2D, width: number, height: number, color: Colors): void {
    const scale = scaleOf(this.#view.zoom);
    const step = gridStep(this.#view.zoom);
    const corner = (x: number, y: number) =>
      unproject({ x: this.#view.x + (x - width / 2) / scale, y: this.#view.y + (y - height / 2) / scale });
    const [from, to] = [corner(0, height), corner(width, 0)];
    const lines = (low: number, high: number): number[] =>
      Array.from({ length: Math.floor(high / step) - Math.ceil(low / step) + 1 }, (_, each) =>
        Number(((Math.ceil(low / step) + each) * step).toFixed(3)),
      );
    context.strokeStyle = color('--line');
    context.fillStyle = color('--fine');
    context.lineWidth = 0.5;
    context.font = '11px system-ui, sans-serif';
    context.beginPath();
    for (const lon of lines(Math.max(-180, from.lon), Math.min(180, to.lon))) {
      const [x] = this.#at(context, project(0, lon));
      context.moveTo(x, 0);
      context.lineTo(x, height);
      context.fillText(`${Math.abs(lon)}°${lon < 0 ? 'W' : 'E'}`, x + 3, 12);
    }
    for (const lat of lines(Math.max(-85, from.lat), Math.min(85, to.lat))) {
      const [, y] = this.#at(context, project(lat, 0));
      context.moveTo(0, y);
      context.lineTo(width, y);
      context.fillText(`${Math.abs(lat)}°${lat < 0 ? 'S' : 'N'}`, 3, y - 3);
    }
    context.stroke();
    this.#drawScale(context, height, unproject(this.#view).lat, color);
  }

  #drawScale(context: CanvasRenderingContext2D, height: number, lat: number, color: Colors): void {
    const { meters, pixels } = scaleBar(this.#view.zoom, lat, 120);
    context.fillStyle = color('--text');
    context.fillRect(12, height - 14, pixels, 2);
    context.fillText(meters >= 1_000 ? `${meters / 1_000} km` : `${meters} m`, 12, height - 18);
  }

  #drawTrail(context: CanvasRenderingContext2D, spots: readonly Spot[], stroke: string): void {
    context.beginPath();
    for (const [at, spot] of spots.entries()) {
      const place = this.#at(context, spot);
      if (at === 0) context.moveTo(...place);
      else context.lineTo(...place);
    }
    context.strokeStyle = stroke;
    context.lineWidth = 2;
    context.stroke();
  }

  #drawMarks(context: CanvasRenderingContext2D, color: Colors): void {
    context.font = '600 12px system-ui, sans-serif';
    context.lineJoin = 'round';
    for (const mark of this.#marks) {
      const [x, y] = this.#at(context, mark);
      context.beginPath();
      context.arc(x, y, MARK_PIXELS, 0, 2 * Math.PI);
      context.fillStyle = mark.color;
      context.fill();
      context.strokeStyle = color('--text');
      context.lineWidth = 1.5;
      context.stroke();
    }
    context.strokeStyle = color('--card');
    context.fillStyle = color('--text');
    context.lineWidth = 3;
    const taken: Label[] = [];
    for (const mark of this.#marks) {
      const [x, y] = this.#at(context, mark);
      const width = context.measureText(mark.name).width;
      // A name that would lie on another one is left out.
      if (taken.some((each) => isOver(each, { x, y, width }))) continue;
      taken.push({ x, y, width });
      context.strokeText(mark.name, x + MARK_PIXELS + 3, y + 4);
      context.fillText(mark.name, x + MARK_PIXELS + 3, y + 4);
    }
  }
}

interface Label {
  x: number;
  y: number;
  width: number;
}

function isOver(one: Label, other: Label): boolean {
  const isBeside = one.x + one.width < other.x || other.x + other.width < one.x;
  return !isBeside && Math.abs(one.y - other.y) < NAME_HEIGHT;
}

type Colors = (variable: string) => string;

/** Light or dark, as the page is. */
function colorsOf(element: HTMLElement): Colors {
  const style = getComputedStyle(element);
  return (variable) => style.getPropertyValue(variable);
}
