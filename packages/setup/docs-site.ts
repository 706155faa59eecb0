// Renders the documents as a site of plain files, which also opens from the disk: no modules, no
// fetch. Every link and anchor must lead somewhere.

import { globSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, posix } from 'node:path';
import GithubSlugger from 'github-slugger';
import { Marked, type Token, type Tokens } from 'marked';
import { bundledForBrowsers } from './build.ts';

/** The document whose links are the navigation. */
const INDEX = 'docs/README.md';
const PICTURES = 'docs/img';
const ASSETS = { docs: 'functions/pages/browser/docs.ts', 'docs-style': 'functions/pages/style/docs.css' };

interface Section {
  /** `page.html#anchor`. */
  at: string;
  title: string;
  text: string;
}

interface Rendered {
  title: string;
  body: string;
  anchors: Set<string>;
  sections: Section[];
  /** Path from the root and anchor of each link to a document. */
  links: [path: string, anchor: string][];
}

export interface DocsSite {
  files: Map<string, string | Uint8Array>;
  problems: string[];
}

/** The paths of all documents, from the root of the repository. */
export function documentsOf(home: string): string[] {
  const readmes = globSync('{bench,compose,packages}/**/README.md', {
    cwd: home,
    exclude: (path) => /(?:^|\/)(?:node_modules|test)$/.test(path),
  });
  return ['README.md', 'CONTRIBUTING.md', ...globSync('docs/*.md', { cwd: home }), ...readmes].toSorted();
}

/** `docs/backup.md` is `backup.html`, `packages/kit/README.md` is `packages-kit.html`. */
export function pageName(path: string): string {
  if (path === INDEX) return 'index.html';
  const plain = path.replace(/^docs\//, '').replace(/(?<=.)\/README\.md$|\.md$/, '');
  return `${plain.replaceAll('/', '-').toLowerCase()}.html`;
}

/** Writes the site to dist/docs. Resolves with every link that leads nowhere. */
export async function buildDocs(home: string): Promise<string[]> {
  const { files, problems } = await renderDocs(home);
  const place = join(home, 'dist/docs');
  const made = `${place}.${process.pid}`;
  mkdirSync(made, { recursive: true });
  for (const [name, content] of files) writeFileSync(join(made, name), content);
  rmSync(place, { recursive: true, force: true });
  renameSync(made, place);
  return problems;
}

/** All files of the site by name, and what is wrong with the documents. */
export async function renderDocs(home: string): Promise<DocsSite> {
  const pages = readPages(home);
  const navigation = groupsOf(readFileSync(join(home, INDEX), 'utf8'), pages);
  const files = new Map<string, string | Uint8Array>();
  for (const [path, page] of pages) files.set(pageName(path), documentOf(page, navigationOf(path, navigation, pages)));
  for (const picture of readdirSync(join(home, PICTURES)))
    files.set(picture, readFileSync(join(home, PICTURES, picture)));
  for (const { path, contents } of await bundledForBrowsers(home, ASSETS)) files.set(basename(path), contents);
  const index = [...pages.values()].map(({ title, sections }) => ({ page: title, sections }));
  files.set('search-index.js', `globalThis.searchIndex = ${JSON.stringify(index)};\n`);
  return { files, problems: docsProblems(home, pages) };
}

function readPages(home: string): Map<string, Rendered> {
  const documents = documentsOf(home);
  return new Map(documents.map((path) => [path, rendered(path, readFileSync(join(home, path), 'utf8'), documents)]));
}

/** Links and anchors that lead nowhere, and pages that no link leads to. */
export function docsProblems(home: string, pages: ReadonlyMap<string, Rendered> = readPages(home)): string[] {
  return [...brokenLinks(home, pages), ...unreached(pages)];
}

function brokenLinks(home: string, pages: ReadonlyMap<string, Rendered>): string[] {
  const pictures = new Set(readdirSync(join(home, PICTURES)).map((name) => `${PICTURES}/${name}`));
  return [...pages].flatMap(([from, { links }]) =>
    links.flatMap(([to, anchor]) => {
      const page = pages.get(to);
      if (page === undefined) return pictures.has(to) ? [] : [`${from}: ${to} is no page or picture of the site`];
      return anchor === '' || page.anchors.has(anchor) ? [] : [`${from}: ${to} has no heading #${anchor}`];
    }),
  );
}

/** Pages to which no path of links leads. */
function unreached(pages: ReadonlyMap<string, Rendered>): string[] {
  const reached = new Set([INDEX]);
  for (const path of reached) for (const [to] of pages.get(path)?.links ?? []) reached.add(to);
  return [...pages.keys()].filter((path) => !reached.has(path)).map((path) => `${path} is linked from no page`);
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}

/** `documents` are those that links may lead to. Other files of the repository become text. */
function rendered(path: string, source: string, documents: readonly string[]): Rendered {
  const slugger = new GithubSlugger();
  const page: Rendered = { title: path, body: '', anchors: new Set(), sections: [], links: [] };

  /** Undefined for a file of the repository that the site does not have. */
  function target(href: string): string | undefined {
    if (/^[a-z]+:/.test(href)) return href;
    const [file = '', anchor = ''] = href.split('#');
    const to = file === '' ? path : posix.join(dirname(path), file);
    const isShown = documents.includes(to) || to.startsWith(`${PICTURES}/`);
    if (!isShown && !to.endsWith('.md')) return undefined;
    page.links.push([to, anchor]);
    const name = documents.includes(to) ? pageName(to) : basename(to);
    return anchor === '' ? name : `${name}#${anchor}`;
  }

  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }) {
        const plain = this.parser.parseInline(tokens, this.parser.textRenderer);
        const id = slugger.slug(plain);
        page.anchors.add(id);
        if (depth === 1) page.title = plain;
        page.sections.push({ at: `${pageName(path)}#${id}`, title: plain, text: '' });
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens);
        const to = target(href);
        return to === undefined ? text : `<a href="${escape(to)}">${text}</a>`;
      },
      image({ href, text }) {
        return `<img src="${escape(target(href) ?? href)}" alt="${escape(text)}" loading="lazy">`;
      },
      html({ text }) {
        return text.replaceAll(/\b(src|srcset|href)="([^"]+)"/g, (_, name: string, href: string) => {
          return `${name}="${escape(target(href) ?? href)}"`;
        });
      },
    },
  });
  const tokens = marked.lexer(source);
  for (const token of tokens) {
    // A header cell without a text is none.
    const html = marked.parser([token]).replaceAll('<th></th>', '<td></td>');
    page.body +=
      token.type === 'table' || token.type === 'code' ? `<div class="wide" tabindex="0">${html}</div>` : html;
    const section = page.sections.at(-1);
    if (token.type !== 'heading' && section !== undefined) section.text += `${plainText(token)} `;
  }
  return page;
}

/** Markdown without its marks, for the search. */
function plainText({ raw }: Token): string {
  return raw
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/\]\([^)]*\)/g, ' ')
    .replaceAll(/\|[-|]+\||[`*|[\]]|^```\w*/gm, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

interface Group {
  title: string;
  paths: string[];
}

/** The headings of the index with the documents that they list, each where it comes first. */
function groupsOf(index: string, pages: ReadonlyMap<string, Rendered>): Group[] {
  const groups: Group[] = [];
  const seen = new Set([INDEX]);
  const marked = new Marked();
  for (const token of marked.lexer(index)) {
    if (token.type === 'heading' && (token as Tokens.Heading).depth === 2)
      groups.push({ title: (token as Tokens.Heading).text, paths: [] });
    void marked.walkTokens([token], (inner) => {
      if (inner.type !== 'link') return;
      const to = posix.join(dirname(INDEX), String(inner['href']).split('#')[0] ?? '');
      const group = groups.at(-1);
      if (group === undefined || !pages.has(to) || seen.has(to)) return;
      seen.add(to);
      group.paths.push(to);
    });
  }
  return groups;
}

function navigationOf(current: string, groups: readonly Group[], pages: ReadonlyMap<string, Rendered>): string {
  const link = (path: string): string => {
    const mark = path === current ? ' aria-current="page"' : '';
    return `<li><a href="${pageName(path)}"${mark}>${escape(pages.get(path)?.title ?? path)}</a></li>`;
  };
  return groups
    .map(({ title, paths }) => {
      const open = title === groups[0]?.title || paths.includes(current) ? ' open' : '';
      return `<details${open}><summary>${escape(title)}</summary><ul>${paths.map(link).join('')}</ul></details>`;
    })
    .join('\n');
}

/** The search field is hidden until the script is there. */
function documentOf({ title, body }: Rendered, navigation: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escape(title)} - Holdfast documentation</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs-style.css">
<script src="docs.js" defer></script>
</head>
<body>
<header>
<a href="index.html">Holdfast documentation</a>
<search hidden><input type="search" id="search" aria-label="Search the documentation" placeholder="Search" autocomplete="off"></search>
</header>
<nav aria-label="Pages">
${navigation}
</nav>
<main>
<section id="results" aria-label="Search results" aria-live="polite" hidden></section>
${body}
</main>
</body>
</html>
`;
}
