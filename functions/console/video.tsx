// GET, POST /video: the video feeds that devices see. POST /video/delete: deletes one.

import { z } from '@hono/zod-openapi';
import type { AppError } from '@holdfast/kit/app-error';
import { deviceGroupName } from '@holdfast/kit/names';
import { addVideoFeed, deleteVideoFeed } from '../../shared/core/contents/change.ts';
import type { RelayStream, VideoFeed } from '../../shared/core/contents/port.ts';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { goTo } from '../../shared/http/page.tsx';
import { actingIn } from '../../shared/http/sign-in.ts';
import { channelNames } from '../../shared/people/groups.ts';
import { type Attempt, attempt, faultOf, type Form, formOf, parsed } from '../pages/form.ts';
import { framed } from '../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Card, Confirm } from '../pages/parts/card.tsx';
import { Checks, Field } from '../pages/parts/field.tsx';
import { Missing, Notice, Problem } from '../pages/parts/notice.tsx';
import { Empty, Table } from '../pages/parts/table.tsx';
import { type Clock, clockOf, Distance } from '../pages/parts/time.tsx';

const PATH = '/video';
const DONE = {
  added: 'Feed added. Devices in its groups see it.',
  deleted: 'Feed deleted. Devices that have saved it keep it.',
};

const feedSchema = z.object({
  name: z.string().min(1, 'must not be empty').max(255, 'must have at most 255 characters'),
  url: z.string().min(1, 'must not be empty').max(2_000, 'must have at most 2,000 characters'),
  groups: z.array(z.string().max(100)).min(1, 'choose at least one group').max(200),
});

/** Adds the routes of this file. */
export function videoPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);

  pages.get(PATH, { access: 'viewer' }, function listAll(c) {
    return showFeeds(c, deps);
  });

  pages.post(PATH, { access: 'admin' }, async function add(c) {
    const form = await formOf(c);
    const given = { name: form.text('name'), url: form.text('url'), groups: form.all('groups') };
    const { refused } = await attempt(async () => addVideoFeed(actingIn(c, deps), parsed(feedSchema, given)));
    return refused === undefined ? goTo(c, `${PATH}?done=added`) : showFeeds(c, deps, { form, refused });
  });

  pages.post(`${PATH}/delete`, { access: 'admin' }, async function remove(c) {
    const uid = (await formOf(c)).exact('uid');
    const { refused } = await attempt(() => deleteVideoFeed(actingIn(c, deps), uid), 'not_found');
    return refused === undefined ? goTo(c, `${PATH}?done=deleted`) : showFeeds(c, deps, { refused });
  });
}

interface Retry {
  form?: Form;
  refused?: AppError;
}

async function showFeeds(c: PageContext, deps: Deps, { form, refused }: Retry = {}): Promise<Response> {
  const mayChange = isAdmin(c);
  const [list, relayed, channels] = await Promise.all([
    attempt(() => deps.coreContents.videoFeeds()),
    attempt(async () => deps.videoRelay?.streams()),
    mayChange ? attempt(() => channelNames(deps)) : { done: [] },
  ]);
  const body = (
    <>
      <Notice c={c} sentences={DONE} />
      <Problem error={refused} />
      {list.refused === undefined ? (
        <List feeds={list.done} mayChange={mayChange} />
      ) : (
        <Missing>Couldn't load the video feeds. {list.refused.message}</Missing>
      )}
      <Relayed streams={relayed} clock={clockOf(deps)} />
      {mayChange ? <AddForm channels={channels} form={form} refused={refused} /> : null}
    </>
  );
  return framed(c, deps, { title: 'Video', current: 'video', body, refused });
}

function List({ feeds, mayChange }: { feeds: readonly VideoFeed[]; mayChange: boolean }) {
  if (feeds.length === 0)
    return (
      <Empty>
        <p>No video feeds yet. Devices and administrators add them.</p>
      </Empty>
    );
  const columns = [{ label: 'Feed' }, { label: 'Address' }, ...(mayChange ? [{ label: 'Actions', silent: true }] : [])];
  const rows = feeds.map((feed) => [
    <bdi>{feed.name}</bdi>,
    <span class="uid">{feed.urls.join(' ')}</span>,
    ...(mayChange ? [<Delete feed={feed} />] : []),
  ]);
  return <Table caption="Video feeds" columns={columns} rows={rows} />;
}

function Delete({ feed: { uid, name } }: { feed: VideoFeed }) {
  return (
    <Confirm id={`delete-${uid}`} label="Delete…" of={name} action={`${PATH}/delete`} button={`Delete ${name}`}>
      <p>Devices no longer see this feed. The camera is not affected.</p>
      <input type="hidden" name="uid" value={uid} />
    </Confirm>
  );
}

/** Nothing without a relay. */
function Relayed({ streams, clock }: { streams: Attempt<RelayStream[] | undefined>; clock: Clock }) {
  if (streams.refused !== undefined) return <Missing>Couldn't list the streams. {streams.refused.message}</Missing>;
  if (streams.done === undefined) return null;
  const columns = [{ label: 'Stream' }, { label: 'Tracks' }, { label: 'Since' }, { label: 'Viewers', numeric: true }];
  const rows = streams.done.map(({ name, tracks, since, viewers }) => [
    <bdi>{name}</bdi>,
    tracks.join(', '),
    since === null ? '' : <Distance at={since} clock={clock} />,
    String(viewers),
  ]);
  return (
    <Card title="Streams at the video relay" id="relay">
      {rows.length === 0 ? (
        <p>No stream is published now.</p>
      ) : (
        <Table caption="Streams" columns={columns} rows={rows} />
      )}
    </Card>
  );
}

interface AddFormProps {
  channels: Attempt<string[]>;
  form: Form | undefined;
  refused: AppError | undefined;
}

function AddForm({ channels, form, refused }: AddFormProps) {
  if (channels.refused !== undefined)
    return <Missing>Couldn't load the groups, so no feed can be added. {channels.refused.message}</Missing>;
  const names = channels.done.map(deviceGroupName);
  return (
    <Card title="Add feed">
      <form method="post" action={PATH} class="narrow">
        <Field
          name="name"
          label="Name"
          value={form?.text('name')}
          error={faultOf(refused, 'name')}
          required
          maxlength={255}
          autocomplete="off"
        />
        <Field
          name="url"
          label="Address"
          hint="For example rtsp://camera.example.org:554/live, without a password: everyone in its groups sees it."
          value={form?.text('url')}
          error={faultOf(refused, 'url')}
          required
          maxlength={2_000}
          autocomplete="off"
          plain
        />
        <Checks
          legend="Groups"
          name="groups"
          choices={names.map((value) => ({ value, label: value }))}
          chosen={form?.all('groups') ?? []}
          error={faultOf(refused, 'groups')}
        />
        <button type="submit">Add feed</button>
      </form>
    </Card>
  );
}
