// GET, POST /groups and /groups/{id}: lists groups, adds one, shows its members and deletes it.

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
      <Notice c={c} sentences={{ deleted: 'Group deleted. Its members keep their accounts.' }} />
      <Problem error={refusal?.error} />
      {found.refused === undefined ? (
        <List c={c} groups={found.done} />
      ) : (
        <Missing>Couldn't load the groups. {found.refused.message}</Missing>
      )}
      {isAdmin(c) ? (
        <Card title="Add group">
          <form method="post" action="/groups" class="narrow">
            <Field
              name="name"
              label="Name"
              hint="1 to 64 letters, digits, spaces, dots, underscores or hyphens. Blue becomes core_Blue, and devices show Blue."
              value={refusal?.form.text('name') ?? ''}
              error={faultOf(refusal?.error, 'name')}
              autocomplete="off"
              maxlength={69}
              required
              plain
            />
            <button type="submit">Add group</button>
          </form>
        </Card>
      ) : null}
      <GroupHelp />
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
    return <Empty>No groups yet. All devices see each other.{isAdmin(c) ? ' Add the first group below.' : ''}</Empty>;
  const page = pageNumber(c.req.query('page'));
  const shown = groups.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE);
  return (
    <>
      <div class="roster brief">
        <Table
          caption="Groups by name"
          columns={[{ label: 'Group' }, { label: 'Shown on devices' }, { label: 'Members' }]}
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

/** The name that devices show: without the prefix and the suffix of the direction. */
export function nameOnDevices(name: string): string {
  return name.slice(CHANNEL_PREFIX.length).replace(/_(?:READ|WRITE)$/, '');
}

function GroupHelp() {
  return (
    <Card title="How groups work">
      <p>
        Devices see each other when their owners share a group. Full group names start with{' '}
        <code>{CHANNEL_PREFIX}</code>, and devices show the rest.
      </p>
      <p>
        Members of <code>core_Blue_READ</code> only receive what is sent to Blue. Members of{' '}
        <code>core_Blue_WRITE</code> only send to it. Members of <code>core_Blue</code> do both.
      </p>
      <p>People without a group see only other people without a group.</p>
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
  throw new AppError('not_found', 'No group at this address. Open Groups to see all groups.');
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
      <Notice c={c} sentences={{ created: 'Group added. To add members, open a person and select the group.' }} />
      <Problem error={refused} />
      <p>
        Shown on devices as <strong>{nameOnDevices(name)}</strong>. Members {direction ?? 'send and receive'}.
      </p>
      {members.refused === undefined ? (
        <Members c={c} deps={deps} found={members.done} />
      ) : (
        <Missing>Couldn't load the members. {members.refused.message}</Missing>
      )}
      {isAdmin(c) ? (
        <Confirm label="Delete group…" action={`/groups/${id}/delete`} button={`Delete ${name}`}>
          <p>{deletionEffect(name, members.done ?? {})}</p>
          <p>
            Connected devices apply this within 75 seconds. People left without a group see only others without a group.
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

function deletionEffect(name: string, { results, count }: Partial<Page<Account>>): string {
  const [first] = results ?? [];
  if (count === 0) return `${name} has no members.`;
  if (count === 1 && first !== undefined) return `1 person loses ${name}: ${first.username}. The account stays.`;
  const members = count === undefined ? 'All members' : `${count} people`;
  return `${members} lose ${name}. Their accounts stay, but they no longer see each other through it.`;
}

function Members({ c, deps, found: { results, count } }: { c: PageContext; deps: Deps; found: Page<Account> }) {
  if (count === 0)
    return (
      <Empty>
        No members yet. Open a person under <a href="/people">People</a> and select this group.
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
          caption="Members by username"
          columns={[{ label: 'Person' }, { label: 'Status' }, { label: 'Role' }]}
          rows={rows}
        />
      </div>
      <Pager url={new URL(c.req.url)} page={pageNumber(c.req.query('page'))} pageSize={GROUP_PAGE_SIZE} count={count} />
    </>
  );
}
