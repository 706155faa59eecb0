// Outlines of land and borders, as the build writes them (packages/setup/outlines.ts), and how they
// are drawn.

import { project, scaleOf, type Spot, type View } from './projection.ts';

/** Degrees times 100, each number after the first two as the difference to the one before. */
interface Outlines {
  arcs: number[][];
  /** Numbers of arcs; `~n` is n backwards. */
  land: number[][];
  borders: number[];
}

interface Line {
  /** x and y in turn. */
  places: Float64Array;
  west: number;
  east: number;
  north: number;
  south: number;
}

export interface WorldOutlines {
  land: Line[];
  borders: Line[];
}

/** Rejects when they can't be loaded. */
export async function loadOutlines(address: string): Promise<WorldOutlines> {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  const { arcs, land, borders } = (await answer.json()) as Outlines;
  const spots = arcs.map(decoded);
  const ring = (numbers: number[]): Spot[] =>
    numbers.flatMap((number) => (number < 0 ? backwards(spots[~number] ?? []) : (spots[number] ?? [])));
  return {
    land: land.map((numbers) => lineOf(ring(numbers))),
    borders: borders.map((number) => lineOf(spots[number] ?? [])),
  };
}

function backwards(spots: readonly Spot[]): Spot[] {
  return spots.flatMap((_, at) => spots[spots.length - 1 - at] ?? []);
}

function decoded(arc: readonly number[]): Spot[] {
  const spots: Spot[] = [];
  let [lon, lat] = [0, 0];
  for (let at = 0; at + 1 < arc.length; at += 2) {
    lon += arc[at] ?? 0;
    lat += arc[at + 1] ?? 0;
    spots.push(project(lat / 100, lon / 100));
  }
  return spots;
}

function lineOf(spots: readonly Spot[]): Line {
  const line = { places: new Float64Array(spots.length * 2), west: 1, east: 0, north: 1, south: 0 };
  for (const [at, { x, y }] of spots.entries()) {
    line.places.set([x, y], at * 2);
    line.west = Math.min(line.west, x);
    line.east = Math.max(line.east, x);
    line.north = Math.min(line.north, y);
    line.south = Math.max(line.south, y);
  }
  return line;
}

/** Adds those that can be seen to the path. */
export function trace(context: CanvasRenderingContext2D, lines: readonly Line[], view: View, isClosed: boolean): void {
  const scale = scaleOf(view.zoom);
  const { width, height } = context.canvas.getBoundingClientRect();
  const [halfX, halfY] = [width / scale / 2, height / scale / 2];
  for (const { places, west, east, north, south } of lines) {
    const isOutside = east < view.x - halfX || west > view.x + halfX;
    if (isOutside || south < view.y - halfY || north > view.y + halfY) continue;
    for (let at = 0; at < places.length; at += 2) {
      const x = ((places[at] ?? 0) - view.x) * scale + width / 2;
      const y = ((places[at + 1] ?? 0) - view.y) * scale + height / 2;
      if (at === 0) context.moveTo(x, y);
      else context.lineTo(x, y);
    }
    if (isClosed) context.closePath();
  }
}
