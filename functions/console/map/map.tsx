// /map: shows where connected devices are, as a map and as a table, and replays and exports stored
// positions. Also serves the script and the outlines of the map.

import { AppError } from '@holdfast/kit/app-error';
import { deviceGroupName } from '@holdfast/kit/names';
import { HOUR_MS, MINUTE_MS, momentOf, readWallTime, wallTimeAt, wallTimeText } from '@holdfast/kit/time';
import { TRACK_FORMATS } from '../../../shared/core/tracks/formats.ts';
import type { PositionedClient } from '../../../shared/core/tracks/port.ts';
import { trackQuery } from '../../../shared/core/tracks/rules.ts';
import { visibleClients } from '../../../shared/devices/connections/clients.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { goTo, PAGES_VERSION } from '../../../shared/http/page.tsx';
import { OwnerLink } from '../../pages/certificates/list.tsx';
import { type Attempt, attempt } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { type PageContext, pagesOf } from '../../pages/page-routes.ts';
import { Missing, Problem, Warning } from '../../pages/parts/notice.tsx';
import { Empty, Table } from '../../pages/parts/table.tsx';
import { type Clock, clockOf, Distance } from '../../pages/parts/time.tsx';
import { Choice, ReplayBar, ReplayCard } from './replay-card.tsx';

const PATH = '/map';
/** More rows would make the page slow. */
const MAX_SHOWN = 500;
const BEGIN_MS = 5 * MINUTE_MS;
const YEAR_SECONDS = 31_536_000;

const FILES = { 'script.js': 'map.js', 'outlines.json': 'outlines.json' } as const;

/** Adds the routes of this file. */
export function mapPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);

  pages.get(PATH, { access: 'viewer' }, function showPositions(c) {
    return showMap(c, deps);
  });
  pages.get(`${PATH}/export`, { access: 'viewer' }, async function sendOn(c) {
    const { done, refused } = await attempt(async () => exportAddress(c, deps));
    if (refused === undefined) return goTo(c, done);
    // The script of the page gets the words alone.
    if (!/\btext\/html\b/i.test(c.req.header('accept') ?? '')) throw refused;
    return showMap(c, deps, refused);
  });
  for (const [name, asset] of Object.entries(FILES))
    pages.get(`${PATH}/${name}`, { access: 'viewer' }, async function sendFile(c) {
      const file = await deps.assets.read(asset);
      if (file === undefined) throw new AppError('not_found', 'No file at this address.');
      const isCurrent = c.req.query('v') === PAGES_VERSION;
      return c.body(file.body, 200, {
        'Content-Type': file.contentType,
        'Cache-Control': isCurrent ? `private, max-age=${YEAR_SECONDS}, immutable` : 'no-cache',
        'X-Content-Type-Options': 'nosniff',
      });
    });
}

/** The address of the API for the form, whose times are in the time zone of the stack. */
function exportAddress(c: PageContext, deps: Deps): string {
  const [since, end] = (['from', 'to'] as const).map((name) => {
    const wall = readWallTime(c.req.query(name) ?? '');
    if (wall !== undefined) return new Date(momentOf(wall, deps.timeZone)).toISOString();
    throw new AppError('invalid', `${name}: must be a date with a time, such as 2026-01-31T14:05`);
  }) as [string, string];
  const wanted = c.req.query('format') ?? '';
  const format = ['json', ...TRACK_FORMATS].find((each) => each === wanted);
  if (format === undefined) throw new AppError('invalid', `format: must be one of: ${TRACK_FORMATS.join(', ')}`);
  const group = (c.req.query('group') ?? '').slice(0, 300);
  trackQuery({ since, until: end, group }, deps.now());
  const until = c.req.query('part') === 'begin' ? beginningOf(since, end) : end;
  const query = new URLSearchParams({ since, until, ...(group === '' ? {} : { group }), format });
  return `/api/tracks?${query.toString()}`;
}

/** A replay begins with it, while it loads the rest. */
function beginningOf(since: string, end: string): string {
  return new Date(Math.min(Date.parse(end), Date.parse(since) + BEGIN_MS)).toISOString();
}

interface Filters {
  group: string;
  role: string;
}

async function showMap(c: PageContext, deps: Deps, refused?: AppError): Promise<Response> {
  const filters = { group: filterOf(c, 'group'), role: filterOf(c, 'role') };
  const result = await attempt(() => deps.together('clients:positions', () => deps.coreTracks.positions()));
  const all = visibleClients(result.done ?? []);
  const clock = clockOf(deps);
  const untilMs = clock.now.getTime();
  const wall = (ms: number): string => wallTimeText(wallTimeAt(ms, deps.timeZone));
  const [from, to] = [c.req.query('from') ?? wall(untilMs - HOUR_MS), c.req.query('to') ?? wall(untilMs + MINUTE_MS)];
  const groups = [...new Set(all.flatMap((client) => client.groups.map(deviceGroupName)))].toSorted();
  const body = (
    <>
      <Problem error={refused} />
      <FilterForm filters={filters} groups={groups} roles={rolesOf(all)} />
      <MapFrame tiles={deps.settings.MAP_TILE_URL} />
      <ReplayBar />
      <ReplayCard from={from} to={to} group={filters.group} groups={groups} timeZone={deps.timeZone} />
      <div id="live-positions">
        <section id="positions" {...(refused === undefined ? { 'data-live': 'self', 'data-every': '5' } : {})}>
          <Positions result={result} shown={all.filter((client) => fits(client, filters))} clock={clock} />
        </section>
      </div>
      <script src={`${PATH}/script.js?v=${PAGES_VERSION}`} defer></script>
    </>
  );
  const tiles = deps.settings.MAP_TILE_URL;
  const images = tiles === undefined ? {} : { imagesFrom: new URL(tiles).origin };
  return framed(c, deps, { title: 'Map', current: 'map', body, refused, ...images });
}

function filterOf(c: PageContext, name: keyof Filters): string {
  return (c.req.query(name) ?? '').slice(0, 300);
}

function rolesOf(clients: readonly PositionedClient[]): string[] {
  return [...new Set(clients.map(({ role }) => role).filter((role) => role !== ''))].toSorted();
}

function fits({ groups, role }: PositionedClient, filters: Filters): boolean {
  const isInGroup = filters.group === '' || groups.map(deviceGroupName).includes(filters.group);
  return isInGroup && (filters.role === '' || role === filters.role);
}

function FilterForm({ filters, groups, roles }: { filters: Filters; groups: string[]; roles: string[] }) {
  return (
    <form class="search" method="get" action={PATH} role="search" aria-label="Filter the map">
      <Choice
        id="map-group"
        name="group"
        label="Group"
        all="all groups"
        value={filters.group}
        choices={groups}
        silent
      />
      <Choice id="map-role" name="role" label="Role" all="all roles" value={filters.role} choices={roles} silent />
      <button type="submit">Show</button>
    </form>
  );
}

function MapFrame({ tiles }: { tiles: string | undefined }) {
  return (
    <div class="when-scripted">
      <div id="map" class="map" data-outlines={`${PATH}/outlines.json?v=${PAGES_VERSION}`} data-tiles={tiles}>
        <canvas
          tabindex={0}
          role="application"
          aria-label="Map. Arrow keys move it, plus and minus zoom, 0 shows all devices. The table below lists the positions."
        ></canvas>
        <div class="map-buttons">
          <button type="button" id="map-in" aria-label="Zoom in">
            +
          </button>
          <button type="button" id="map-out" aria-label="Zoom out">
            −
          </button>
          <button type="button" id="map-fit">
            All
          </button>
        </div>
      </div>
      <p class="fine" id="map-note" role="status">
        {tiles === undefined
          ? 'Outlines: Natural Earth.'
          : `Map tiles from ${new URL(tiles).host}. Outlines: Natural Earth.`}
      </p>
    </div>
  );
}

interface PositionsProps {
  result: Attempt<PositionedClient[]>;
  shown: readonly PositionedClient[];
  clock: Clock;
}

function Positions({ result, shown, clock }: PositionsProps) {
  if (result.refused !== undefined)
    return <Missing>Couldn't load the positions. {result.refused.message} This page retries automatically.</Missing>;
  if (shown.length === 0)
    return (
      <Empty>
        <p>
          No connected devices match. <a href={PATH}>Show all devices</a>
        </p>
      </Empty>
    );
  const columns = [
    { label: 'Callsign' },
    { label: 'Person' },
    { label: 'Team, role' },
    { label: 'Position' },
    { label: 'Reported' },
  ];
  const rows = shown
    .slice(0, MAX_SHOWN)
    .map((client) => [
      <Name client={client} />,
      <OwnerLink username={client.username} />,
      [client.team, client.role].filter((each) => each !== '').join(', '),
      formatPlace(client.position),
      <Reported at={client.position?.at ?? null} clock={clock} />,
    ]);
  return (
    <>
      {shown.length <= MAX_SHOWN ? null : (
        <Warning>
          Only the first {MAX_SHOWN} of {shown.length} devices are shown. Choose a group or a role.
        </Warning>
      )}
      <Table caption="Last positions by callsign" columns={columns} rows={rows} />
    </>
  );
}

function Reported({ at, clock }: { at: string | null; clock: Clock }) {
  return at === null ? null : <Distance at={at} clock={clock} />;
}

/** The script draws what the attribute holds. */
function Name({ client: { uid, callsign, team, position } }: { client: PositionedClient }) {
  const name = callsign === '' ? uid : callsign;
  if (position === null) return <bdi>{name}</bdi>;
  const { lat, lon } = position;
  return <bdi data-device={JSON.stringify({ uid, name: name.slice(0, 60), team, lat, lon })}>{name}</bdi>;
}

function formatPlace(position: PositionedClient['position']): string {
  if (position === null) return 'none yet';
  const { lat, lon, height } = position;
  const place = `${Math.abs(lat).toFixed(5)}° ${lat < 0 ? 'S' : 'N'}, ${Math.abs(lon).toFixed(5)}° ${lon < 0 ? 'W' : 'E'}`;
  return height === null ? place : `${place}, ${Math.round(height)} m`;
}
