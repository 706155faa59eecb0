// /missions: lists the missions of the core and their kept archives. Its forms restore and delete
// archives.

import type { AppError } from '@holdfast/kit/app-error';
import { counted, formatBytes } from '@holdfast/kit/format';
import { deleteArchive, restoreMission } from '../../../shared/core/missions/change.ts';
import type { CoreMission, MissionArchive, MissionList } from '../../../shared/core/missions/port.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { goTo } from '../../../shared/http/page.tsx';
import { actingIn } from '../../../shared/http/sign-in.ts';
import { type Attempt, attempt } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../../pages/page-routes.ts';
import { Card, Confirm, Search } from '../../pages/parts/card.tsx';
import { Missing, Notice, Problem, Warning } from '../../pages/parts/notice.tsx';
import { Empty, pageNumber, Pager, Table } from '../../pages/parts/table.tsx';
import { type Clock, clockOf, When } from '../../pages/parts/time.tsx';

export const MISSIONS_PATH = '/missions';
const PAGE_SIZE = 50;

const DONE = {
  archived: 'Archive kept on this server. The mission is unchanged.',
  deleted: 'Mission deleted. Subscribed devices were told.',
  restored: 'Mission restored, without members. Devices subscribe to it again.',
  forgotten: 'Archive deleted.',
};

/** Adds the routes of this file. */
export function missionsPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);

  pages.get(MISSIONS_PATH, { access: 'viewer' }, function listMissions(c) {
    return showMissions(c, deps);
  });
  pages.post(`${MISSIONS_PATH}/archives/:id/restore`, { access: 'admin' }, (c) =>
    answer(c, deps, 'restored', () => restoreMission(actingIn(c, deps), c.req.param('id') ?? '')),
  );
  pages.post(`${MISSIONS_PATH}/archives/:id/delete`, { access: 'admin' }, (c) =>
    answer(c, deps, 'forgotten', () => deleteArchive(actingIn(c, deps), c.req.param('id') ?? '')),
  );
}

async function answer(
  c: PageContext,
  deps: Deps,
  done: keyof typeof DONE,
  work: () => Promise<unknown>,
): Promise<Response> {
  const { refused } = await attempt(work, 'not_found');
  return refused === undefined ? goTo(c, `${MISSIONS_PATH}?done=${done}`) : showMissions(c, deps, refused);
}

async function showMissions(c: PageContext, deps: Deps, refused?: AppError): Promise<Response> {
  const [list, archives] = await Promise.all([
    attempt(() => deps.together('missions', () => deps.coreMissions.list())),
    attempt(() => deps.missionArchives.list()),
  ]);
  const clock = clockOf(deps);
  const body = (
    <>
      <Notice c={c} sentences={DONE} />
      <Problem error={refused} />
      <Search
        action={MISSIONS_PATH}
        label="Search missions"
        value={searchOf(c)}
        placeholder="Name, description, keyword"
      />
      <Missions c={c} list={list} clock={clock} />
      <Card title="Kept archives" id="archives">
        <Archives archives={archives} mayChange={isAdmin(c)} clock={clock} />
      </Card>
    </>
  );
  return framed(c, deps, { title: 'Missions', current: 'missions', body, refused });
}

function searchOf(c: PageContext): string {
  return (c.req.query('search') ?? '').trim().slice(0, 200);
}

function Missions({ c, list, clock }: { c: PageContext; list: Attempt<MissionList>; clock: Clock }) {
  if (list.refused !== undefined)
    return <Missing>Couldn't list the missions. {list.refused.message} Devices are not affected.</Missing>;
  const { missions, messages } = list.done;
  const search = searchOf(c);
  const found = missions.filter((mission) => matches(mission, search.toLowerCase()));
  if (found.length === 0)
    return search === '' ? (
      <Empty>
        <p>No missions yet. Devices create them: in ATAK with the Data Sync tool.</p>
      </Empty>
    ) : (
      <Empty>
        <p>
          No missions match “{search}”. <a href={MISSIONS_PATH}>Show all missions</a>
        </p>
      </Empty>
    );
  const page = pageNumber(c.req.query('page'));
  const columns = [
    { label: 'Mission' },
    { label: 'Map items', numeric: true },
    { label: 'Files', numeric: true },
    { label: 'Size of files', numeric: true },
    { label: 'Access' },
    { label: 'Last change' },
  ];
  const rows = found
    .slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE)
    .map((mission) => [
      <Name mission={mission} />,
      String(mission.size.items),
      String(mission.size.files),
      formatBytes(mission.size.bytes),
      formatAccess(mission),
      <When at={mission.lastEditedAt} clock={clock} never="unknown" />,
    ]);
  return (
    <>
      {messages.map((message) => (
        <Warning>The core did not list everything: {message}</Warning>
      ))}
      <Table caption="Missions by name" columns={columns} rows={rows} />
      <Pager url={new URL(c.req.url)} page={page} pageSize={PAGE_SIZE} count={found.length} />
    </>
  );
}

function Name({ mission: { guid, name, description } }: { mission: CoreMission }) {
  return (
    <>
      <a href={`${MISSIONS_PATH}/${guid}`}>
        <bdi>{name}</bdi>
      </a>
      {description === '' ? null : <div class="fine">{description.slice(0, 200)}</div>}
    </>
  );
}

/** Who may read it. */
export function formatAccess({ hasPassword, inviteOnly }: Pick<CoreMission, 'hasPassword' | 'inviteOnly'>): string {
  if (inviteOnly) return 'by invitation';
  return hasPassword ? 'with a password' : 'its groups';
}

interface ArchivesProps {
  archives: Attempt<MissionArchive[]>;
  mayChange: boolean;
  clock: Clock;
}

function Archives({ archives: { done: archives, refused }, mayChange, clock }: ArchivesProps) {
  if (refused !== undefined) return <Missing>Couldn't list the archives. {refused.message}</Missing>;
  if (archives.length === 0)
    return (
      <p class="fine">No archives are kept.{mayChange ? ' To keep one, open a mission and select “Archive…”.' : ''}</p>
    );
  const columns = [
    { label: 'Mission' },
    { label: 'Groups' },
    { label: 'Kept' },
    { label: 'Size', numeric: true },
    ...(mayChange ? [{ label: 'Actions', silent: true }] : []),
  ];
  const rows = archives.map((archive) => [
    <bdi>{archive.name}</bdi>,
    archive.groups.join(', '),
    <When at={archive.keptAt} clock={clock} relative />,
    formatBytes(archive.bytes),
    ...(mayChange ? [<Changes archive={archive} />] : []),
  ]);
  return (
    <>
      <Table caption="Kept archives, newest first" columns={columns} rows={rows} />
      <p class="fine">
        {counted(archives.length, 'archive')} with {formatBytes(archives.reduce((sum, { bytes }) => sum + bytes, 0))} on
        this server.
      </p>
    </>
  );
}

function Changes({ archive: { id, name, groups, hasPassword, inviteOnly } }: { archive: MissionArchive }) {
  const path = `${MISSIONS_PATH}/archives/${id}`;
  return (
    <div class="row">
      <a class="button" href={`/api/mission-archives/${id}/content`}>
        Download <span class="silent">{name}</span>
      </a>
      <Confirm
        id={`restore-${id}`}
        label="Restore…"
        of={name}
        action={`${path}/restore`}
        button={`Restore ${name}`}
        danger={false}
      >
        <p>
          This makes a mission {name} for {groups.join(', ')} with the map items and files of the archive. Members
          subscribe again. Log and changes are not in an archive.
        </p>
        {hasPassword || inviteOnly ? (
          <p>
            The mission was protected, and its password is not kept. The restored one is by invitation only. To use it
            at once, download the archive and import it with a TAK client.
          </p>
        ) : null}
      </Confirm>
      <Confirm id={`forget-${id}`} label="Delete…" of={name} action={`${path}/delete`} button={`Delete ${name}`}>
        <p>The archive is gone for good. A mission of this name stays.</p>
      </Confirm>
    </div>
  );
}

function matches({ name, description, keywords }: CoreMission, text: string): boolean {
  return [name, description, ...keywords].some((each) => each.toLowerCase().includes(text));
}
