// Reduces outlines of land and borders (Natural Earth, as TopoJSON of the package world-atlas) to
// what the map draws: places to a hundredth of a degree, and no more of them than can be seen.

import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

type Place = readonly [lon: number, lat: number];

interface Topology {
  arcs: [number, number][][];
  transform: { scale: [number, number]; translate: [number, number] };
  objects: Record<'land' | 'countries', { geometries: Geometry[] }>;
}

interface Geometry {
  type: string;
  arcs?: unknown[];
}

/** Degrees by which a line may be off. */
const TOLERANCE = 0.03;
/** Islands that are smaller, in degrees, are left out. */
const SMALLEST = 0.15;

/** `home` is the root of the repository. The format is described at its reader. */
export function mapOutlines(home: string): string {
  const file = createRequire(join(home, 'package.json')).resolve('world-atlas/countries-50m.json');
  return JSON.stringify(reducedOutlines(JSON.parse(readFileSync(file, 'utf8')) as Topology));
}

/** Exported for its test. */
export function reducedOutlines({ arcs, transform, objects }: Topology) {
  const lines = arcs.map((arc) => simplified(placesOf(arc, transform)));
  const rings = ringsOf(objects.land.geometries).filter((ring) => isLarge(ring, lines));
  const coast = new Set(rings.flat().map(indexOf));
  const isLand = new Set(ringsOf(objects.land.geometries).flat().map(indexOf));
  const borders = [...new Set(ringsOf(objects.countries.geometries).flat().map(indexOf))].filter(
    (index) => !isLand.has(index),
  );
  const used = [...coast, ...borders];
  const numbers = new Map(used.map((index, at) => [index, at]));
  const numberOf = (index: number): number => numbers.get(index) ?? 0;
  return {
    arcs: used.map((index) => differences(lines[index] ?? [])),
    land: rings.map((ring) => ring.map((arc) => (arc < 0 ? ~numberOf(~arc) : numberOf(arc)))),
    borders: borders.map(numberOf),
  };
}

function indexOf(arc: number): number {
  return arc < 0 ? ~arc : arc;
}

function placesOf(arc: readonly [number, number][], { scale, translate }: Topology['transform']): Place[] {
  let [x, y] = [0, 0];
  return arc.map(([byX, byY]) => {
    x += byX;
    y += byY;
    return [x * scale[0] + translate[0], y * scale[1] + translate[1]];
  });
}

/** Lists of arcs, however deep polygons nest them. */
function ringsOf(geometries: readonly Geometry[]): number[][] {
  const rings = (nested: readonly unknown[]): number[][] =>
    nested.every((each) => typeof each === 'number')
      ? [nested as number[]]
      : nested.flatMap((each) => rings(each as unknown[]));
  return geometries.flatMap(({ arcs = [] }) => rings(arcs)).filter(({ length }) => length > 0);
}

function isLarge(ring: readonly number[], lines: readonly Place[][]): boolean {
  const places = ring.flatMap((arc) => lines[indexOf(arc)] ?? []);
  const span = (of: number[]): number =>
    of.reduce((one, other) => Math.max(one, other)) - of.reduce((one, other) => Math.min(one, other));
  return Math.max(span(places.map(([lon]) => lon)), span(places.map(([, lat]) => lat))) >= SMALLEST;
}

/** Douglas and Peucker: places stay that lie further off the line between those that stay. */
function simplified(places: readonly Place[]): Place[] {
  const last = places.length - 1;
  const stays = new Set([0, last]);
  const open: [from: number, to: number][] = [[0, last]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [from, to] = next;
    let [farthest, distance] = [-1, TOLERANCE];
    for (let at = from + 1; at < to; at += 1) {
      const off = distanceTo(places[at], places[from], places[to]);
      if (off > distance) [farthest, distance] = [at, off];
    }
    if (farthest < 0) continue;
    stays.add(farthest);
    open.push([from, farthest], [farthest, to]);
  }
  return places.filter((_, at) => stays.has(at));
}

function distanceTo([x, y]: Place = [0, 0], [ax, ay]: Place = [0, 0], [bx, by]: Place = [0, 0]): number {
  const [dx, dy] = [bx - ax, by - ay];
  const length = dx * dx + dy * dy;
  const along = length === 0 ? 0 : Math.min(1, Math.max(0, ((x - ax) * dx + (y - ay) * dy) / length));
  return Math.hypot(x - ax - along * dx, y - ay - along * dy);
}

/** In hundredths of a degree, each as the difference to the one before. */
function differences(places: readonly Place[]): number[] {
  let [lastX, lastY] = [0, 0];
  return places.flatMap(([lon, lat]) => {
    const [x, y] = [Math.round(lon * 100), Math.round(lat * 100)];
    const step = [x - lastX, y - lastY];
    [lastX, lastY] = [x, y];
    return step;
  });
}
