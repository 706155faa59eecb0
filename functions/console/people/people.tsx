// GET /people: who may come in. A name leads to everything about that person.

import { oneLine, shortened } from '@holdfast/kit/text';
import { type UserView, toUserView } from '../../../shared/devices/accounts.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import type { AccountQuery } from '../../../shared/identity/port.ts';
import { attempt } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { faceOf, isAdmin, type PageContext } from '../../pages/page-routes.ts';
import { Search, Tabs } from '../../pages/parts/card.tsx';
import { Missing } from '../../pages/parts/notice.tsx';
import { Empty, pageNumber, Pager, Table } from '../../pages/parts/table.tsx';
import { type Clock, clockOf, When } from '../../pages/parts/time.tsx';
import { peoplePages } from './routes.ts';
import { formatEnd, ROLE_NAMES, AccountStatusBadge } from './account-status.tsx';

const PAGE_SIZE = 50;
const SOON_SECONDS = 7 * 86_400;
const FEW_GROUPS = 3;
const MAX_SEARCH_LENGTH = 200;

const FILTERS = {
  '': 'Everybody',
  active: 'May come in',
  ending: 'Ending within 7 days',
  deactivated: 'Deactivated',
} as const;
type Filter = keyof typeof FILTERS;

interface Wanted {
  search: string;
  filter: Filter;
  hidden: boolean;
  page: number;
}

/** Adds the route of this file. */
export function peoplePage(app: App, deps: Deps): void {
  peoplePages(app, deps).get('/people', 'viewer', async function showPeople(c) {
    const wanted = wantedOf(c);
    const found = await attempt(() => deps.identity.accounts.list(queryOf(wanted, deps)));
    const create = isAdmin(c) ? (
      <a class="button primary" href="/people/new">
        Create a person
      </a>
    ) : undefined;
    const body = (
      <>
        <Search action="/people" label="Name, user name or e-mail" value={wanted.search}>
          {wanted.filter === '' ? null : <input type="hidden" name="show" value={wanted.filter} />}
          {wanted.hidden ? <input type="hidden" name="include" value="hidden" /> : null}
        </Search>
        <Tabs
          label="Who is shown"
          tabs={Object.entries(FILTERS).map(([filter, label]) => [
            pathOf({ ...wanted, filter: filter as Filter }),
            label,
          ])}
          current={pathOf(wanted)}
        />
        {found.refused === undefined ? (
          <List c={c} deps={deps} wanted={wanted} found={found.done} />
        ) : (
          <Missing>The list is not here now: {found.refused.message}</Missing>
        )}
        {faceOf(c) === 'console' ? <HiddenLink wanted={wanted} /> : null}
      </>
    );
    return framed(c, deps, { title: 'People', current: 'people', actions: create, body, refused: found.refused });
  });
}

function wantedOf(c: PageContext): Wanted {
  const show = c.req.query('show') ?? '';
  return {
    search: shortened(oneLine(c.req.query('search') ?? '').trim(), MAX_SEARCH_LENGTH),
    filter: Object.hasOwn(FILTERS, show) ? (show as Filter) : '',
    hidden: faceOf(c) === 'console' && c.req.query('include') === 'hidden',
    page: pageNumber(c.req.query('page')),
  };
}

function pathOf({ search, filter, hidden }: Pick<Wanted, 'search' | 'filter' | 'hidden'>): string {
  const query = new URLSearchParams({
    ...(search === '' ? {} : { search }),
    ...(filter === '' ? {} : { show: filter }),
    ...(hidden ? { include: 'hidden' } : {}),
  });
  return query.size === 0 ? '/people' : `/people?${query.toString()}`;
}

/** All of it is the provider's to find: a list of ten thousand is never read. */
function queryOf({ search, filter, hidden, page }: Wanted, { now, settings }: Deps): AccountQuery {
  const seconds = Math.floor(now().getTime() / 1000);
  return {
    page,
    pageSize: PAGE_SIZE,
    search,
    ...(hidden ? {} : { kinds: ['person'], without: settings.USERS_HIDDEN_PREFIXES }),
    ...(filter === '' ? {} : { isActive: filter !== 'deactivated' }),
    ...(filter === 'ending'
      ? { attributes: { app_expires__gt: seconds, app_expires__lt: seconds + SOON_SECONDS } }
      : {}),
  };
}

interface ListProps {
  c: PageContext;
  deps: Deps;
  wanted: Wanted;
  found: Awaited<ReturnType<Deps['identity']['accounts']['list']>>;
}

function List({ c, deps, wanted, found: { results, count } }: ListProps) {
  if (results.length === 0 && count === 0) return <Nobody wanted={wanted} mayCreate={isAdmin(c)} />;
  const clock = clockOf(deps);
  const columns = ['Person', 'Access', 'Groups', 'Role', 'Last sign-in'].map((label) => ({ label }));
  const rows = results.map((account) => rowOf(toUserView(account, deps), clock));
  return (
    <>
      <div class="roster">
        <Table caption="People by user name" columns={columns} rows={rows} />
      </div>
      <Pager url={new URL(c.req.url)} page={wanted.page} pageSize={PAGE_SIZE} count={count} />
    </>
  );
}

function rowOf(user: UserView, clock: Clock) {
  const { id, username, name, groups, role, expires_at: end, last_login: last } = user;
  const more = groups.length - FEW_GROUPS;
  return [
    <>
      <a href={`/people/${id}`}>{name.trim() === '' ? username : name}</a>
      <span class="fine user">{username}</span>
    </>,
    <>
      <AccountStatusBadge user={user} clock={clock} />{' '}
      {end === null ? null : <span class="fine together">{formatEnd(end, clock)}</span>}
    </>,
    groups.length === 0 ? null : (
      <span class="tags">
        {groups.slice(0, FEW_GROUPS).map((group) => (
          <code>{group}</code>
        ))}
        {more > 0 ? <span class="fine">and {more} more</span> : null}
      </span>
    ),
    role === 'none' ? null : <span class="together">{ROLE_NAMES[role]}</span>,
    <When at={last} clock={clock} />,
  ];
}

function Nobody({ wanted, mayCreate }: { wanted: Wanted; mayCreate: boolean }) {
  const { search, filter } = wanted;
  const subject = search === '' ? 'Nobody' : `Nobody called “${search}”`;
  if (filter !== '')
    return (
      <Empty>
        <p>{subject} is in this list.</p>
        <p>
          <a href={pathOf({ ...wanted, filter: '' })}>Look among everybody</a>
        </p>
      </Empty>
    );
  return (
    <Empty>
      <p>{search === '' ? 'There is nobody yet.' : `Nobody is called “${search}”.`}</p>
      {mayCreate ? (
        <p>
          <a
            class="button primary"
            href={search === '' ? '/people/new' : `/people/new?name=${encodeURIComponent(search)}`}
          >
            {search === '' ? 'Create the first person' : `Create “${search}”`}
          </a>
        </p>
      ) : null}
    </Empty>
  );
}

function HiddenLink({ wanted }: { wanted: Wanted }) {
  return (
    <p class="fine onward">
      {wanted.hidden ? 'Programs and hidden accounts are shown too. ' : ''}
      <a href={pathOf({ ...wanted, hidden: !wanted.hidden })}>
        {wanted.hidden ? 'Show people alone' : 'Show programs and hidden accounts too'}
      </a>
    </p>
  );
}
