// The arithmetic of the map: Web Mercator, the part of the world that is shown, and round steps.

/** The world is 1 wide and 1 high: 0 is 180° west and 85° north. */
export interface Spot {
  x: number;
  y: number;
}

export interface View {
  /** The middle. */
  x: number;
  y: number;
  /** 0: the world is 256 pixels wide; each step doubles it. */
  zoom: number;
}

export const [MIN_ZOOM, MAX_ZOOM] = [0, 19];
const TILE = 256;
const MAX_LATITUDE = 85.0511;
const EQUATOR_METERS = 40_075_016.7;

export function project(lat: number, lon: number): Spot {
  const sine = Math.sin((clamp(lat, -MAX_LATITUDE, MAX_LATITUDE) * Math.PI) / 180);
  return { x: (lon + 180) / 360, y: 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI) };
}

export function unproject({ x, y }: Spot): { lat: number; lon: number } {
  return { lat: (Math.atan(Math.sinh(Math.PI * (1 - 2 * y))) * 180) / Math.PI, lon: x * 360 - 180 };
}

/** Pixels per width of the world. */
export function scaleOf(zoom: number): number {
  return TILE * 2 ** zoom;
}

export function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

export function moved({ x, y, zoom }: View, byX: number, byY: number): View {
  const scale = scaleOf(zoom);
  return { x: clamp(x + byX / scale, 0, 1), y: clamp(y + byY / scale, 0, 1), zoom };
}

/** What is at that distance from the middle, in pixels, stays there. */
export function zoomed(view: View, by: number, fromX = 0, fromY = 0): View {
  const zoom = clamp(view.zoom + by, MIN_ZOOM, MAX_ZOOM);
  const [before, after] = [scaleOf(view.zoom), scaleOf(zoom)];
  const shift = (from: number): number => from / before - from / after;
  return { x: clamp(view.x + shift(fromX), 0, 1), y: clamp(view.y + shift(fromY), 0, 1), zoom };
}

/** Shows all of them, but nothing nearer than that zoom; without any, the world. */
export function fitted(spots: readonly Spot[], width: number, height: number, nearest = 13): View {
  if (spots.length === 0) return { x: 0.5, y: 0.42, zoom: Math.max(MIN_ZOOM, Math.log2(width / TILE)) };
  let [west, north, east, south] = [1, 1, 0, 0];
  for (const { x, y } of spots) {
    west = Math.min(west, x);
    east = Math.max(east, x);
    north = Math.min(north, y);
    south = Math.max(south, y);
  }
  const zoomFor = (length: number, pixels: number): number =>
    length === 0 ? nearest : Math.log2((pixels * 0.75) / length / TILE);
  const zoom = clamp(
    Math.min(zoomFor(east - west, width), zoomFor(south - north, height), nearest),
    MIN_ZOOM,
    MAX_ZOOM,
  );
  return { x: (west + east) / 2, y: (north + south) / 2, zoom };
}

/** Degrees between two lines of the grid. */
export function gridStep(zoom: number): number {
  const wanted = (360 * 120) / scaleOf(zoom);
  const steps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30];
  return steps.find((step) => step >= wanted) ?? 60;
}

/** A round length of at most that many pixels at that latitude. */
export function scaleBar(zoom: number, lat: number, pixels: number): { meters: number; pixels: number } {
  const perPixel = (EQUATOR_METERS * Math.cos((lat * Math.PI) / 180)) / scaleOf(zoom);
  const power = 10 ** Math.floor(Math.log10(perPixel * pixels));
  const meters = [5, 2, 1].map((times) => times * power).find((each) => each <= perPixel * pixels) ?? power;
  return { meters, pixels: meters / perPixel };
}
