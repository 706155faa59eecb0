// The script of the documents: searches their sections. It also works on files opened from the
// disk: the index is a plain script, loaded at the first search.

import MiniSearch, { type SearchResult } from 'minisearch';

interface Page {
  page: string;
  sections: { at: string; title: string; text: string }[];
}

declare global {
  var searchIndex: Page[] | undefined;
}

const MAX_RESULTS = 20;
const EXCERPT_CHARACTERS = 160;

let loading: Promise<MiniSearch> | undefined;

/** Rejects if the index can't be loaded. */
function loadIndex(): Promise<MiniSearch> {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = 'search-index.js';
    script.addEventListener('load', () => resolve(indexOf(globalThis.searchIndex ?? [])));
    script.addEventListener('error', () => {
      loading = undefined;
      reject(new Error('search-index.js is missing'));
    });
    document.head.append(script);
  });
  return loading;
}

function indexOf(pages: readonly Page[]): MiniSearch {
  const index = new MiniSearch({
    fields: ['title', 'page', 'text'],
    storeFields: ['title', 'page', 'text'],
    idField: 'at',
    searchOptions: { boost: { title: 4, page: 2 }, prefix: true, fuzzy: 0.15, combineWith: 'AND' },
  });
  index.addAll(pages.flatMap(({ page, sections }) => sections.map((section) => ({ ...section, page }))));
  return index;
}

function resultOf({ id, title, page, text, queryTerms }: SearchResult): HTMLLIElement {
  const item = document.createElement('li');
  const link = document.createElement('a');
  link.href = String(id);
  link.textContent = title === page ? String(title) : `${String(page)}: ${String(title)}`;
  const excerpt = document.createElement('p');
  excerpt.textContent = excerptOf(String(text), queryTerms);
  item.append(link, excerpt);
  return item;
}

/** The text around the first of the words. */
function excerptOf(text: string, words: readonly string[]): string {
  const places = words.map((word) => text.toLowerCase().indexOf(word)).filter((place) => place >= 0);
  const start = Math.max(0, Math.min(...places, text.length) - EXCERPT_CHARACTERS / 2);
  const begin = places.length === 0 ? 0 : start;
  return text.slice(begin, begin + EXCERPT_CHARACTERS);
}

async function search(results: HTMLElement, wanted: string): Promise<void> {
  results.hidden = wanted === '';
  if (wanted === '') return;
  const heading = document.createElement('h2');
  try {
    const found = (await loadIndex()).search(wanted).slice(0, MAX_RESULTS);
    const list = document.createElement('ol');
    list.append(...found.map(resultOf));
    heading.textContent = found.length === 0 ? `Nothing found for “${wanted}”` : `Results for “${wanted}”`;
    results.replaceChildren(heading, list);
  } catch {
    heading.textContent = 'Couldn’t load the search index. Reload the page.';
    results.replaceChildren(heading);
  }
}

const field = document.querySelector<HTMLInputElement>('#search');
const results = document.querySelector<HTMLElement>('#results');
if (field !== null && results !== null) {
  field.closest('search')?.removeAttribute('hidden');
  field.addEventListener('input', () => void search(results, field.value.trim()));
  results.addEventListener('click', ({ target }) => {
    if ((target as Element).closest('a') !== null) results.hidden = true;
  });
}
