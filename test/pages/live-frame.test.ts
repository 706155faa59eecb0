import { html } from 'hono/html';
import { describe, expect, it } from 'vitest';
import { Confirm } from '../../functions/pages/parts/card.tsx';
import { visit } from './page-session.ts';

async function idOf(action: string, button: string): Promise<string | undefined> {
  const text = String(await html`${Confirm({ label: 'Go…', action, button, children: 'It goes.' })}`);
  return /<details class="confirm" id="([^"]+)"/.exec(text)?.[1];
}

describe('the frame of a live page', () => {
  it('has a place for what is told, empty, above the page and inside of it, so that it stays in sight', async () => {
    const page = await (await visit()).page('/more');
    expect(page).toMatch(/<main id="content" tabindex="-1"><div class="banner" id="live-banner" role="status"><\/div>/);
  });

  it('is not live on the answer to a form: at that address a reader finds something else', async () => {
    const { page, post } = await visit();
    expect(await page('/tokens')).toContain('<body class="framed console">');
    expect(await (await post('/tokens', {})).text()).toContain('<body class="framed console sent">');
  });

  it('gives whatever asks first an id by what it does, so that it stays unfolded when it is replaced', async () => {
    const ids = await Promise.all([
      idOf('/people/1/x', 'Stop "ann"'),
      idOf('/people/1/y', 'Stop "ann"'),
      idOf('/people/2/x', 'Stop "ann"'),
      idOf('/people/1/x', 'Start ann'),
    ]);
    expect(new Set(ids).size).toBe(4);
    for (const id of ids) expect(id).toMatch(/^[\p{L}\p{N}-]+$/u);
  });
});
