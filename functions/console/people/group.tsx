// /groups/{id}: who is in a channel, and its end.

import { AppError } from '@holdfast/kit/app-error';
import type { Page } from '@holdfast/kit/json';
import { CHANNEL_PREFIX } from '@holdfast/kit/names';
import { toUserView } from '../../../shared/devices/accounts.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { goTo } from '../../../shared/http/page.tsx';
import { actingIn } from '../../../shared/http/sign-in.ts';
import type { Account, Group, GroupName } from '../../../shared/identity/port.ts';
import { channelOf, createGroup, deleteGroup, listChannels } from '../../../shared/people/groups.ts';
import { attempt, faultOf, type Form, formOf } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { isAdmin, type PageContext } from '../../pages/page-routes.ts';
import { Card, Confirm } from '../../pages/parts/card.tsx';
import { Field } from '../../pages/parts/field.tsx';
import { Missing, Notice, Problem } from '../../pages/parts/notice.tsx';
import { Empty, pageNumber, Pager, Table } from '../../pages/parts/table.tsx';
import { clockOf } from '../../pages/parts/time.tsx';
import { directionOf } from './fields.tsx';
import { peoplePages } from './routes.ts';
import { ROLE_NAMES, AccountStatusBadge } from './account-status.tsx';

const PAGE_SIZE = 50;

/** Adds the routes of this file. */
export function groupsPage(app: App, deps: Deps): void {
  const pages = peoplePages(app, deps);
  pages.get('/groups', 'viewer', (c) => showGroups(c, deps));
  pages.post('/groups', async function makeGroup(c) {
    const form = await formOf(c);
    const made = await attempt(() => createGroup(actingIn(c, deps), { name: form.text('name') }));
    if (made.refused !== undefined) return showGroups(c, deps, { form, error: made.refused });
    return goTo(c, `/groups/${made.done.id}?done=created`);
  });
}

async function showGroups(c: PageContext, deps: Deps, refusal?: { form: Form; error: AppError }): Promise<Response> {
  const found = await attempt(() => listChannels(deps));
  const body = (
    <>
      <Notice c={c} sentences={{ deleted: 'The group is deleted. Its members stay, without it.' }} />
      <Problem error={refusal?.error} />
      {found.refused === undefined ? (
        <List c={c} groups={found.done} />
      ) : (
        <Missing>The list is not here now: {found.refused.message}</Missing>
      )}
      {isAdmin(c) ? (
        <Card title="A new group">
          <form method="post" action="/groups" class="narrow">
            <Field
              name="name"
              label="Name"
              hint="1 to 64 letters, digits, blanks, dots, underscores or hyphens: Blue becomes core_Blue, and devices show Blue."
              value={refusal?.form.text('name') ?? ''}
              error={faultOf(refusal?.error, 'name')}
              autocomplete="off"
              maxlength={69}
              required
              plain
            />
            <button type="submit">Create the group</button>
          </form>
        </Card>
      ) : null}
      <Explained />
    </>
  );
  return framed(c, deps, {
    title: 'Groups',
    current: 'groups',
    body,
    refused: refusal?.error ?? found.refused,
  });
}

function List({ c, groups }: { c: PageContext; groups: readonly GroupName[] }) {
  if (groups.length === 0)
    return (
      <Empty>There is no group yet: everybody hears everybody.{isAdmin(c) ? ' Create the first one below.' : ''}</Empty>
    );
  const page = pageNumber(c.req.query('page'));
  const shown = groups.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE);
  return (
    <>
      <div class="roster brief">
        <Table
          caption="Groups by name"
          columns={[{ label: 'Group' }, { label: 'On devices' }, { label: 'Members' }]}
          rows={shown.map(({ id, name }) => [
            <a href={`/groups/${id}`}>{name}</a>,
            nameOnDevices(name),
            directionOf(name) ?? 'send and receive',
          ])}
        />
      </div>
      <Pager url={new URL(c.req.url)} page={page} pageSize={PAGE_SIZE} count={groups.length} />
    </>
  );
}

/** As devices show it: without the prefix, and without what says the direction. */
export function nameOnDevices(name: string): string {
  return name.slice(CHANNEL_PREFIX.length).replace(/_(?:READ|WRITE)$/, '');
}

function Explained() {
  return (
    <Card title="How groups work">
      <p>
        Devices hear each other when their people have a group in common. Its whole name begins with{' '}
        <code>{CHANNEL_PREFIX}</code>; devices show the rest.
      </p>
      <p>
        Members of <code>core_Blue_READ</code> only receive what is sent to Blue; members of{' '}
        <code>core_Blue_WRITE</code> only send to it. Members of <code>core_Blue</code> do both.
      </p>
      <p>Whoever is in no group at all meets the others who are in none.</p>
    </Card>
  );
}

const GROUP_PAGE_SIZE = 50;

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
      pageSize: GROUP_PAGE_SIZE,
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
    const user = toUserView(account, deps);
    return [
      <>
        <a href={`/people/${user.id}`}>{user.name.trim() === '' ? user.username : user.name}</a>
        <span class="fine user">{user.username}</span>
      </>,
      <AccountStatusBadge user={user} clock={clock} />,
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
      <Pager url={new URL(c.req.url)} page={pageNumber(c.req.query('page'))} pageSize={GROUP_PAGE_SIZE} count={count} />
    </>
  );
}
