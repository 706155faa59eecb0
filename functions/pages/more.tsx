// GET /more: lists all pages of the console, for narrow screens whose bar has room for five.

import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { roleInForce } from '../../shared/sign-in/rules.ts';
import { entriesFor, framed } from './frame.tsx';
import { pagesOf } from './page-routes.ts';

/** Adds the route of this file. */
export function morePage(app: App, deps: Deps): void {
  pagesOf(app, deps, ['console']).get('/more', { access: 'own' }, function showMore(c) {
    const entries = entriesFor(c);
    const sections = [...new Set(entries.map(({ section = '' }) => section))];
    const body = (
      <>
        {sections.map((section) => (
          <>
            {section === '' ? null : <h2 class="part">{section}</h2>}
            <ul class="links">
              {entries
                .filter((entry) => (entry.section ?? '') === section)
                .map(({ path, label }) => (
                  <li>
                    <a href={path}>{label}</a>
                  </li>
                ))}
            </ul>
          </>
        ))}
        {roleInForce(c.get('principal')) === 'none' ? null : (
          <>
            <h2 class="part">API</h2>
            <ul class="links">
              <li>
                <a href="/api/docs">API reference</a>
              </li>
            </ul>
          </>
        )}
      </>
    );
    return framed(c, deps, { title: 'All pages', current: 'more', body });
  });
}
