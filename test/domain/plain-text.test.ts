import { describe, expect, it } from 'vitest';
import { capitalised, ended } from '../../shared/domain/plain-text.ts';

describe('a message as a sentence', () => {
  it.each([
    ['the disk is full', 'The disk is full.'],
    ['core: does not answer.', 'Core: does not answer.'],
    ['/srv is full', '/srv is full.'],
    ['cot.example.org answers', 'cot.example.org answers.'],
    ['ok', 'ok.'],
  ])('%j is %j', (message, sentence) => {
    expect(ended(capitalised(message))).toBe(sentence);
  });
});
