// Text on each of its grounds can be read, in both schemes: contrast as WCAG 2.2 counts it.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const CSS = readFileSync('functions/pages/style/colors.css', 'utf8');
const [LIGHT = '', DARK = ''] = CSS.split('@media (prefers-color-scheme: dark)');

const colorsOf = (css: string): Record<string, string> =>
  Object.fromEntries([...css.matchAll(/--([\w-]+):\s*(#[\da-f]{6})/g)].map(([, name = '', hex = '']) => [name, hex]));

function luminance(hex: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one: string, other: string): number {
  const [high = 0, low = 0] = [luminance(one), luminance(other)].toSorted((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}

const TEXT: [text: string, grounds: string[]][] = [
  ['text', ['back', 'card', 'raised', 'tint']],
  ['fine', ['back', 'card', 'raised']],
  ['strong', ['back', 'card', 'raised', 'tint']],
  ['strong-hover', ['back', 'card', 'raised']],
  ['on-strong', ['strong', 'strong-hover']],
  ['ok', ['ok-back', 'card']],
  ['note', ['note-back', 'card']],
  ['warning', ['warning-back', 'card']],
  ['critical', ['critical-back', 'card', 'raised', 'back']],
  ['card', ['critical']],
  ['on-top', ['top']],
  ['on-top-fine', ['top']],
];
/** Edges of fields, and what shows where one is. */
const EDGES: [edge: string, grounds: string[]][] = [
  ['edge', ['card', 'raised']],
  ['strong', ['card', 'back']],
];

describe.each([
  ['light', colorsOf(LIGHT)],
  ['dark', colorsOf(DARK)],
])('the colors of the scheme %s', (_, colors) => {
  const pairs = (of: typeof TEXT) => of.flatMap(([one, grounds]) => grounds.map((ground) => [one, ground] as const));

  it.each(pairs(TEXT))('%s on %s has a contrast of 4.5 at least', (text, ground) => {
    expect(contrast(colors[text] ?? '', colors[ground] ?? '')).toBeGreaterThanOrEqual(4.5);
  });

  it.each(pairs(EDGES))('the edge %s on %s has one of 3 at least', (edge, ground) => {
    expect(contrast(colors[edge] ?? '', colors[ground] ?? '')).toBeGreaterThanOrEqual(3);
  });

  it('are the same in number as those of the other', () => {
    expect(Object.keys(colors).toSorted()).toEqual(Object.keys(colorsOf(LIGHT)).toSorted());
    expect(Object.keys(colors).length).toBeGreaterThan(20);
  });
});
