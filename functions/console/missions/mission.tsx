// /missions/{guid}: shows a mission with members, contents, log and changes. Its forms archive and
// delete it.

import type { Child } from 'hono/jsx';
import type { AppError } from '@holdfast/kit/app-error';
import { counted, formatBytes } from '@holdfast/kit/format';
import { archiveMission, deleteMission, missionOf } from '../../../shared/core/missions/change.ts';
import type { CoreMissionDetail } from '../../../shared/core/missions/port.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { goTo } from '../../../shared/http/page.tsx';
import { actingIn } from '../../../shared/http/sign-in.ts';
import { attempt } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../../pages/page-routes.ts';
import { Card, Confirm, Facts } from '../../pages/parts/card.tsx';
import { Problem } from '../../pages/parts/notice.tsx';
import { type Column, Table } from '../../pages/parts/table.tsx';
import { type Clock, clockOf, When } from '../../pages/parts/time.tsx';
import { formatAccess, MISSIONS_PATH } from './missions.tsx';

/** More rows would make the page slow. The API returns all of them. */
const MAX_ROWS = 200;

const ROLES: Readonly<Record<string, string>> = {
  MISSION_OWNER: 'Owner',
  MISSION_SUBSCRIBER: 'Subscriber',
  MISSION_READONLY_SUBSCRIBER: 'Read-only',
};

const CHANGES: Readonly<Record<string, string>> = {
  CREATE_MISSION: 'Mission created',
  DELETE_MISSION: 'Mission deleted',
  ADD_CONTENT: 'Added',
  REMOVE_CONTENT: 'Removed',
  CREATE_DATA_FEED: 'Feed added',
  DELETE_DATA_FEED: 'Feed removed',
};

/** Adds the routes of this file. */
export function missionPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);
  const path = `${MISSIONS_PATH}/:guid`;

  pages.get(path, { access: 'viewer' }, function readMission(c) {
    return showMission(c, deps);
  });
  pages.post(`${path}/archive`, { access: 'admin' }, async function keepArchive(c) {
    const { refused } = await attempt(() => archiveMission(actingIn(c, deps), guidIn(c)));
    return refused === undefined ? goTo(c, `${MISSIONS_PATH}?done=archived#archives`) : showMission(c, deps, refused);
  });
  pages.post(`${path}/delete`, { access: 'admin' }, async function removeMission(c) {
    const { refused } = await attempt(() => deleteMission(actingIn(c, deps), guidIn(c)));
    return refused === undefined ? goTo(c, `${MISSIONS_PATH}?done=deleted`) : showMission(c, deps, refused);
  });
}

function guidIn(c: PageContext): string {
  return c.req.param('guid') ?? '';
}

async function showMission(c: PageContext, deps: Deps, refused?: AppError): Promise<Response> {
  const mission = await missionOf(deps, guidIn(c));
  const clock = clockOf(deps);
  const body = (
    <>
      <Problem error={refused} />
      <Overview mission={mission} clock={clock} />
      {isAdmin(c) ? <Actions mission={mission} /> : null}
      <Members mission={mission} clock={clock} />
      <Files mission={mission} clock={clock} />
      <Items mission={mission} clock={clock} />
      <Log mission={mission} clock={clock} />
    </>
  );
  const heading = <bdi>{mission.name}</bdi>;
  return framed(c, deps, { title: mission.name, heading, current: 'missions', body, refused });
}

interface PartProps {
  mission: CoreMissionDetail;
  clock: Clock;
}

function Overview({ mission, clock }: PartProps) {
  const { description, groups, keywords, size, createdAt, lastEditedAt, creatorUid, guid } = mission;
  return (
    <Card>
      {description === '' ? null : <p>{description}</p>}
      <Facts
        of={{
          Groups: groups.join(', ') || undefined,
          Access: formatAccess(mission),
          Size: `${counted(size.items, 'map item')}, ${counted(size.files, 'file')} with ${formatBytes(size.bytes)}`,
          Keywords: keywords.join(', ') || undefined,
          Created: <When at={createdAt} clock={clock} never="unknown" />,
          'Created by': creatorUid === '' ? undefined : <bdi class="uid">{creatorUid}</bdi>,
          'Last change': <When at={lastEditedAt} clock={clock} never="unknown" relative />,
          GUID: <span class="uid">{guid}</span>,
        }}
      />
      <p class="fine">
        <a href={MISSIONS_PATH}>All missions</a>
      </p>
    </Card>
  );
}

function Actions({ mission: { guid, name, members, size, hasPassword } }: { mission: CoreMissionDetail }) {
  const path = `${MISSIONS_PATH}/${guid}`;
  return (
    <Card class="row">
      <Confirm
        id="archive-mission"
        label="Archive…"
        of={name}
        action={`${path}/archive`}
        button={`Archive ${name}`}
        danger={false}
      >
        <p>
          This keeps the newest version of each map item and all files ({formatBytes(size.bytes)}) on this server. The
          mission stays. Members, log and changes are not in an archive{hasPassword ? ', nor is the password' : ''}.
        </p>
      </Confirm>
      <Confirm id="delete-mission" label="Delete…" of={name} action={`${path}/delete`} button={`Delete ${name}`}>
        <p>
          The mission ends for {counted(members.length, 'subscribed device')} and can't be brought back, except from an
          archive. Its files stay at the core until retention deletes them.
        </p>
      </Confirm>
    </Card>
  );
}

interface RowsProps {
  title: string;
  none: string;
  columns: readonly Column[];
  rows: readonly (readonly Child[])[];
}

function Rows({ title, none, columns, rows }: RowsProps) {
  return (
    <Card title={title}>
      {rows.length === 0 ? (
        <p class="fine">{none}</p>
      ) : (
        <Table caption={title} columns={columns} rows={rows.slice(0, MAX_ROWS)} />
      )}
      {rows.length <= MAX_ROWS ? null : (
        <p class="fine">
          The first {MAX_ROWS} of {rows.length}. The API returns all: GET /api/missions/GUID.
        </p>
      )}
    </Card>
  );
}

function Members({ mission: { members }, clock }: PartProps) {
  const rows = members.map(({ clientUid, username, role, since }) => [
    <bdi>{username}</bdi>,
    <bdi class="uid">{clientUid}</bdi>,
    ROLES[role] ?? role,
    <When at={since} clock={clock} never="unknown" />,
  ]);
  const columns = [{ label: 'Person' }, { label: 'Device' }, { label: 'Role' }, { label: 'Since' }];
  return <Rows title="Members" none="No device is subscribed." columns={columns} rows={rows} />;
}

function Files({ mission: { files }, clock }: PartProps) {
  const rows = files.map(({ name, mimeType, bytes, addedAt, addedBy }) => [
    <bdi>{name}</bdi>,
    mimeType,
    formatBytes(bytes),
    <When at={addedAt} clock={clock} never="unknown" />,
    <bdi class="uid">{addedBy}</bdi>,
  ]);
  const columns = [
    { label: 'File' },
    { label: 'Type' },
    { label: 'Size', numeric: true },
    { label: 'Added' },
    { label: 'Added by' },
  ];
  return <Rows title="Files" none="No files." columns={columns} rows={rows} />;
}

function Items({ mission: { items }, clock }: PartProps) {
  const rows = items.map(({ uid, callsign, type, addedAt, addedBy }) => [
    <bdi>{callsign === '' ? uid : callsign}</bdi>,
    <bdi>{type}</bdi>,
    <When at={addedAt} clock={clock} never="unknown" />,
    <bdi class="uid">{addedBy}</bdi>,
  ]);
  const columns = [{ label: 'Map item' }, { label: 'CoT type' }, { label: 'Added' }, { label: 'Added by' }];
  return <Rows title="Map items" none="No map items." columns={columns} rows={rows} />;
}

function Log({ mission: { log, changes }, clock }: PartProps) {
  const entries = log.map(({ content, author, at }) => [
    <When at={at} clock={clock} never="unknown" />,
    <bdi>{content}</bdi>,
    <bdi class="uid">{author}</bdi>,
  ]);
  const made = changes.map(({ type, subject, author, at }) => [
    <When at={at} clock={clock} never="unknown" />,
    <bdi>{`${CHANGES[type] ?? type}${subject === '' ? '' : `: ${subject}`}`}</bdi>,
    <bdi class="uid">{author}</bdi>,
  ]);
  const columns = (what: string): Column[] => [{ label: 'Time' }, { label: what }, { label: 'By' }];
  return (
    <>
      <Rows title="Log" none="No log entries." columns={columns('Entry')} rows={entries} />
      <Rows title="Changes" none="No changes." columns={columns('Change')} rows={made} />
    </>
  );
}
