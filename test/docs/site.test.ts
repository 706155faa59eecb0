// The documents as a site: every link and anchor of the pages resolves, the pages load nothing from elsewhere and hold no script,
// and what the generator writes into the documents is current.

import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { docsProblems, documentsOf, pageName, renderDocs } from '@holdfast/setup/docs-site';
import { createApp } from '../../functions/app.ts';
import { renderApiTables } from '../../functions/openapi.ts';
import { renderMetricsTables } from '../../shared/health/metrics-reference.ts';
import { renderThresholdsTable } from '../../shared/settings/documents.ts';
import { populatedDeps } from '../health/fake-populated.ts';
import { fakeDeps } from '../http/fake-deps.ts';
import { ROOT } from '../house.ts';

const { files, problems } = await renderDocs(ROOT);
const pages = [...files].flatMap(([name, text]) =>
  name.endsWith('.html') && typeof text === 'string' ? [[name, text] as const] : [],
);
const idsOf = (html: string): Set<string> => new Set([...html.matchAll(/\sid="([^"]*)"/g)].map(([, id = '']) => id));

/** Read from the HTML, not from the documents: a second opinion on the links. */
function deadLinks([name, html]: readonly [string, string]): string[] {
  const links = [...html.matchAll(/<[a-z][^>]*?\s(?:href|src|srcset)="([^"]*)"/g)].map(([, link = '']) => link);
  return links
    .filter((link) => !/^(https?|data):/.test(link))
    .filter((link) => {
      const [file = '', anchor = ''] = link.split('#');
      const target = files.get(file === '' ? name : file);
      return target === undefined || (anchor !== '' && !idsOf(String(target)).has(decodeURIComponent(anchor)));
    })
    .map((link) => `${name}: ${link}`);
}

describe('the site of the documents', () => {
  it('has a page for every document, each under a name of its own', () => {
    expect(problems).toEqual([]);
    expect(documentsOf(ROOT).length).toBeGreaterThan(45);
    expect(pages.map(([name]) => name).toSorted()).toEqual(documentsOf(ROOT).map(pageName).toSorted());
  });

  it('has no link that leads nowhere', () => {
    expect(pages.flatMap(deadLinks)).toEqual([]);
  });

  it('has pages with one heading, without script or style, that load nothing from elsewhere', () => {
    const wrong = pages.filter(
      ([, html]) =>
        html.match(/<h1[ >]/g)?.length !== 1 ||
        /<script(?! src="docs\.js" defer><\/script>)|<style|\sstyle=|\son\w+="/.test(html) ||
        /<(?:img|link|script)[^>]*\s(?:src|href)="(?:https?:)?\/\//.test(html),
    );
    expect(wrong.map(([name]) => name)).toEqual([]);
  });

  it('has every section in the index of the search, as a plain script', () => {
    const script = String(files.get('search-index.js'));
    const index = JSON.parse(script.replace(/^globalThis\.searchIndex = (.*);\n$/s, '$1')) as {
      sections: { at: string; text: string }[];
    }[];
    const places = index.flatMap(({ sections }) => sections.map(({ at }) => at));
    const headings = pages.flatMap(([name, html]) =>
      [...html.matchAll(/<h\d id="([^"]*)"/g)].map(([, id]) => `${name}#${id}`),
    );
    expect(places.toSorted()).toEqual(headings.toSorted());
    expect(new Set(places).size).toBe(places.length);
  });

  it('is refused with the name of each broken link, and of each page that nothing leads to', () => {
    const copy = mkdtempSync(join(tmpdir(), 'holdfast-docs-'));
    for (const path of documentsOf(ROOT)) cpSync(join(ROOT, path), join(copy, path));
    mkdirSync(join(copy, 'docs/img'));
    writeFileSync(join(copy, 'docs/alone.md'), '# Alone\n\n[a](none.md), [b](users.md#none), ![c](img/none.png)\n');
    const broken = docsProblems(copy).filter((each) => each.includes('alone'));
    rmSync(copy, { recursive: true });
    expect(broken).toEqual([
      'docs/alone.md: docs/none.md is no page or picture of the site',
      'docs/alone.md: docs/users.md has no heading #none',
      'docs/alone.md: docs/img/none.png is no page or picture of the site',
      'docs/alone.md is linked from no page',
    ]);
  });
});

describe('what the generator writes', () => {
  const text = (name: string): string => readFileSync(join(ROOT, 'docs', name), 'utf8');

  it('is current: run npm run generate', () => {
    expect(text('health.md')).toContain(renderThresholdsTable());
    expect(text('api.md')).toContain(renderApiTables(createApp(fakeDeps())));
  });

  it('names every metric of a process in which everything has happened once', async () => {
    const { process, health } = await renderMetricsTables(await populatedDeps());
    expect(text('metrics.md')).toContain(`<!-- process -->\n${process}\n<!-- /process -->`);
    expect(text('metrics.md')).toContain(`<!-- health -->\n${health}\n<!-- /health -->`);
  });
});
