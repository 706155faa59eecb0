// GET /logs: shows the last lines of a log with a search; follows the log unless paused.

import { AppError } from '@holdfast/kit/app-error';
import { counted } from '@holdfast/kit/format';
import { objectIn } from '@holdfast/kit/json';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { attempt } from '../pages/form.ts';
import { framed } from '../pages/frame.tsx';
import { type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Search, Tabs } from '../pages/parts/card.tsx';
import { Missing } from '../pages/parts/notice.tsx';
import { Empty } from '../pages/parts/table.tsx';
import { timeInZone } from '../pages/parts/time.tsx';

/**
 * A log line for people, parsed from JSON (ours, the proxy's, the sign-in's) or from plain text.
 */
export interface LogLine {
  /** Milliseconds; undefined if the line has no time. */
  atMs: number | undefined;
  level: 'warning' | 'critical' | undefined;
  /** The event; the whole line if it is plain text. */
  text: string;
  /** The other fields of a JSON line, as `name=value`. */
  rest: string;
}

const LEVELS: readonly (readonly [level: 'warning' | 'critical', words: RegExp])[] = [
  ['critical', /^(?:error|fatal|panic|critical|severe|alert|emerg)/i],
  ['warning', /^warn/i],
];
const PLAIN: readonly (readonly [level: 'warning' | 'critical', words: RegExp])[] = [
  ['critical', /\b(?:ERROR|FATAL|PANIC|SEVERE|CRITICAL)\b|\blevel=(?:error|fatal)\b/],
  ['warning', /\bWARN(?:ING)?\b|\blevel=warn/],
];

/** A line that this page itself causes while it follows the log; it would refresh forever. */
export function isOfFollowing(line: string): boolean {
  return line.startsWith('{') && line.includes('"event":"http.request"') && line.includes('"path":"/logs"');
}

export function readLogLine(line: string): LogLine {
  if (!line.startsWith('{')) return plain(line);
  const { time, timestamp, ts, level, event, msg, message, role: _, ...fields } = objectIn(line);
  const what = [event, msg, message].filter((each) => typeof each === 'string');
  const [head, ...more] = what;
  if (head === undefined) return plain(line);
  const rest = Object.entries(fields).map(([name, value]) => `${name}=${valueOf(value)}`);
  return {
    atMs: timeOf(time ?? timestamp ?? ts),
    level: typeof level === 'string' ? levelBy(LEVELS, level) : undefined,
    text: head,
    rest: [...more, ...rest].join(' '),
  };
}

function plain(line: string): LogLine {
  return { atMs: undefined, level: levelBy(PLAIN, line), text: line, rest: '' };
}

function levelBy(table: typeof LEVELS, text: string): LogLine['level'] {
  return table.find(([, words]) => words.test(text))?.[0];
}

/** ISO 8601, or seconds since 1970. */
function timeOf(value: unknown): number | undefined {
  const ms = typeof value === 'number' ? value * 1000 : typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isNaN(ms) || Math.abs(ms) > 8.64e15 ? undefined : ms;
}

function valueOf(value: unknown): string {
  return typeof value === 'string' && !/[\s"]/.test(value) && value !== '' ? value : JSON.stringify(value);
}

const HERE = '/logs';
/** Our own log is the most useful one. */
const FIRST = 'management';
/** More lines would make the page slow; the API returns up to 5000. */
const TAILS = [100, 200, 500, 1000, 2000];
const DEFAULT_TAIL = 200;

interface Input {
  name: string;
  tail: number;
  search: string;
  onlyBad: boolean;
  live: boolean;
}

/** Adds the route of this file. */
export function logsPage(app: App, deps: Deps): void {
  pagesOf(app, deps, ['console']).get(HERE, { access: 'admin' }, async function showLogs(c) {
    const { done: names, refused } = await attempt(() => deps.logFiles.names());
    const body =
      names === undefined ? <Missing>{refused?.message}</Missing> : await toLogView(deps, names, inputOf(c, names));
    return framed(c, deps, { title: 'Logs', current: 'logs', body });
  });
}

function inputOf({ req }: PageContext, names: readonly string[]): Input {
  return {
    name: req.query('name') ?? names.find((name) => name === FIRST) ?? names[0] ?? '',
    tail: TAILS.find((tail) => String(tail) === req.query('tail')) ?? DEFAULT_TAIL,
    search: (req.query('search') ?? '').slice(0, 200),
    onlyBad: req.query('only') === 'bad',
    live: req.query('live') !== 'off',
  };
}

async function toLogView(deps: Deps, names: readonly string[], input: Input) {
  if (names.length === 0) return <Empty>No logs yet. Each part of the stack starts one.</Empty>;
  const lines = await deps.logFiles.tail(input.name, input.tail);
  if (lines === undefined)
    throw new AppError('not_found', `No log is named "${input.name}". Logs: ${names.join(', ')}.`);
  const wanted = lines
    .filter((line) => !isOfFollowing(line) && line.toLowerCase().includes(input.search.toLowerCase()))
    .map(readLogLine);
  const shown = input.onlyBad ? wanted.filter(({ level }) => level !== undefined) : wanted;
  return (
    <>
      <Tabs
        label="Logs"
        tabs={names.map((name) => [addressOf({ ...input, name, search: '' }), name] as const)}
        current={addressOf({ ...input, search: '' })}
      />
      <HiddenInput input={input} />
      <p class="row">
        <a class="button" href={addressOf({ ...input, live: !input.live })}>
          {input.live ? 'Pause' : 'Follow the log'}
        </a>
        <a class="button" href="#newest">
          Go to newest
        </a>
      </p>
      <Lines shown={shown} of={lines.length} input={input} timeZone={deps.timeZone} />
    </>
  );
}

/** Leaves out default values. */
function addressOf({ name, tail, search, onlyBad, live }: Input): string {
  const query = new URLSearchParams({
    name,
    ...(tail === DEFAULT_TAIL ? {} : { tail: String(tail) }),
    ...(search === '' ? {} : { search }),
    ...(onlyBad ? { only: 'bad' } : {}),
    ...(live ? {} : { live: 'off' }),
  });
  return `${HERE}?${query.toString()}`;
}

function HiddenInput({ input: { name, tail, search, onlyBad, live } }: { input: Input }) {
  return (
    <Search action={`${HERE}#newest`} label="Search these lines" value={search}>
      <input type="hidden" name="name" value={name} />
      {live ? null : <input type="hidden" name="live" value="off" />}
      <label class="silent" for="tail">
        Number of lines
      </label>
      <select id="tail" name="tail">
        {TAILS.map((each) => (
          <option value={String(each)} selected={each === tail}>
            last {each}
          </option>
        ))}
      </select>
      <label class="silent" for="only">
        Filter lines
      </label>
      <select id="only" name="only">
        <option value="">all lines</option>
        <option value="bad" selected={onlyBad}>
          problems only
        </option>
      </select>
    </Search>
  );
}

interface LinesProps {
  shown: readonly LogLine[];
  /** Number of lines that were searched. */
  of: number;
  input: Input;
  timeZone: string;
}

function Lines({ shown, of, input, timeZone }: LinesProps) {
  const live = input.live ? { 'data-live': 'self', 'data-every': '5' } : {};
  const isPart = input.search !== '' || input.onlyBad;
  return (
    <div id="lines" data-refresh {...live}>
      <p class="fine">
        {isPart ? `${counted(shown.length, 'line')} of the last ${of}` : `The last ${counted(of, 'line')}`}, newest
        last.
        {input.live ? <noscript> Reload this page to see more.</noscript> : ' Paused.'}
      </p>
      {shown.length === 0 ? (
        <Empty>{of === 0 ? 'No log lines yet.' : 'No matching lines. Try a shorter search or more lines.'}</Empty>
      ) : (
        <ol class="loglines" aria-label={`Lines of ${input.name}`}>
          {dated(shown, timeZone).map(({ line, day, time }) => (
            <>
              {day === undefined ? null : <li class="day">{day}</li>}
              <Line line={line} time={time} />
            </>
          ))}
        </ol>
      )}
      <p id="newest" />
    </div>
  );
}

const MARKS = { warning: 'WARN', critical: 'ERROR' } as const;

interface DatedLine {
  line: LogLine;
  /** Set on the first line of a day. */
  day: string | undefined;
  time: string | undefined;
}

function dated(lines: readonly LogLine[], timeZone: string): DatedLine[] {
  let last: string | undefined;
  return lines.map((line) => {
    if (line.atMs === undefined) return { line, day: undefined, time: undefined };
    const [today, time] = timeInZone(new Date(line.atMs).toISOString(), timeZone, { seconds: true }).split(' ');
    const day = today === last ? undefined : today;
    last = today;
    return { line, day, time };
  });
}

function Line({ line: { atMs, level, text, rest }, time }: { line: LogLine; time: string | undefined }) {
  // Plain text names its level itself.
  const isPlain = atMs === undefined && rest === '';
  return (
    <li class={level}>
      {time === undefined ? null : <time>{time} </time>}
      {level === undefined || isPlain ? null : <b>{MARKS[level]} </b>}
      {text}
      {rest === '' ? null : <span> {rest}</span>}
    </li>
  );
}
