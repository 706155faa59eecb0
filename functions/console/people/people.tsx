// GET /people: lists people with search and filters.

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
  '': 'All',
  active: 'Active',
  ending: 'Expiring within 7 days',
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
        Add person
      </a>
    ) : undefined;
    const body = (
      <>
        <Search action="/people" label="Name, username or email" value={wanted.search}>
          {wanted.filter === '' ? null : <input type="hidden" name="show" value={wanted.filter} />}
          {wanted.hidden ? <input type="hidden" name="include" value="hidden" /> : null}
        </Search>
        <Tabs
          label="Filter people"
          tabs={Object.entries(FILTERS).map(([filter, label]) => [
            pathOf({ ...wanted, filter: filter as Filter }),
            label,
          ])}
          current={pathOf(wanted)}
        />
        {found.refused === undefined ? (
          <List c={c} deps={deps} wanted={wanted} found={found.done} />
        ) : (
          <Missing>Couldn't load the list. {found.refused.message}</Missing>
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

/** The identity provider does the filtering, so that a list of ten thousand is never read here. */
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
  if (results.length === 0 && count === 0) return <NoPeople wanted={wanted} mayCreate={isAdmin(c)} />;
  const clock = clockOf(deps);
  const columns = ['Person', 'Status', 'Groups', 'Role', 'Last sign-in'].map((label) => ({ label }));
  const rows = results.map((account) => rowOf(toUserView(account, deps), clock));
  return (
    <>
      <div class="roster">
        <Table caption="People by username" columns={columns} rows={rows} />
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

function NoPeople({ wanted, mayCreate }: { wanted: Wanted; mayCreate: boolean }) {
  const { search, filter } = wanted;

  if (filter !== '')
    return (
      <Empty>
        <p>{search === '' ? 'No people match this filter.' : `No people match “${search}” and this filter.`}</p>
        <p>
          <a href={pathOf({ ...wanted, filter: '' })}>Clear filter</a>
        </p>
      </Empty>
    );
  return (
    <Empty>
      <p>{search === '' ? 'No people yet.' : `No people match “${search}”.`}</p>
      {mayCreate ? (
        <p>
          <a
            class="button primary"
            href={search === '' ? '/people/new' : `/people/new?name=${encodeURIComponent(search)}`}
          >
            {search === '' ? 'Add first person' : `Add “${search}”`}
          </a>
        </p>
      ) : null}
    </Empty>
  );
}

function HiddenLink({ wanted }: { wanted: Wanted }) {
  return (
    <p class="fine onward">
      {wanted.hidden ? 'Service accounts and hidden accounts are included. ' : ''}
      <a href={pathOf({ ...wanted, hidden: !wanted.hidden })}>
        {wanted.hidden ? 'Show people only' : 'Include service and hidden accounts'}
      </a>
    </p>
  );
}
