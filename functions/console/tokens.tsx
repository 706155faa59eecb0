// GET, POST /tokens: API tokens for programs. The answer to the form is the one place that ever shows the text of a token; the
// same form sent again makes no second one.

import type { AppError } from '../../shared/domain/app-error.ts';
import type { Deps } from '../../shared/http/deps.ts';
import type { App } from '../../shared/http/env.ts';
import { goTo } from '../../shared/http/page.tsx';
import { actorOf } from '../../shared/http/sign-in.ts';
import { wantedTokenSchema } from '../../shared/http/token-schemas.ts';
import type { ApiToken } from '../../shared/ports/sign-ins.ts';
import { createToken } from '../../shared/verbs/create-token.ts';
import { revokeToken } from '../../shared/verbs/revoke-token.ts';
import { clockOf } from '../pages/clock.ts';
import { attempt, type Form, formOf, parsed } from '../pages/form.ts';
import { framed } from '../pages/frame.tsx';
import { type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Copyable } from '../pages/parts/card.tsx';
import { Notice, Problem } from '../pages/parts/notice.tsx';
import { pageNumber } from '../pages/parts/table.tsx';
import { TokenForm } from './token-form.tsx';
import { TokenList } from './token-list.tsx';

const PATH = '/tokens';
const PAGE_SIZE = 50;
const DAY_MS = 86_400_000;
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;
const DONE = { revoked: 'The token is revoked: whatever used it is refused from now on.' };

/** Adds the routes of this file. */
export function tokensPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);

  pages.get(PATH, { access: 'admin' }, function showAll(c) {
    return showTokens(c, deps);
  });

  pages.post(PATH, { access: 'admin' }, async function make(c) {
    const form = await formOf(c);
    const { username: owner } = c.get('principal');
    const tried = await attempt(async () => {
      const { name, scope, expires_at: expiresAt } = parsed(wantedTokenSchema, wishOf(form, deps.now()));
      return createToken({ deps, actor: actorOf(c) }, { owner, name, scope, expiresAt, ...chosenId(form) });
    });
    const { refused } = tried;
    return refused === undefined ? showNew(c, deps, tried.done) : showTokens(c, deps, { form, refused });
  });

  pages.post(`${PATH}/:id/revoke`, { access: 'admin' }, async function revoke(c) {
    const tried = await attempt(
      () => revokeToken({ deps, actor: actorOf(c) }, { id: c.req.param('id') ?? '' }),
      'not_found',
    );
    return tried.refused?.code === 'not_found' || tried.refused === undefined
      ? goTo(c, `${PATH}?done=revoked`)
      : showTokens(c, deps, { refused: tried.refused });
  });
}

/** The days of the form become a time; what is no number of days is refused as a time. */
function wishOf(form: Form, now: Date): unknown {
  const days = form.text('days');
  const until = /^\d{1,4}$/.test(days) ? new Date(now.getTime() + Number(days) * DAY_MS).toISOString() : days;
  return { name: form.text('name'), scope: form.text('scope'), expires_at: until };
}

function chosenId(form: Form): { id?: string } {
  const id = form.text('id');
  return UUID.test(id) ? { id } : {};
}

async function showTokens(
  c: PageContext,
  deps: Deps,
  { form, refused }: { form?: Form; refused?: AppError } = {},
): Promise<Response> {
  const page = pageNumber(c.req.query('page'));
  const { results, count } = await deps.signIns.tokens({ page, pageSize: PAGE_SIZE });
  const body = (
    <>
      <Notice c={c} sentences={DONE} />
      <Problem error={refused} />
      <p>
        A token lets a program use the <a href="/api/docs">API</a> without anybody's password. It acts for whoever made
        it, and ends when that person is put out.
      </p>
      <TokenList
        tokens={results}
        count={count}
        page={page}
        pageSize={PAGE_SIZE}
        url={new URL(c.req.url)}
        clock={clockOf(deps)}
      />
      <TokenForm form={form} refused={refused} />
    </>
  );
  return framed(c, deps, { title: 'API tokens', current: 'tokens', body, refused });
}

function showNew(c: PageContext, deps: Deps, { name, text }: ApiToken & { text: string }): Promise<Response> {
  const body = (
    <>
      <div class="notice good" role="status">
        <p>
          The token <strong>{name}</strong> is made.
        </p>
      </div>
      <section class="card" id="new-token">
        <h2>Copy it now: it is never shown again</h2>
        <p>Reloading this page does not bring it back. Put it where your program keeps its secrets.</p>
        <Copyable id="token" text={text} label="Copy the token" />
        <p class="fine">
          The program sends it with each request, in the header <code>Authorization: Bearer</code> followed by a blank
          and the token. Whoever has it can do what it may: revoke it when it has got out.
        </p>
        <p>
          <a class="button" href={PATH}>
            I have copied it: to the list
          </a>
        </p>
      </section>
    </>
  );
  return framed(c, deps, { title: 'New API token', current: 'tokens', body, status: 201 });
}
