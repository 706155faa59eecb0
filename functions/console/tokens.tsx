// GET, POST /tokens: lists, creates and revokes API tokens. Only the response to the form shows the
// text of a token.

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

const SCOPE_LABELS: Record<Scope, string> = {
  read: 'Read: the same as a viewer. No changes, and no access to tokens, settings or logs',
  users: 'People: users, groups, enrollment and certificates. No administrators and nothing else',
  admin: 'Full: everything you can do. Only for programs that you would trust with your password',
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

/** The form chooses the `id`, so that submitting it twice creates one token. */
export function TokenForm({ form, refused }: TokenFormProps) {
  return (
    <section class="card" id="make">
      <h2>Create token</h2>
      <form method="post" action="/tokens" class="narrow">
        <input type="hidden" name="id" value={crypto.randomUUID()} />
        <Field
          name="name"
          label="Name"
          hint="The program that uses it, such as Nightly backup."
          value={form?.text('name')}
          error={faultOf(refused, 'name')}
          required
          maxlength={64}
          autocomplete="off"
        />
        <Checks
          legend="Permissions"
          name="scope"
          type="radio"
          choices={Object.entries(SCOPE_LABELS).map(([value, label]) => ({ value, label }))}
          chosen={[form?.text('scope') ?? 'read']}
          error={faultOf(refused, 'scope')}
        />
        <Select
          name="days"
          label="Expires after"
          hint="After that, the program needs a new token."
          value={form?.text('days') ?? '90'}
          choices={LIFETIMES}
          error={faultOf(refused, 'expires_at')}
        />
        <button type="submit">Create token</button>
      </form>
    </section>
  );
}

const SOON_MS = 7 * DAY_MS;
const SCOPE_NAMES: Record<Scope, string> = { read: 'Read', users: 'People', admin: 'Full' };

interface TokenListProps {
  tokens: ApiToken[];
  count: number;
  page: number;
  pageSize: number;
  url: URL;
  clock: Clock;
}

/** The valid API tokens. */
export function TokenList({ tokens, count, page, pageSize, url, clock }: TokenListProps) {
  if (count === 0)
    return (
      <Empty>
        <p>No tokens yet.</p>
        <p>Create one below when a program needs the API, such as a backup, dashboard or roster import.</p>
      </Empty>
    );
  const columns = [
    { label: 'Token' },
    { label: 'Permissions' },
    { label: 'Acts for' },
    { label: 'Created' },
    { label: 'Expires' },
    { label: 'Actions', silent: true },
  ];
  const rows = tokens.map((token) => [
    <bdi>{token.name}</bdi>,
    SCOPE_NAMES[token.scope],
    <bdi>{token.owner}</bdi>,
    <When at={token.createdAt} clock={clock} />,
    <Expiry at={token.expiresAt} clock={clock} />,
    <Revoke token={token} />,
  ]);
  return (
    <>
      <Table caption="API tokens" columns={columns} rows={rows} />
      <Pager url={url} page={page} pageSize={pageSize} count={count} />
    </>
  );
}

function Expiry({ at, clock }: { at: string; clock: Clock }) {
  const soon = Date.parse(at) - clock.now.getTime() < SOON_MS;
  return (
    <div>
      <When at={at} clock={clock} relative /> {soon ? <StatusBadge status="warning">Expires soon</StatusBadge> : null}
    </div>
  );
}

function Revoke({ token: { id, name, owner } }: { token: ApiToken }) {
  return (
    <Confirm id={`revoke-${id}`} label="Revoke…" of={name} action={`/tokens/${id}/revoke`} button={`Revoke ${name}`}>
      <p>
        The program that uses it is refused from the next request on and needs a new token. {owner} and all other people
        stay signed in. You can't undo this.
      </p>
    </Confirm>
  );
}

const PATH = '/tokens';
const PAGE_SIZE = 50;
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;
const DONE = { revoked: 'Token revoked. Programs that use it are refused from now on.' };

/** Adds the routes of this file. */
export function tokensPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);

  pages.get(PATH, { access: 'admin' }, function showAll(c) {
    return showTokens(c, deps);
  });

  pages.post(PATH, { access: 'admin' }, async function make(c) {
    const form = await formOf(c);
    const { username: owner } = c.get('principal');
    const result = await attempt(async () => {
      const { name, scope, expires_at: expiresAt } = parsed(wantedTokenSchema, inputOf(form, deps.now()));
      return createToken({ deps, actor: actorOf(c) }, { owner, name, scope, expiresAt, ...chosenId(form) });
    });
    const { refused } = result;
    return refused === undefined ? showNew(c, deps, result.done) : showTokens(c, deps, { form, refused });
  });

  pages.post(`${PATH}/:id/revoke`, { access: 'admin' }, async function revoke(c) {
    const result = await attempt(
      () => revokeToken({ deps, actor: actorOf(c) }, { id: c.req.param('id') ?? '' }),
      'not_found',
    );
    return result.refused?.code === 'not_found' || result.refused === undefined
      ? goTo(c, `${PATH}?done=revoked`)
      : showTokens(c, deps, { refused: result.refused });
  });
}

/** Turns the days of the form into a time. Other text is passed on, and refused as a time. */
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
        A token lets a program use the <a href="/api/docs">API</a> without a password. It acts for the person who
        created it, and ends when that person is deactivated.
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
          Token <strong>{name}</strong> created.
        </p>
      </div>
      <section class="card" id="new-token">
        <h2>Copy the token now</h2>
        <p>
          It is shown only once, and reloading this page does not show it again. Store it where your program keeps its
          secrets.
        </p>
        <Copyable id="token" text={text} label="Copy token" />
        <p class="fine">
          The program sends it with each request, in the header <code>Authorization: Bearer</code> followed by a space
          and the token. Anyone with the token has its permissions. If it leaks, revoke it.
        </p>
        <p>
          <a class="button" href={PATH}>
            I've saved it. Continue
          </a>
        </p>
      </section>
    </>
  );
  return framed(c, deps, { title: 'New API token', current: 'tokens', body, status: 201 });
}
