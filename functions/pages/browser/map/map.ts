// The script of the Map page: draws the positions that stand in its table, which the page keeps up
// to date, and replays stored tracks.

import { MapCanvas, type Mark } from './canvas.ts';
import { loadOutlines } from './outlines.ts';
import { project } from './projection.ts';
import { startReplay } from './replay.ts';

/** As the server writes them into the table. */
interface ShownDevice {
  name: string;
  team: string;
  lat: number;
  lon: number;
}

/** Colors of the teams of the TAK apps. */
const TEAMS: Readonly<Record<string, string>> = {
  white: '#ffffff',
  yellow: '#f5e000',
  orange: '#ff8c1a',
  magenta: '#e83ce8',
  red: '#e8202a',
  maroon: '#8b1a2b',
  purple: '#7d3cc8',
  'dark blue': '#1c3f9e',
  blue: '#2f6bff',
  cyan: '#1fd6e0',
  teal: '#128c8c',
  green: '#2eb82e',
  'dark green': '#14692f',
  brown: '#8a5a2b',
};
const NO_TEAM = '#8a97a3';

export function teamColor(team: string): string {
  return TEAMS[team.toLowerCase()] ?? NO_TEAM;
}

function marksInTable(): Mark[] {
  return [...document.querySelectorAll<HTMLElement>('[data-device]')].map(({ dataset }) => {
    const { name, team, lat, lon } = JSON.parse(dataset['device'] ?? '') as ShownDevice;
    return { name, color: teamColor(team), ...project(lat, lon) };
  });
}

function start(frame: HTMLElement, canvas: HTMLCanvasElement): void {
  const { outlines = '', tiles } = frame.dataset;
  const map = new MapCanvas(canvas, tiles);
  let isLive = true;
  const showLive = (): void => {
    if (isLive) map.show(marksInTable());
  };
  loadOutlines(outlines).then(
    (loaded) => {
      map.outlines = loaded;
      map.draw();
    },
    () => {
      const note = document.getElementById('map-note');
      if (note !== null) note.textContent = 'Couldn’t load the outlines of land. Reload the page.';
    },
  );
  showLive();
  map.fit();
  const table = document.getElementById('live-positions');
  if (table !== null) new MutationObserver(showLive).observe(table, { childList: true, subtree: true });
  for (const [id, press] of Object.entries({
    'map-in': () => map.zoom(1),
    'map-out': () => map.zoom(-1),
    'map-fit': () => map.fit(),
  }))
    document.getElementById(id)?.addEventListener('click', press);
  startReplay(map, teamColorsByUid, (isOn) => {
    isLive = !isOn;
    showLive();
    if (isLive) map.fit();
  });
}

/** Of the devices that are connected now. */
function teamColorsByUid(): ReadonlyMap<string, string> {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-device]')];
  return new Map(
    rows.map(({ dataset }) => {
      const { uid, team } = JSON.parse(dataset['device'] ?? '') as ShownDevice & { uid: string };
      return [uid, teamColor(team)];
    }),
  );
}

const frame = document.getElementById('map');
const canvas = frame?.querySelector('canvas');
if (frame !== null && canvas !== null && canvas !== undefined) start(frame, canvas);
