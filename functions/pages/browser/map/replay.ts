// Replays stored tracks on the map: play, pause, a slider for the time, and a choice of speeds.

import type { MapCanvas, Mark, Trail } from './canvas.ts';
import { type Loaded, loadBeginning, loadTracks, trackAt } from './tracks.ts';

interface Controls {
  form: HTMLFormElement;
  bar: HTMLElement;
  load: HTMLButtonElement;
  play: HTMLButtonElement;
  slider: HTMLInputElement;
  speed: HTMLSelectElement;
  leave: HTMLButtonElement;
  time: HTMLElement;
  status: HTMLElement;
}

const NO_TEAM = '#8a97a3';

/** `onChange`: a replay begins or ends. */
export function startReplay(
  map: MapCanvas,
  colors: () => ReadonlyMap<string, string>,
  onChange: (isOn: boolean) => void,
): void {
  const found = controlsOnPage();
  if (found !== undefined) new Replay(map, colors, onChange, found).start();
}

function controlsOnPage(): Controls | undefined {
  const byId = (id: string) => document.getElementById(id);
  const controls = {
    form: byId('replay-form'),
    bar: byId('replay-bar'),
    load: byId('replay-load'),
    play: byId('replay-play'),
    slider: byId('replay-slider'),
    speed: byId('replay-speed'),
    leave: byId('replay-leave'),
    time: byId('replay-time'),
    status: byId('replay-status'),
  };
  return Object.values(controls).includes(null) ? undefined : (controls as unknown as Controls);
}

class Replay {
  readonly #map: MapCanvas;
  readonly #colors: () => ReadonlyMap<string, string>;
  readonly #onChange: (isOn: boolean) => void;
  readonly #controls: Controls;
  readonly #format: Intl.DateTimeFormat;
  #loaded: Loaded | undefined;
  #colorsNow: ReadonlyMap<string, string> = new Map();
  #isPlaying = false;
  #frameAt = 0;

  constructor(
    map: MapCanvas,
    colors: () => ReadonlyMap<string, string>,
    onChange: (isOn: boolean) => void,
    controls: Controls,
  ) {
    this.#map = map;
    this.#colors = colors;
    this.#onChange = onChange;
    this.#controls = controls;
    const { zone: timeZone = 'UTC' } = controls.form.dataset;
    this.#format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' });
  }

  start(): void {
    const { load, play, slider, leave } = this.#controls;
    load.addEventListener('click', () => void this.#load());
    play.addEventListener('click', () => this.#play(!this.#isPlaying));
    slider.addEventListener('input', () => this.#show());
    leave.addEventListener('click', () => this.#leave());
  }

  async #load(): Promise<void> {
    const { form, load, status, slider } = this.#controls;
    if (!form.reportValidity()) return;
    const query = new URLSearchParams(
      [...new FormData(form)].flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
    );
    query.set('format', 'json');
    load.disabled = true;
    this.#loaded = undefined;
    status.textContent = 'Loading…';
    const address = `${form.getAttribute('action') ?? ''}?${query.toString()}`;
    try {
      const beginning = await loadBeginning(address);
      if (beginning.points > 0) this.#begin(beginning, lengthOf(query));
      const loaded = await loadTracks(address, (points) => {
        status.textContent = `Loading… ${points} positions so far`;
      });
      status.textContent = statusOf(loaded);
      if (loaded.points === 0) return;
      if (this.#loaded === undefined) this.#begin(loaded, loaded.untilMs - loaded.sinceMs);
      this.#loaded = loaded;
      slider.max = String(loaded.untilMs);
      this.#show();
    } catch (error) {
      status.textContent = `Couldn’t load the positions. ${error instanceof Error ? error.message : ''}`;
    } finally {
      load.disabled = false;
    }
  }

  /** Plays what is there. */
  #begin(loaded: Loaded, lengthMs: number): void {
    const { bar, slider } = this.#controls;
    this.#loaded = loaded;
    this.#colorsNow = this.#colors();
    slider.min = String(loaded.sinceMs);
    slider.max = String(loaded.sinceMs + lengthMs);
    slider.value = slider.min;
    bar.hidden = false;
    this.#onChange(true);
    this.#map.fit(loaded.tracks.flatMap(({ spots }) => spots));
    this.#play(true);
  }

  #play(isPlaying: boolean): void {
    const { play, slider } = this.#controls;
    if (isPlaying && slider.value === slider.max) slider.value = slider.min;
    this.#isPlaying = isPlaying;
    play.textContent = isPlaying ? 'Pause' : 'Play';
    this.#frameAt = performance.now();
    if (isPlaying) requestAnimationFrame((now) => this.#step(now));
  }

  #step(now: number): void {
    if (!this.#isPlaying) return;
    const { slider, speed } = this.#controls;
    const passedMs = Math.max(0, now - this.#frameAt) * Number(speed.value);
    this.#frameAt = now;
    slider.value = String(Math.min(Number(slider.max), Number(slider.value) + passedMs));
    this.#show();
    if (Number(slider.value) >= Number(slider.max)) this.#play(false);
    else requestAnimationFrame((next) => this.#step(next));
  }

  #show(): void {
    const { slider, time } = this.#controls;
    const atMs = Number(slider.value);
    const [marks, trails]: [Mark[], Trail[]] = [[], []];
    for (const track of this.#loaded?.tracks ?? []) {
      const found = trackAt(track, atMs);
      if (found === undefined) continue;
      const color = this.#colorsNow.get(track.uid) ?? NO_TEAM;
      marks.push({ name: track.name, color, ...found.spot });
      trails.push({ color, spots: found.trail });
    }
    this.#map.show(marks, trails);
    const text = this.#format.format(atMs);
    time.textContent = `${text}, ${marks.length} shown`;
    slider.setAttribute('aria-valuetext', text);
  }

  #leave(): void {
    const { bar, status, load } = this.#controls;
    this.#play(false);
    this.#loaded = undefined;
    bar.hidden = true;
    status.textContent = '';
    this.#onChange(false);
    load.focus();
  }
}

/** Of the time in the form, but for a change of the clock in between. */
function lengthOf(query: URLSearchParams): number {
  const [from, to] = ['from', 'to'].map((name) => Date.parse(`${query.get(name) ?? ''}Z`));
  return Math.max(0, (to ?? 0) - (from ?? 0));
}

function statusOf({ points, tracks, isCut }: Loaded): string {
  if (points === 0) return 'No positions are stored for this time. Choose another time or group.';
  const found = `${points} positions of ${tracks.length} devices.`;
  return isCut ? `${found} Older ones were left out: there are too many. Choose a shorter time.` : found;
}
