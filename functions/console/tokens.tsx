// GET, POST /tokens: API tokens for programs. The answer to the form is the one place that ever shows the text of a token; the
// same form sent again makes no second one.

import type { AppError } from '@holdfast/kit/app-error';
import { DAY_MS } from '@holdfast/kit/time';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { goTo } from '../../shared/http/page.tsx';
import { wantedTokenSchema } from '../../shared/http/schemas/people.ts';
import { actorOf } from '../../shared/http/sign-in.ts';
import type { ApiToken } from '../../shared/sign-in/port.ts';
import type { Scope } from '../../shared/sign-in/rules.ts';
import { createToken, revokeToken } from '../../shared/sign-in/tokens.ts';
import { attempt, faultOf, type Form, formOf, parsed } from '../pages/form.ts';
import { framed } from '../pages/frame.tsx';
import { type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Confirm, Copyable } from '../pages/parts/card.tsx';
import { Checks, Field, Select } from '../pages/parts/field.tsx';
import { Notice, Problem, StatusBadge } from '../pages/parts/notice.tsx';
import { Empty, pageNumber, Pager, Table } from '../pages/parts/table.tsx';
import { type Clock, clockOf, When } from '../pages/parts/time.tsx';

/** In words, with what each may not. */
const SCOPES_IN_WORDS: Record<Scope, string> = {
  read: 'Read: what a viewer sees. Changes nothing, sees no tokens, settings or logs',
  users: 'People: users, groups, enrollment and certificates, but no administrators. Nothing else',
  admin: 'Everything that you may do yourself. For a program that you would give your own password',
};

const LIFETIMES = [
  { value: '1', label: '1 day' },
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
  { value: '365', label: '1 year' },
  { value: '1825', label: '5 years' },
];

interface TokenFormProps {
  form: Form | undefined;
  refused: AppError | undefined;
}

/** `id` is chosen here, so that a form that is sent twice makes one token. */
export function TokenForm({ form, refused }: TokenFormProps) {
  return (
    <section class="card" id="make">
      <h2>Make a token</h2>
      <form method="post" action="/tokens" class="narrow">
        <input type="hidden" name="id" value={crypto.randomUUID()} />
        <Field
          name="name"
          label="Name"
          hint="Which program it is for, such as Nightly backup"
          value={form?.text('name')}
          error={faultOf(refused, 'name')}
          required
          maxlength={64}
          autocomplete="off"
        />
        <Checks
          legend="What it may do"
          name="scope"
          type="radio"
          choices={Object.entries(SCOPES_IN_WORDS).map(([value, label]) => ({ value, label }))}
          chosen={[form?.text('scope') ?? 'read']}
          error={faultOf(refused, 'scope')}
        />
        <Select
          name="days"
          label="Ends after"
          hint="Then the program needs a new one"
          value={form?.text('days') ?? '90'}
          choices={LIFETIMES}
          error={faultOf(refused, 'expires_at')}
        />
        <button type="submit">Make the token</button>
      </form>
    </section>
  );
}

const SOON_MS = 7 * DAY_MS;
const SHORT: Record<Scope, string> = { read: 'read', users: 'people', admin: 'everything of its owner' };

interface TokenListProps {
  tokens: ApiToken[];
  count: number;
  page: number;
  pageSize: number;
  url: URL;
  clock: Clock;
}

/** The API tokens that are valid, and how each is revoked. */
export function TokenList({ tokens, count, page, pageSize, url, clock }: TokenListProps) {
  if (count === 0)
    return (
      <Empty>
        <p>No program has a token.</p>
        <p>Make one below when a program of yours is to use the API: a backup, a dashboard, a roster import.</p>
      </Empty>
    );
  const columns = [
    { label: 'Token' },
    { label: 'May' },
    { label: 'Acts for' },
    { label: 'Made' },
    { label: 'Ends' },
    { label: 'Revoke', silent: true },
  ];
  const rows = tokens.map((token) => [
    <bdi>{token.name}</bdi>,
    SHORT[token.scope],
    <bdi>{token.owner}</bdi>,
    <When at={token.createdAt} clock={clock} />,
    <Ends at={token.expiresAt} clock={clock} />,
    <Revoke token={token} />,
  ]);
  return (
    <>
      <Table caption="API tokens" columns={columns} rows={rows} />
      <Pager url={url} page={page} pageSize={pageSize} count={count} />
    </>
  );
}

function Ends({ at, clock }: { at: string; clock: Clock }) {
  const soon = Date.parse(at) - clock.now.getTime() < SOON_MS;
  return (
    <div>
      <When at={at} clock={clock} relative /> {soon ? <StatusBadge status="warning">Ends soon</StatusBadge> : null}
    </div>
  );
}

function Revoke({ token: { id, name, owner } }: { token: ApiToken }) {
  return (
    <Confirm id={`revoke-${id}`} label="Revoke…" of={name} action={`/tokens/${id}/revoke`} button={`Revoke ${name}`}>
      <p>
        The program that uses it is refused from the next request on, and needs a new token. {owner} and everybody else
        stay signed in. This cannot be taken back.
      </p>
    </Confirm>
  );
}

const PATH = '/tokens';
const PAGE_SIZE = 50;
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
      const { name, scope, expires_at: expiresAt } = parsed(wantedTokenSchema, inputOf(form, deps.now()));
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
function inputOf(form: Form, now: Date): unknown {
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
