import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { mapOutlines, reducedOutlines } from '../outlines.ts';

const transform = { scale: [0.01, 0.01] as [number, number], translate: [0, 0] as [number, number] };

describe('the outlines of the map', () => {
  it('keep corners and borders, and leave out places on a line and small islands', () => {
    const arcs: [number, number][][] = [
      // A square whose upper side has a place that nobody would miss.
      [
        [0, 0],
        [500, 1],
        [500, -1],
        [0, -1000],
        [-1000, 0],
        [0, 1000],
      ],
      [
        [5000, 5000],
        [5, 0],
        [0, -5],
        [-5, 5],
      ],
      [
        [0, 0],
        [100, -100],
      ],
    ];
    const objects = {
      land: { geometries: [{ type: 'MultiPolygon', arcs: [[[0]], [[1]]] }] },
      countries: {
        geometries: [{ type: 'Polygon', arcs: [[0]] }, { type: 'Polygon', arcs: [[~2]] }, { type: 'Point' }],
      },
    };
    expect(reducedOutlines({ arcs, transform, objects })).toEqual({
      arcs: [
        [0, 0, 1000, 0, 0, -1000, -1000, 0, 0, 1000],
        [0, 0, 100, -100],
      ],
      land: [[0]],
      borders: [1],
    });
  });

  it('are small enough to be a part of every installation', () => {
    const text = mapOutlines(resolve(import.meta.dirname, '../../..'));
    expect(text.length).toBeLessThan(300_000);
    const { land, borders, arcs } = JSON.parse(text) as Record<'land' | 'borders' | 'arcs', unknown[]>;
    expect(Math.min(land?.length ?? 0, borders?.length ?? 0, arcs?.length ?? 0)).toBeGreaterThan(100);
  });
});
