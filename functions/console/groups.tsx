// /groups: the channels that devices hear each other on, and a new one.

import { CHANNEL_PREFIX } from '../../shared/domain/names.ts';
import { actingIn } from '../../shared/http/acting.ts';
import type { Deps } from '../../shared/http/deps.ts';
import type { App } from '../../shared/http/env.ts';
import { goTo } from '../../shared/http/page.tsx';
import type { AppError } from '../../shared/domain/app-error.ts';
import type { GroupName } from '../../shared/ports/identity.ts';
import { createGroup } from '../../shared/verbs/create-group.ts';
import { attempt, faultOf, type Form, formOf } from '../pages/form.ts';
import { framed } from '../pages/frame.tsx';
import { isAdmin, type PageContext } from '../pages/page-routes.ts';
import { Card } from '../pages/parts/card.tsx';
import { Field } from '../pages/parts/field.tsx';
import { Missing, Notice, Problem } from '../pages/parts/notice.tsx';
import { Empty, pageNumber, Pager, Table } from '../pages/parts/table.tsx';
import { directionOf } from './group-checks.tsx';
import { peoplePages } from './people-pages.ts';
import { listChannels } from '../../shared/verbs/list-channels.ts';

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
