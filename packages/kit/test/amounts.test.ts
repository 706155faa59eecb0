import { describe, expect, it } from 'vitest';
import { grouped, formatSeconds } from '../format.ts';

describe('a count', () => {
  it.each([
    [7, '7'],
    [1234, '1,234'],
    [1_234_567, '1,234,567'],
    [-1234, '-1,234'],
    [1234.56, '1,234.56'],
    [0.1234567, '0.1234567'],
  ])('%d has its thousands apart: %s', (count, words) => {
    expect(grouped(count)).toBe(words);
  });
});

describe('a time in seconds', () => {
  it.each([
    [1, '1 second'],
    [45, '45 seconds'],
    [90, '1 minute'],
    [3660, '1 hour 1 minute'],
  ])('%d is %s', (seconds, words) => {
    expect(formatSeconds(seconds)).toBe(words);
  });
});
