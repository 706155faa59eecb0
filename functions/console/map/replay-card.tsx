// The part of the Map page that replays stored positions, and exports them.

import { MAX_DAYS } from '../../../shared/core/tracks/rules.ts';
import { Card } from '../../pages/parts/card.tsx';

interface ReplayProps {
  /** `2026-01-31T14:05` in that time zone. */
  from: string;
  to: string;
  group: string;
  groups: readonly string[];
  timeZone: string;
}

const SPEEDS = [
  { value: '10', label: '10 seconds a second' },
  { value: '60', label: '1 minute a second' },
  { value: '300', label: '5 minutes a second' },
  { value: '1800', label: '30 minutes a second' },
];

/** Without script it exports. */
export function ReplayCard({ from, to, group, groups, timeZone }: ReplayProps) {
  return (
    <Card title="Replay and export" id="replay">
      <form id="replay-form" class="replay" method="get" action="/map/export" data-zone={timeZone}>
        <div class="field">
          <label for="replay-from">From</label>
          <input id="replay-from" name="from" type="datetime-local" value={from} required />
        </div>
        <div class="field">
          <label for="replay-to">To</label>
          <input id="replay-to" name="to" type="datetime-local" value={to} required />
        </div>
        <div class="field">
          <Choice id="replay-group" name="group" label="Group" all="all groups" value={group} choices={groups} />
        </div>
        <div class="row">
          <button type="button" id="replay-load" class="when-scripted">
            Replay
          </button>
          {(['kml', 'gpx', 'csv'] as const).map((format) => (
            <button type="submit" name="format" value={format} class="quiet">
              Export {format.toUpperCase()}
            </button>
          ))}
        </div>
      </form>
      <p id="replay-status" role="status"></p>
      <p class="fine">
        Stored positions of everything that reports one, at most {MAX_DAYS} days. Times are in {timeZone}.
      </p>
    </Card>
  );
}

/** Below the map, so that both are in sight on a phone. The script shows it. */
export function ReplayBar() {
  return (
    <div id="replay-bar" class="replay-bar" hidden>
      <button type="button" id="replay-play">
        Play
      </button>
      <label class="silent" for="replay-slider">
        Time
      </label>
      <input id="replay-slider" type="range" step="1000" />
      <label class="silent" for="replay-speed">
        Speed
      </label>
      <select id="replay-speed">
        {SPEEDS.map(({ value, label }) => (
          <option value={value} selected={value === '60'}>
            {label}
          </option>
        ))}
      </select>
      <button type="button" id="replay-leave" class="quiet">
        Back to live
      </button>
      <span id="replay-time"></span>
    </div>
  );
}

interface ChoiceProps {
  id: string;
  name: string;
  label: string;
  all: string;
  value: string;
  choices: readonly string[];
  /** Only screen readers get the label. */
  silent?: boolean;
}

/** A filter whose value stays listed when no device has it any more. */
export function Choice({ id, name, label, all, value, choices, silent = false }: ChoiceProps) {
  const known = value === '' || choices.includes(value) ? choices : [value, ...choices];
  return (
    <>
      <label class={silent ? 'silent' : undefined} for={id}>
        {label}
      </label>
      <select id={id} name={name}>
        <option value="">{all}</option>
        {known.map((choice) => (
          <option value={choice} selected={choice === value}>
            {choice}
          </option>
        ))}
      </select>
    </>
  );
}
