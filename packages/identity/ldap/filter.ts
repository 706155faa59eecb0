// Parses search filters (RFC 4511, section 4.5.1.7).

import { BerError, type Element, Elements, textOf } from './ber.ts';

/** A value that is not UTF-8 is undefined: it compares with nothing. */
export type Filter =
  | { kind: 'and' | 'or'; parts: Filter[] }
  | { kind: 'not'; part: Filter }
  | { kind: 'equal' | 'atLeast' | 'atMost'; attribute: string; value: string | undefined }
  | { kind: 'substring'; attribute: string; initial: string; any: string[]; final: string }
  | { kind: 'present'; attribute: string }
  | {
      kind: 'extensible';
      attribute: string | undefined;
      rule: string | undefined;
      value: string | undefined;
      dnAttributes: boolean;
    };

/** A filter that is well-formed and yet not taken: unknown kind, or too large. */
export class FilterError extends Error {}

export interface FilterLimits {
  filterDepth: number;
  filterParts: number;
}

export function readFilter(element: Element, limits: FilterLimits): Filter {
  let parts = 0;

  function read({ tag, content }: Element, depth: number): Filter {
    if (depth > limits.filterDepth) throw new FilterError('the filter is nested too deeply');
    if (++parts > limits.filterParts) throw new FilterError('the filter has too many parts');
    switch (tag) {
      case 0xa0:
      case 0xa1:
        return { kind: tag === 0xa0 ? 'and' : 'or', parts: readAll(new Elements(content), depth + 1) };
      case 0xa2:
        return { kind: 'not', part: read(new Elements(content).next(), depth + 1) };
      case 0xa3:
      case 0xa8:
        return { kind: 'equal', ...readAssertion(content) };
      case 0xa4:
        return readSubstring(content);
      case 0xa5:
        return { kind: 'atLeast', ...readAssertion(content) };
      case 0xa6:
        return { kind: 'atMost', ...readAssertion(content) };
      case 0x87:
        return { kind: 'present', attribute: attributeName(textOf(content)) };
      case 0xa9:
        return readExtensible(content);
      default:
        throw new FilterError('the filter has a part of an unknown kind');
    }
  }

  function readAll(elements: Elements, depth: number): Filter[] {
    const found: Filter[] = [];
    while (!elements.done) found.push(read(elements.next(), depth));
    return found;
  }

  return read(element, 1);
}

/** Attribute names are compared in lower case. One that is no text names no attribute. */
function attributeName(text: string | undefined): string {
  return (text ?? '').toLowerCase();
}

function readAssertion(content: Buffer): { attribute: string; value: string | undefined } {
  const elements = new Elements(content);
  return { attribute: attributeName(elements.text()), value: elements.text() };
}

function readSubstring(content: Buffer): Filter {
  const elements = new Elements(content);
  const attribute = attributeName(elements.text());
  const pieces = elements.within();
  if (pieces.done) throw new BerError('a substring without pieces');
  let initial = '';
  let final = '';
  const any: string[] = [];
  for (let first = true; !pieces.done; first = false) {
    const piece = pieces.next();
    const text = textOf(piece.content);
    if (text === undefined) return { kind: 'equal', attribute, value: undefined };
    if (piece.tag === 0x80 && first) initial = text;
    else if (piece.tag === 0x81) any.push(text);
    else if (piece.tag === 0x82 && pieces.done) final = text;
    else throw new BerError('pieces of a substring in a wrong order');
  }
  return { kind: 'substring', attribute, initial, any, final };
}

function readExtensible(content: Buffer): Filter {
  const elements = new Elements(content);
  const rule = elements.tag === 0x81 ? elements.text(0x81) : undefined;
  const attribute = elements.tag === 0x82 ? attributeName(elements.text(0x82)) : undefined;
  const value = elements.text(0x83);
  const dnAttributes = elements.tag === 0x84 ? elements.boolean(0x84) : false;
  return { kind: 'extensible', attribute, rule: rule?.toLowerCase(), value, dnAttributes };
}
