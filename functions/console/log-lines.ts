// Lines of logs as people read them: when, how bad, what, whether they are JSON (ours, the proxy's, the sign-in's) or plain text.

import { objectIn } from '../../shared/domain/json-text.ts';

export interface LogLine {
  /** Milliseconds; undefined where the line does not say. */
  atMs: number | undefined;
  level: 'warning' | 'critical' | undefined;
  /** What happened; the whole line when it is plain text. */
  text: string;
  /** What else a line of JSON holds, as `name=value`. */
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

/** What this very page causes while it follows the log: it would be new for ever. */
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
