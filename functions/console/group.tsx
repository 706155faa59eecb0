// /groups/{id}: who is in a channel, and its end.

import { AppError } from '../../shared/domain/app-error.ts';
import { actingIn } from '../../shared/http/acting.ts';
import type { Deps } from '../../shared/http/deps.ts';
import type { App } from '../../shared/http/env.ts';
import { goTo } from '../../shared/http/page.tsx';
import type { Account, Group, Page } from '../../shared/ports/identity.ts';
import { channelOf, deleteGroup } from '../../shared/verbs/delete-group.ts';
import { shownUser } from '../../shared/verbs/people.ts';
import { clockOf } from '../pages/clock.ts';
import { attempt } from '../pages/form.ts';
import { framed } from '../pages/frame.tsx';
import { isAdmin, type PageContext } from '../pages/page-routes.ts';
import { Confirm } from '../pages/parts/confirm.tsx';
import { Missing, Notice, Problem } from '../pages/parts/notice.tsx';
import { Empty, pageNumber, Pager, Table } from '../pages/parts/table.tsx';
import { directionOf } from './group-checks.tsx';
import { nameOnDevices } from './groups.tsx';
import { peoplePages } from './people-pages.ts';
import { ROLE_NAMES, StandingBadge } from './person-words.tsx';

const PAGE_SIZE = 50;

/** Adds the routes of this file. */
export function groupPage(app: App, deps: Deps): void {
  const pages = peoplePages(app, deps);
  pages.get('/groups/:id', 'viewer', (c) => showGroup(c, deps));
  pages.post('/groups/:id/delete', async function removeGroup(c) {
    const { id } = await groupOf(c, deps);
    const { refused } = await attempt(() => deleteGroup(actingIn(c, deps), { id }));
    return refused === undefined ? goTo(c, '/groups?done=deleted') : showGroup(c, deps, refused);
  });
}

async function groupOf(c: PageContext, deps: Deps): Promise<Group> {
  const found = await attempt(() => channelOf(deps, c.req.param('id') ?? ''), 'not_found');
  if (found.refused === undefined) return found.done;
  if (found.refused.code !== 'not_found') throw found.refused;
  throw new AppError('not_found', 'There is no group at this address. The page Groups lists them all.');
}

async function showGroup(c: PageContext, deps: Deps, refused?: AppError): Promise<Response> {
  const { id, name } = await groupOf(c, deps);
  const members = await attempt(() =>
    deps.identity.accounts.list({
      group: name,
      kinds: ['person'],
      without: deps.settings.USERS_HIDDEN_PREFIXES,
      page: pageNumber(c.req.query('page')),
      pageSize: PAGE_SIZE,
    }),
  );
  const direction = directionOf(name);
  const body = (
    <>
      <Notice c={c} sentences={{ created: 'Created. Now open a person and tick the group there.' }} />
      <Problem error={refused} />
      <p>
        Devices show it as <strong>{nameOnDevices(name)}</strong>.{' '}
        {direction === undefined ? 'Its members send and receive.' : `Its members can do one thing: ${direction}.`}
      </p>
      {members.refused === undefined ? (
        <Members c={c} deps={deps} found={members.done} />
      ) : (
        <Missing>Who is in it is not known now: {members.refused.message}</Missing>
      )}
      {isAdmin(c) ? (
        <Confirm label="Delete this group…" action={`/groups/${id}/delete`} button={`Delete ${name}`}>
          <p>{whatIsLost(name, members.done ?? {})}</p>
          <p>
            Connected devices take it within 75 seconds. Whoever is then in no group meets the others who are in none.
          </p>
        </Confirm>
      ) : null}
      <p class="onward">
        <a href="/groups">All groups</a>
      </p>
    </>
  );
  return framed(c, deps, { title: name, current: 'groups', body, refused: refused ?? members.refused });
}

function whatIsLost(name: string, { results, count }: Partial<Page<Account>>): string {
  const [first] = results ?? [];
  if (count === 0) return `Nobody is in ${name}.`;
  if (count === 1 && first !== undefined) return `1 person loses ${name}: ${first.username} stays, without it.`;
  const who = count === undefined ? 'All who are in it' : `${count} people`;
  return `${who} lose ${name}: they stay, but no longer hear each other by it.`;
}

function Members({ c, deps, found: { results, count } }: { c: PageContext; deps: Deps; found: Page<Account> }) {
  if (count === 0)
    return (
      <Empty>
        Nobody is in it yet. Open somebody under <a href="/people">People</a> and tick it among the groups.
      </Empty>
    );
  const clock = clockOf(deps);
  const rows = results.map((account) => {
    const user = shownUser(account, deps);
    return [
      <>
        <a href={`/people/${user.id}`}>{user.name.trim() === '' ? user.username : user.name}</a>
        <span class="fine user">{user.username}</span>
      </>,
      <StandingBadge user={user} clock={clock} />,
      user.role === 'none' ? null : ROLE_NAMES[user.role],
    ];
  });
  return (
    <>
      <div class="roster">
        <Table
          caption="Members by user name"
          columns={[{ label: 'Person' }, { label: 'Access' }, { label: 'Role' }]}
          rows={rows}
        />
      </div>
      <Pager url={new URL(c.req.url)} page={pageNumber(c.req.query('page'))} pageSize={PAGE_SIZE} count={count} />
    </>
  );
}
