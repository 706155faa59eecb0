// Checks a page with axe for serious accessibility problems, in light and dark, narrow and wide.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults, ElementContext, RunOptions } from 'axe-core';
import type { Page } from 'playwright-core';
import { HEIGHTS } from './visitor.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const SERIOUS = ['serious', 'critical'];

declare const axe: { run(context: ElementContext, options: RunOptions): Promise<AxeResults> };

/** What is seriously wrong with the page as it is now. What is moderate is told on standard error. */
export async function barriers(page: Page, rules?: string[]): Promise<string[]> {
  // By the debugger: the policy of the page allows no script of ours, and no eval.
  const session = await page.context().newCDPSession(page);
  await session.send('Runtime.evaluate', { expression: `window.axe || (()=>{${AXE}})()`, awaitPromise: false });
  await session.detach();
  const violations = await page.evaluate(async (only) => {
    const options = only === undefined ? {} : { runOnly: { type: 'rule' as const, values: only } };
    const { violations: found } = await axe.run({ include: [['html']] }, { ...options, resultTypes: ['violations'] });
    return found.map(({ id, impact, help, nodes }) => ({
      id,
      impact: String(impact),
      help,
      places: nodes
        .slice(0, 4)
        .map(
          ({ html, failureSummary = '' }) =>
            `${html.slice(0, 160)} — ${failureSummary.split('\n').slice(1, 2).join('')}`,
        ),
    }));
  }, rules);
  const notices = violations.map(({ id, impact, help, places }) => ({
    impact,
    text: `${id} (${impact}): ${help}: ${places.join(' | ')}`,
  }));
  for (const { impact, text } of notices)
    if (!SERIOUS.includes(impact)) process.stderr.write(`${page.url()}: ${text}\n`);
  return notices.filter(({ impact }) => SERIOUS.includes(impact)).map(({ text }) => text);
}

/** What a size or a scheme can change. */
const OF_LOOKS = [
  'color-contrast',
  'scrollable-region-focusable',
  'target-size',
  'link-in-text-block',
  'aria-hidden-focus',
];

const OPEN_ALL = `for (const each of document.querySelectorAll('details')) each.open = true`;

/**
 * The same page at both sizes and in both schemes: everything once at each size, and what looks change in the dark, whose
 * colors are those of any size; on a phone with all open that can be opened.
 */
export async function barriersInEveryLook(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const width of [1440, 360] as const) {
    await page.setViewportSize({ width, height: HEIGHTS[width] });
    if (width === 360) await page.evaluate(OPEN_ALL);
    for (const colorScheme of width === 360 ? (['light', 'dark'] as const) : (['light'] as const)) {
      await page.emulateMedia({ colorScheme });
      const wrong = await barriers(page, colorScheme === 'light' ? undefined : OF_LOOKS);
      found.push(...wrong.map((each) => `${page.url()} at ${width} px, ${colorScheme}: ${each}`));
    }
  }
  return found;
}
