// Holds names, texts of the interface, comments and documents to plain American English.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { files, product, ROOT, textOf } from '../house.ts';
import { declaredNames, type Found, longSentences, textsOf } from './language.ts';

/** Of pages, and of errors, remedies and help, which hold commands. */
const MAX_SENTENCE_WORDS = { page: 20, other: 25 };
const MAX_COMMENT_COLUMNS = 100;
const MAX_DOCS_COLUMNS = 120;

/** The right words are in docs/glossary.md and CONTRIBUTING.md. */
const BANNED_IN_NAMES =
  /^(anew|away|deeds?|doomed|heed|hence|lest|said|told|asked|standings?|things?|wish|wishes|wished|books?|doors?|outlets?|withdraw|withdrawn|withdrawal|whom|whoever|patiently|persistently)$/;
const BANNED_SHAPES =
  /^(MOST|LONGEST|LEAST)_|InWords$|^shown[A-Z]\w*(?<!At|AtMs|In|With)$|^(attempts|several)AtOnce$|^unsafeGuard$/;
/** Names of the API and of stored files, which stay as they are, and English with another meaning. */
const NAMES_OF_DATA = new Set(['door', 'doors', 'DOOR', 'told', 'book_problem']);

const BANNED_IN_TEXTS: readonly RegExp[] = [
  /\b(anew|deeds?|doomed|heed|hence|lest|nobody|somebody|whoever|whom|anybody|wish|wishes|wished|outlets?|standing)\b/i,
  /\b(thrown|put|shut|let) out\b|\block-?outs?\b(?<!lockouts?)|\btak(e|en) back\b|\bfalls? off\b|\bit stands\b|\bfor ever\b/i,
  /\b(is|are|was|were|be) away\b|\bwhat came of it\b|\bcomes? in\b(?! the)/i,
  /^(What|Who|Whoever|Whether)\b[^?]*$/,
  /;(?! (SELECT|ALTER|DELETE|and|in psql))[^;.]*; (?!SELECT|ALTER|DELETE|and)/,
];

const words = (name: string): string[] => name.split(/(?<=[a-z0-9])(?=[A-Z])|_/).map((word) => word.toLowerCase());
const lines = (found: readonly Found[]): string[] => found.map(({ at, text }) => `${at}: ${text}`);

const INTERFACE = product.filter((file) => /^(functions|shared|jobs|packages|scripts)\//.test(file));
const names = files.flatMap(declaredNames);
const interfaceTexts = INTERFACE.flatMap(textsOf);

const DOCS = [
  'README.md',
  'CONTRIBUTING.md',
  'bench/README.md',
  ...readdirSync(join(ROOT, 'docs'), { encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
  ...readdirSync(join(ROOT, 'packages'), { encoding: 'utf8' }).map((name) => `packages/${name}/README.md`),
];

/** Paragraphs without code, each with its line. */
function proseOf(file: string): Found[] {
  let isCode = false;
  return textOf(file)
    .split('\n')
    .flatMap((line, index) => {
      if (line.startsWith('```')) isCode = !isCode;
      const text = line.replaceAll(/`[^`]*`/g, '`').replaceAll(/\]\([^)]*\)/g, ']');
      return isCode || line.startsWith('```') ? [] : [{ at: `${file}:${index + 1}`, text }];
    });
}

describe('names', () => {
  it('are read: more than ten thousand', () => {
    expect(names.length).toBeGreaterThan(10_000);
  });

  it('use the terms of the field', () => {
    const wrong = names.filter(({ text }) => {
      const name = text.replace(/^#/, '');
      return (
        !NAMES_OF_DATA.has(name) && (BANNED_SHAPES.test(name) || words(name).some((word) => BANNED_IN_NAMES.test(word)))
      );
    });
    expect(lines(wrong)).toEqual([]);
  });
});

describe('texts of the interface', () => {
  it('are read: more than three thousand', () => {
    expect(interfaceTexts.length).toBeGreaterThan(3000);
  });

  it.each(BANNED_IN_TEXTS)('have nothing of %s', (banned) => {
    expect(lines(interfaceTexts.filter(({ text }) => banned.test(text)))).toEqual([]);
  });

  it(`have sentences of at most ${MAX_SENTENCE_WORDS.page} words on pages, ${MAX_SENTENCE_WORDS.other} elsewhere`, () => {
    const [onPages, elsewhere] = [true, false].map((isPage) =>
      interfaceTexts.filter(({ at }) => at.startsWith('functions/') === isPage),
    );
    expect(longSentences(onPages ?? [], MAX_SENTENCE_WORDS.page)).toEqual([]);
    expect(longSentences(elsewhere ?? [], MAX_SENTENCE_WORDS.other)).toEqual([]);
  });
});

describe('comments', () => {
  it(`end within ${MAX_COMMENT_COLUMNS} columns`, () => {
    const wide = product.flatMap((file) =>
      textOf(file)
        .split('\n')
        .flatMap((line, index) =>
          /^\s*(\/\/|\/?\*)/.test(line) && line.length > MAX_COMMENT_COLUMNS && !/:\/\/|oxlint-disable/.test(line)
            ? [`${file}:${index + 1}`]
            : [],
        ),
    );
    expect(wide).toEqual([]);
  });

  it('begin each file with a sentence', () => {
    const without = product.filter((file) => !/^(#!.*\n)?(\/\/|\/\*\*?) (\p{Lu}|["/])/u.test(textOf(file)));
    expect(without).toEqual([]);
  });
});

describe('documents', () => {
  it.each(DOCS)('%s has no banned word', (file) => {
    const wrong = proseOf(file).filter(({ text }) => BANNED_IN_TEXTS.slice(0, 3).some((banned) => banned.test(text)));
    expect(lines(wrong)).toEqual([]);
  });

  it.each(DOCS)(`%s has lines of at most ${MAX_DOCS_COLUMNS} columns, tables aside`, (file) => {
    const wide = textOf(file)
      .split('\n')
      .flatMap((line, index) =>
        line.length > MAX_DOCS_COLUMNS && !/^\s*[|!]|https?:\/\/\S+$/.test(line) ? [`${file}:${index + 1}`] : [],
      );
    expect(wide).toEqual([]);
  });
});
