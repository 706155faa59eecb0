// Reads the parts of a well-formed event element on demand.

import type { CotElement } from '../../model/stream.ts';
import {
  BANG,
  byteName,
  GREATER,
  LESS,
  QUESTION,
  skipCharacterData,
  skipComment,
  skipEqual,
  skipInstruction,
  skipName,
  skipSpace,
  SLASH,
  startsWith,
} from './xml-bytes.ts';
import { literalText, rawText, runningText, valueText } from './xml-text.ts';

/** Whether the name that begins here is that one; `name` has one character for each byte. */
export function isNamed(frame: Buffer, at: number, name: string): boolean {
  if (!startsWith(frame, at, frame.length, name)) return false;
  const next = frame[at + name.length] as number;
  return next === GREATER || next === SLASH || next <= 0x20;
}

/** Where an attribute lies in its event. */
export interface AttributeSpan {
  nameStart: number;
  nameEnd: number;
  valueStart: number;
  valueEnd: number;
}

export class XmlElement implements CotElement {
  readonly #frame: Buffer;
  readonly #isAscii: boolean;
  readonly start: number;
  readonly end: number;

  constructor(frame: Buffer, start: number, end: number, isAscii: boolean) {
    this.#frame = frame;
    this.start = start;
    this.end = end;
    this.#isAscii = isAscii;
  }

  get name(): string {
    return rawText(this.#frame, this.start + 1, this.#nameEnd(), this.#isAscii);
  }

  attribute(name: string): string | undefined {
    const span = this.attributeSpan(byteName(name));
    return span && valueText(this.#frame, span.valueStart, span.valueEnd, this.#isAscii);
  }

  attributeSpan(name: string): AttributeSpan | undefined {
    const frame = this.#frame;
    for (let at = this.#nameEnd(); ;) {
      const span = attributeAt(frame, at, this.end);
      if (span === undefined) return undefined;
      const isIt = span.nameEnd - span.nameStart === name.length && startsWith(frame, span.nameStart, this.end, name);
      if (isIt) return span;
      at = span.valueEnd + 1;
    }
  }

  attributes(): (readonly [string, string])[] {
    const found: (readonly [string, string])[] = [];
    for (let at = this.#nameEnd(); ;) {
      const span = attributeAt(this.#frame, at, this.end);
      if (span === undefined) return found;
      const { nameStart, nameEnd, valueStart, valueEnd } = span;
      found.push([
        rawText(this.#frame, nameStart, nameEnd, this.#isAscii),
        valueText(this.#frame, valueStart, valueEnd, this.#isAscii),
      ]);
      at = valueEnd + 1;
    }
  }

  children(most: number): XmlElement[] {
    const found: XmlElement[] = [];
    this.#eachChild((start, end) => {
      found.push(new XmlElement(this.#frame, start, end, this.#isAscii));
      return found.length < most;
    });
    return found;
  }

  child(name: string): XmlElement | undefined {
    const bytes = byteName(name);
    let found: XmlElement | undefined;
    this.#eachChild((start, end) => {
      if (isNamed(this.#frame, start + 1, bytes)) found = new XmlElement(this.#frame, start, end, this.#isAscii);
      return found === undefined;
    });
    return found;
  }

  text(): string {
    const frame = this.#frame;
    const parts: string[] = [];
    for (let i = this.contentStart(); i < this.end;) {
      if (frame[i] !== LESS) {
        const next = frame.indexOf(LESS, i);
        parts.push(runningText(frame, i, next, this.#isAscii));
        i = next;
      } else {
        const after = markupEnd(frame, i, this.end);
        if (startsWith(frame, i, this.end, '<![CDATA[')) parts.push(literalText(frame, i + 9, after - 3));
        i = after;
      }
    }
    return parts.join('');
  }

  bytes(): Buffer {
    return Buffer.from(this.#frame.subarray(this.start, this.end));
  }

  hasBytes(bytes: Buffer): boolean {
    const length = this.end - this.start;
    if (bytes.length !== length) return false;
    for (let k = 0; k < length; k++) if (bytes[k] !== this.#frame[this.start + k]) return false;
    return true;
  }

  /** After the start tag; the end of the element when it is empty. */
  contentStart(): number {
    return markupEnd(this.#frame, this.start, this.end);
  }

  /** `<a/>` or `<a></a>`. */
  isEmpty(): boolean {
    const content = this.contentStart();
    return content === this.end || startsWith(this.#frame, content, this.end, '</');
  }

  #nameEnd(): number {
    return skipName(this.#frame, this.start + 1, this.end);
  }

  #eachChild(goOn: (start: number, end: number) => boolean): void {
    const frame = this.#frame;
    let depth = 0;
    let childStart = 0;
    for (let i = this.contentStart(); i < this.end;) {
      if (frame[i] !== LESS) {
        i = frame.indexOf(LESS, i);
        continue;
      }
      const after = markupEnd(frame, i, this.end);
      const next = frame[i + 1];
      if (next === SLASH) {
        depth--;
        if (depth < 0 || (depth === 0 && !goOn(childStart, after))) return;
      } else if (next !== BANG && next !== QUESTION) {
        if (depth === 0) childStart = i;
        if (frame[after - 2] !== SLASH) depth++;
        else if (depth === 0 && !goOn(childStart, after)) return;
      }
      i = after;
    }
  }
}

function attributeAt(frame: Buffer, at: number, end: number): AttributeSpan | undefined {
  const nameStart = skipSpace(frame, at, end);
  if (frame[nameStart] === GREATER || frame[nameStart] === SLASH) return undefined;
  const nameEnd = skipName(frame, nameStart, end);
  const valueStart = skipEqual(frame, nameEnd, end);
  return { nameStart, nameEnd, valueStart, valueEnd: frame.indexOf(frame[valueStart - 1] as number, valueStart) };
}

/** From a `<`: after the tag, comment, CDATA or processing instruction that begins there. */
function markupEnd(frame: Buffer, at: number, end: number): number {
  const next = frame[at + 1];
  if (next === QUESTION) return skipInstruction(frame, at, end);
  if (next === BANG) {
    return frame[at + 2] === 0x2d ? skipComment(frame, at, end) : skipCharacterData(frame, at, end);
  }
  if (next === SLASH) return frame.indexOf(GREATER, at) + 1;
  for (let i = skipName(frame, at + 1, end); ;) {
    const span = attributeAt(frame, i, end);
    if (span === undefined) return frame.indexOf(GREATER, i) + 1;
    i = span.valueEnd + 1;
  }
}
