// YAML of a person: read with the line of whatever is wrong in it, and changed entry by entry, so
// that comments, order and everything else stay as they were written.

import {
  isAlias,
  isMap,
  isScalar,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type Scalar,
  type YAMLMap,
} from 'yaml';
import { messageOf } from './app-error.ts';

/** Its message is a clause about what stands on that line. */
export class YamlFault extends Error {
  readonly line: number;

  constructor(message: string, line: number) {
    super(message);
    this.line = line;
  }
}

export interface Entry {
  name: string;
  key: Scalar;
  /** Null: the text ends behind the colon. */
  value: Node | null;
}

export interface OpenYaml {
  root: YAMLMap;
  lineOf: (node: Node | null) => number;
}

/** Throws a YamlFault: broken, several documents, a name given twice, anything but a mapping. */
export function openYaml(text: string): OpenYaml {
  const lines = new LineCounter();
  const document = parsed(text, lines);
  const [error] = document.errors;
  if (error !== undefined) {
    const first = error.message.split(/ at line \d+|\n/)[0] ?? '';
    throw new YamlFault(first, error.linePos?.[0].line ?? 1);
  }
  const lineOf = (node: Node | null): number => lines.linePos(node?.range?.[0] ?? 0).line;
  const root = document.contents;
  if (!isMap(root)) throw new YamlFault('there are no names with values here', lineOf(root));
  return { root, lineOf };
}

/** Nesting without end exhausts the stack of the parser. */
function parsed(text: string, lineCounter: LineCounter) {
  try {
    return parseDocument(text, { lineCounter });
  } catch (error) {
    throw new YamlFault(messageOf(error), 1);
  }
}

/**
 * Throws a YamlFault for a name that is no plain word, and for a value that is written elsewhere
 * (an alias).
 */
export function entriesOf(map: YAMLMap, { lineOf }: OpenYaml): Entry[] {
  return map.items.map((pair) => {
    const { key, value } = pair as Pair<Node | null, Node | null>;
    if (!isScalar(key) || typeof key.value !== 'string' || key.anchor !== undefined)
      throw new YamlFault('a name is no plain word', lineOf(key));
    if (isAlias(value)) throw new YamlFault(`${key.value} leads to a value elsewhere (an alias)`, lineOf(value));
    return { name: key.value, key, value };
  });
}

/** Nothing is written there; `null` and `~` say the same. */
export function isNothing(value: Node | null): boolean {
  return value === null || (isScalar(value) && value.value === null);
}

/** Behind the value of an entry, in a comment of ours. */
const OUR_REMARK = /^[ \t]*# \d+ days?[ \t]*$/;

/**
 * `value` as YAML, empty for nothing. `remark` comes behind it unless a person has written
 * something there.
 */
export function withEntry(text: string, map: YAMLMap, entry: Entry, value: string, remark?: string): string {
  const colon = colonOf(text, entry);
  const end = isWritten(entry.value) ? endOf(entry.value) : colon + 1;
  const lineEnd = endOfLine(text, end);
  const behind = text.slice(end, lineEnd).replace(OUR_REMARK, '');
  const isOpen = map.flow !== true && behind.trim() === '';
  const message = remark !== undefined && isOpen ? ` # ${remark}` : behind;
  const shown = value === '' && map.flow === true ? 'null' : value;
  return `${text.slice(0, colon + 1)}${shown === '' ? '' : ` ${shown}`}${isOpen ? message.trimEnd() : message}${text.slice(lineEnd)}`;
}

/** Adds entries (`name: value`) behind the last one of a mapping that has one. */
export function withMoreEntries(
  text: string,
  map: YAMLMap,
  entries: readonly Entry[],
  added: readonly string[],
): string {
  const [first, last] = [entries[0], entries.at(-1)];
  if (map.flow === true || first === undefined || last === undefined) {
    const close = (map.range?.[1] ?? 1) - 1;
    const before = text.slice(0, close).trimEnd();
    const comma = before.endsWith('{') || before.endsWith(',') ? '' : ',';
    return `${before}${comma} ${added.map((line) => line.replace(/:$/, ': null')).join(', ')} ${text.slice(close)}`;
  }
  const start = first.key.range?.[0] ?? 0;
  const indent = ' '.repeat(start - (text.lastIndexOf('\n', start - 1) + 1));
  const end = endOfLine(text, isWritten(last.value) ? endOf(last.value) : colonOf(text, last));
  return `${text.slice(0, end)}${added.map((line) => `${lineBreak(text)}${indent}${line}`).join('')}${text.slice(end)}`;
}

/** The comment lines on top, behind the mark that some editors begin a file with. */
export function headOf(text: string): string {
  return /^\uFEFF?(?:(?:---)?[ \t]*(?:#.*)?\r?\n)*/.exec(text)?.[0] ?? '';
}

/** `line` on top: in the place of the comment that has these words, or before everything. */
export function withHeadLine(text: string, words: string, line: string): string {
  const head = headOf(text);
  const old = new RegExp(`^(\\uFEFF?)#.*${words}.*$`, 'im');
  const mark = head.startsWith('\uFEFF') ? '\uFEFF' : '';
  const next = old.test(head)
    ? head.replace(old, (_, kept: string) => `${kept}${line}`)
    : `${mark}${line}${lineBreak(text)}${head.slice(mark.length)}`;
  return next + text.slice(head.length);
}

/** As the text ends its lines. */
export function lineBreak(text: string): string {
  return text.includes('\r\n') ? '\r\n' : '\n';
}

export function endOfLine(text: string, from: number): number {
  const found = text.slice(from).search(/\r?\n/);
  return found < 0 ? text.length : from + found;
}

export function colonOf(text: string, { key }: Entry): number {
  return text.indexOf(':', key.range?.[1] ?? 0);
}

function isWritten(value: Node | null): value is Node {
  return value !== null && !(isScalar(value) && (value.source ?? '') === '' && value.type === 'PLAIN');
}

function endOf(value: Node): number {
  return value.range?.[1] ?? 0;
}
