import { describe, expect, it } from 'vitest';
import { capitalised, ended, withoutDisguise } from '../text.ts';

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

describe('text without disguise', () => {
  it.each([
    '\0',
    '\u001B',
    '\u009B',
    '\u202A',
    '\u202E',
    '\u2066',
    '\u2069',
    '\u00AD',
    '\u061C',
    '\u200B',
    '\u200E',
    '\u200F',
    '\u2060',
    '\uFEFF',
    '\uD800',
  ])('shows that there is %j', (character) => {
    expect(withoutDisguise(`ad${character}min`)).toBe('ad\uFFFDmin');
  });

  it.each(['two\tlines\r\n', 'نمی\u200Cخواهم', '👩\u200D🚒', 'שלום', 'naïve – “ok”'])('leaves %j', (text) => {
    expect(withoutDisguise(text)).toBe(text);
  });
});
