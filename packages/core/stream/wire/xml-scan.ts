// Checks in one pass that an event is well-formed, and finds its parts. Accepts what an XML 1.0
// parser does, except that the document begins at its root, has no DOCTYPE, and is limited in
// depth, attributes and detail elements.

import { isAscii } from 'node:buffer';
import { StreamFault } from '../../model/stream.ts';
import {
  AMP,
  BANG,
  BRACKET,
  checkCharacters,
  CLASS,
  EQUAL,
  GREATER,
  LESS,
  malformed,
  QUESTION,
  QUOTE,
  skipCharacterData,
  skipComment,
  skipEqual,
  skipInstruction,
  skipName,
  skipReference,
  skipSpace,
  skipValue,
  SLASH,
  startsWith,
  TEXT_STOP,
} from './xml-bytes.ts';

export const MAX_DEPTH = 256;
export const MAX_ATTRIBUTES = 1024;
/** Directly in `<detail>`. */
export const MAX_CHILDREN = 65_536;

/**
 * Where the parts of an event lie, in bytes. `notes` holds, one after the other, four numbers for
 * each attribute of the root (start and end of name and value), four for each of the first
 * `<point>`, two for each element in the first `<detail>` (start and end). Places that are not
 * there are -1.
 */
export interface Outline {
  notes: number[];
  used: number;
  isAscii: boolean;
  rootName: number;
  /** Ends of their notes; those of the root begin at 0. */
  rootTo: number;
  pointFrom: number;
  pointTo: number;
  childrenFrom: number;
  childrenTo: number;
  detailStart: number;
  /** After the start tag. */
  detailContent: number;
  /** Where the end tag begins; -1 for `<detail/>`. */
  detailClose: number;
  detailEnd: number;
  /** Where the end tag of the root begins; -1 for `<event/>`. */
  rootClose: number;
}

/** More than so many are handed over instead of copied. */
const MAX_NOTES_COPIED = 4096;

const outline: Outline = {
  notes: [],
  used: 0,
  isAscii: true,
  rootName: 0,
  rootTo: 0,
  pointFrom: -1,
  pointTo: -1,
  childrenFrom: 0,
  childrenTo: 0,
  detailStart: -1,
  detailContent: -1,
  detailClose: -1,
  detailEnd: -1,
  rootClose: -1,
};

/** Start and end of the names of the open elements. */
const open = new Int32Array(2 * MAX_DEPTH);

/** Four numbers for each attribute of the tag that was read last. */
const attributes = new Int32Array(4 * (MAX_ATTRIBUTES + 1));
let attributesUsed = 0;

/**
 * The outline is written over by the next scan: its reader copies what it keeps. Throws a
 * StreamFault.
 */
export function scan(frame: Buffer): Outline {
  const end = frame.length;
  begin();
  outline.isAscii = isAscii(frame);
  if (!outline.isAscii) checkCharacters(frame);
  if (end === 0 || frame[0] !== LESS) throw malformed('it does not begin with its root', 0);
  let depth = 0;
  let i = 0;
  while (i < end) {
    if (frame[i] !== LESS) {
      i = depth > 0 ? skipText(frame, i, end) : skipSpaceAround(frame, i, end);
      continue;
    }
    const next = i + 1 < end ? (frame[i + 1] as number) : 0;
    if (next === SLASH) {
      depth--;
      i = readEndTag(frame, i, end, depth);
    } else if (next === BANG || next === QUESTION) {
      if (outline.rootName === 0) throw malformed('it does not begin with its root', 0);
      i = skipMarkup(frame, i, end, depth);
    } else {
      const after = readStartTag(frame, i, end, depth);
      if (frame[after - 2] !== SLASH) depth++;
      else if (depth < 3) noteEnd(i, after, depth, true);
      i = after;
    }
  }
  if (depth > 0 || outline.rootName === 0) throw malformed('elements without their end', end);
  return outline;
}

/** The notes of the last scan, for good. */
export function takeNotes(): number[] {
  if (outline.used <= MAX_NOTES_COPIED) return outline.notes.slice(0, outline.used);
  const { notes } = outline;
  outline.notes = [];
  return notes;
}

function begin(): void {
  if (outline.notes.length > MAX_NOTES_COPIED) outline.notes = [];
  outline.used = 0;
  outline.rootName = 0;
  outline.rootTo = 0;
  outline.pointFrom = -1;
  outline.pointTo = -1;
  outline.childrenFrom = 0;
  outline.childrenTo = 0;
  outline.detailStart = -1;
  outline.detailContent = -1;
  outline.detailClose = -1;
  outline.detailEnd = -1;
  outline.rootClose = -1;
}

/** Returns where the text ends: at a `<` or at the end. */
function skipText(frame: Buffer, at: number, end: number): number {
  let i = at;
  while (i < end) {
    const byte = frame[i] as number;
    if (((CLASS[byte] as number) & TEXT_STOP) === 0) {
      i++;
    } else if (byte === LESS) {
      return i;
    } else if (byte === AMP) {
      i = skipReference(frame, i, end);
    } else if (byte !== GREATER) {
      throw malformed('a control character', i);
    } else if (frame[i - 1] === BRACKET && frame[i - 2] === BRACKET) {
      throw malformed(']]> in text', i);
    } else {
      i++;
    }
  }
  return i;
}

function skipSpaceAround(frame: Buffer, at: number, end: number): number {
  const i = skipSpace(frame, at, end);
  if (i < end && frame[i] !== LESS) throw malformed('text outside of the root', i);
  return i;
}

/** Comment, CDATA, processing instruction. */
function skipMarkup(frame: Buffer, at: number, end: number, depth: number): number {
  if (frame[at + 1] === QUESTION) return skipInstruction(frame, at, end);
  if (startsWith(frame, at, end, '<!--')) return skipComment(frame, at, end);
  if (startsWith(frame, at, end, '<![CDATA[')) {
    if (depth === 0) throw malformed('text outside of the root', at);
    return skipCharacterData(frame, at, end);
  }
  if (startsWith(frame, at, end, '<!DOCTYPE')) throw new StreamFault('XML with a DOCTYPE is refused');
  throw malformed('<! of no kind', at);
}

function readStartTag(frame: Buffer, at: number, end: number, depth: number): number {
  const nameStart = at + 1;
  const nameEnd = skipName(frame, nameStart, end);
  if (nameEnd === nameStart) throw malformed('a tag without a name', at);
  if (depth === 0 && outline.rootName !== 0) throw malformed('a second root', at);
  if (depth === MAX_DEPTH) throw new StreamFault(`XML with more than ${MAX_DEPTH} elements in one another is refused`);
  const close = readAttributes(frame, nameEnd, end);
  const isEmpty = frame[close] === SLASH;
  const after = close + (isEmpty ? 2 : 1);
  if (isEmpty && (after > end || frame[close + 1] !== GREATER)) throw malformed('/ without >', close);
  if (!isEmpty) {
    open[2 * depth] = nameStart;
    open[2 * depth + 1] = nameEnd;
  }
  if (depth < 3) noteStart(frame, at, nameEnd, after, depth);
  return after;
}

function readEndTag(frame: Buffer, at: number, end: number, depth: number): number {
  if (depth < 0) throw malformed('an end tag without its start', at);
  const from = open[2 * depth] as number;
  const length = (open[2 * depth + 1] as number) - from;
  let i = at + 2;
  if (i + length >= end) throw malformed('an end tag without its end', at);
  for (let k = 0; k < length; k++, i++) {
    if (frame[i] !== frame[from + k]) throw malformed('an end tag of another element', at);
  }
  if (frame[i] !== GREATER) {
    i = skipSpace(frame, i, end);
    if (i >= end || frame[i] !== GREATER) throw malformed('an end tag of another element', at);
  }
  if (depth < 3) noteEnd(at, i + 1, depth, false);
  return i + 1;
}

function noteStart(frame: Buffer, at: number, nameEnd: number, after: number, depth: number): void {
  if (depth === 0) {
    outline.rootName = nameEnd;
    outline.rootTo = keepAttributes();
  } else if (depth === 2) {
    if (outline.detailStart !== -1 && outline.detailEnd === -1) {
      if (outline.used - outline.childrenFrom === 2 * MAX_CHILDREN) {
        throw new StreamFault(`XML with more than ${MAX_CHILDREN} elements in its detail is refused`);
      }
      outline.notes[outline.used++] = at;
      outline.notes[outline.used++] = -1;
    }
  } else if (depth === 1 && outline.pointFrom === -1 && isNamed(frame, at, nameEnd, 'point')) {
    outline.pointFrom = outline.used;
    outline.pointTo = keepAttributes();
  } else if (depth === 1 && outline.detailStart === -1 && isNamed(frame, at, nameEnd, 'detail')) {
    outline.detailStart = at;
    outline.detailContent = after;
    outline.childrenFrom = outline.used;
  }
}

function isNamed(frame: Buffer, at: number, nameEnd: number, name: string): boolean {
  return nameEnd - at - 1 === name.length && startsWith(frame, at + 1, nameEnd, name);
}

function keepAttributes(): number {
  const { notes, used } = outline;
  for (let k = 0; k < attributesUsed; k++) notes[used + k] = attributes[k] as number;
  outline.used = used + attributesUsed;
  return outline.used;
}

/** `at` is the end tag, or the tag itself when it is empty. */
function noteEnd(at: number, after: number, depth: number, isEmpty: boolean): void {
  if (depth === 0) {
    if (!isEmpty) outline.rootClose = at;
  } else if (outline.detailStart !== -1 && outline.detailEnd === -1) {
    if (depth === 2) {
      outline.notes[outline.used - 1] = after;
    } else {
      outline.detailClose = isEmpty ? -1 : at;
      outline.detailEnd = after;
      outline.childrenTo = outline.used;
    }
  }
}

/** From the end of the element's name; returns the place of `>` or of `/`. */
function readAttributes(frame: Buffer, at: number, end: number): number {
  attributesUsed = 0;
  let seen = 0;
  let i = at;
  while (i < end) {
    const byte = frame[i] as number;
    if (byte === GREATER || byte === SLASH) {
      if (attributesUsed > 4 * MAX_COMPARED) checkNames(frame);
      return i;
    }
    const nameStart = skipSpace(frame, i, end);
    if (nameStart < end && (frame[nameStart] === GREATER || frame[nameStart] === SLASH)) {
      i = nameStart;
      continue;
    }
    const nameEnd = skipName(frame, nameStart, end);
    if (nameStart === i || nameEnd === nameStart) throw malformed('a tag that is none', i);
    const isUsual = nameEnd + 1 < end && frame[nameEnd] === EQUAL && frame[nameEnd + 1] === QUOTE;
    const valueStart = isUsual ? nameEnd + 2 : skipEqual(frame, nameEnd, end);
    const valueEnd = skipValue(frame, valueStart, end, frame[valueStart - 1] as number);
    // A bit for each name: two that share none differ.
    const bit = 1 << ((frame[nameStart] as number) + 5 * (frame[nameEnd - 1] as number) + 11 * (nameEnd - nameStart));
    if ((seen & bit) !== 0 && attributesUsed <= 4 * MAX_COMPARED) checkName(frame, nameStart, nameEnd);
    seen |= bit;
    attributes[attributesUsed] = nameStart;
    attributes[attributesUsed + 1] = nameEnd;
    attributes[attributesUsed + 2] = valueStart;
    attributes[attributesUsed + 3] = valueEnd;
    attributesUsed += 4;
    if (attributesUsed > 4 * MAX_ATTRIBUTES) {
      throw new StreamFault(`XML with more than ${MAX_ATTRIBUTES} attributes in one tag is refused`);
    }
    i = valueEnd + 1;
  }
  throw malformed('a tag without its end', at);
}

/** So many are compared one by one; more go into a set. */
const MAX_COMPARED = 16;

function checkName(frame: Buffer, start: number, end: number): void {
  const length = end - start;
  for (let k = 0; k < attributesUsed; k += 4) {
    const other = attributes[k] as number;
    if ((attributes[k + 1] as number) - other !== length) continue;
    let same = 0;
    while (same < length && frame[other + same] === frame[start + same]) same++;
    if (same === length) throw malformed('an attribute twice', start);
  }
}

function checkNames(frame: Buffer): void {
  const names = new Set<string>();
  for (let k = 0; k < attributesUsed; k += 4) {
    names.add(frame.toString('latin1', attributes[k], attributes[k + 1]));
  }
  if (names.size !== attributesUsed / 4) throw malformed('an attribute twice', attributes[0] as number);
}
