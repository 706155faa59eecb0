// Makes events that are well-formed, or nearly so, and asks a maintained parser which of the two
// they are.

import { isUtf8 } from 'node:buffer';
import { SaxesParser } from 'saxes';
import { MAX_ATTRIBUTES, MAX_DEPTH } from '../stream/wire/xml-scan.ts';

export const SA =
  '<event version="2.0" uid="ANDROID-1" type="a-f-G-U-C" time="2026-11-22T05:30:00.000Z" start="2026-11-22T05:30:00.000Z" ' +
  'stale="2026-11-22T05:36:15.000Z" how="m-g"><point lat="51.1" lon="7.6" hae="120.5" ce="4.9" le="9999999.0"/><detail>' +
  '<contact endpoint="*:-1:stcp" callsign="HOPE"/><__group name="Cyan" role="Team Member"/></detail></event>';

/**
 * Of the rules of the scanner beyond those of XML: no DOCTYPE, not too deep, not too many
 * attributes.
 */
export function isAccepted(bytes: Buffer): boolean {
  if (!isUtf8(bytes)) return false;
  const parser = new SaxesParser({ xmlns: false, position: false });
  let depth = 0;
  let isWithin = true;
  parser.on('doctype', () => (isWithin = false));
  parser.on('opentag', ({ attributes }) => {
    depth++;
    if (depth > MAX_DEPTH || Object.keys(attributes).length > MAX_ATTRIBUTES) isWithin = false;
  });
  parser.on('closetag', () => depth--);
  try {
    parser.write(bytes.toString('utf8')).close();
  } catch {
    return false;
  }
  return isWithin;
}

/** Numbers from 0 to 1, the same for the same seed. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Pieces at which parsers differ. */
export const PIECES = [
  '<a>',
  '</a>',
  '<a/>',
  '<a b="c">',
  '</a >',
  '< a>',
  '</ a>',
  '<a',
  '/>',
  '>',
  '<',
  '/',
  '</',
  '</>',
  '<>',
  '<a / >',
  ' b="c"',
  " d='e'",
  ' b = "c"',
  ' b="c"d="e"',
  ' b',
  ' b=c',
  ' b="<"',
  ' b="]]>"',
  " b='\"'",
  ' b="c" b="d"',
  '"',
  "'",
  '=',
  '&amp;',
  '&lt;',
  '&quot;',
  '&apos;',
  '&gt;',
  '&nbsp;',
  '&',
  '&;',
  '&#65;',
  '&#x41;',
  '&#X41;',
  '&#x;',
  '&#;',
  '&#0;',
  '&#x1F600;',
  '&#xFFFE;',
  '&#xD800;',
  '&#1114112;',
  '&#99999999999999999999;',
  '&#x0000000000041;',
  '&am<b/>p;',
  '&#13;',
  '&#1;',
  '&#x41g;',
  ']]>',
  ']]',
  ']',
  ']]]>',
  ']]&amp;>',
  '<![CDATA[',
  '<![CDATA[x]]>',
  '<![CDATA[</event>]]>',
  '<![CDATA[]]]]>',
  '<![cdata[x]]>',
  '<!--',
  '-->',
  '<!-- -->',
  '<!-->',
  '<!--->',
  '<!---->',
  '<!-- -- -->',
  '<!-- --->',
  '--',
  '-',
  '<!',
  '<!x>',
  '<!DOCTYPE a>',
  '<!ENTITY a "b">',
  '<?',
  '?>',
  '<?x?>',
  '<?x y?>',
  '<?x?y?>',
  '<?x??>',
  '<? x?>',
  '<?xml?>',
  '<?XML y?>',
  '<?xmls y?>',
  '<?xml version="1.0"?>',
  '<p:q xmlns:p="r">',
  '</p:q>',
  '<:>',
  '</:>',
  '<_-.1/>',
  '<-a/>',
  '<1/>',
  '<é/>',
  '<a·b/>',
  '<·/>',
  '<\u{10000}/>',
  '<\u{f0000}/>',
  '<×/>',
  'é',
  '😀',
  '\ufffd',
  '\ufffe',
  '\uffff',
  '\u0085',
  '\u2028',
  '\u0000',
  '\u0001',
  '\u001f',
  '\u007f',
  '\t',
  '\n',
  '\r',
  '\r\n',
  ' ',
  'x',
  ';',
  '#',
  '<point lat="1" lon="2" hae="3" ce="4" le="5"/>',
  '<detail>',
  '</detail>',
  '<detail/>',
  '<marti><dest/></marti>',
  '<marti/>',
  '</event>',
  '<event>',
];

/**
 * An event in which something may be wrong: pieces in a row, or well-formed with a few bytes
 * changed.
 */
export function nearlyEvent(random: () => number): Buffer {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const root = `<event${random() < 0.3 ? ` uid="${pick(['a', '&amp;', 'é', "'"])}"${pick(['', ' ', '\n'])}` : ''}>`;
  if (random() < 0.5) {
    const pieces = Array.from({ length: Math.floor(random() * 7) }, () => pick(PIECES));
    return Buffer.from(`${root}${pieces.join('')}</event>`);
  }
  const whole = Buffer.from(`${root}${nested(random, pick, 0)}</event>${random() < 0.1 ? pick(PIECES) : ''}`);
  return random() < 0.4 ? whole : mutated(whole, random);
}

const NAMES = ['a', 'b:c', '_d', 'é', 'detail', 'marti', '_flow-tags_', 'contact', 'ab', 'ba'];
const VALUES = ['', 'x', '&amp;&#65;', "it's", 'é😀', ' \t\n', '>', ']]>', 'a very long value that goes on'];
const TEXTS = [
  '',
  ' ',
  'text',
  'a &lt; b',
  ']]',
  ']',
  '>',
  'é',
  '\r\n',
  '<!-- c -->',
  '<?p i?>',
  '<![CDATA[<x>&]]>',
  '😀',
];

function nested(random: () => number, pick: <T>(from: readonly T[]) => T, depth: number): string {
  const parts: string[] = [];
  for (let k = Math.floor(random() * (depth > 4 ? 1 : 4)); k > 0; k--) {
    const name = pick(NAMES);
    const attributes = Array.from({ length: Math.floor(random() * 4) }, () => ` ${pick(NAMES)}="${pick(VALUES)}"`).join(
      '',
    );
    const content = random() < 0.5 ? undefined : nested(random, pick, depth + 1);
    parts.push(
      pick(TEXTS),
      content === undefined ? `<${name}${attributes}/>` : `<${name}${attributes}>${content}</${name}>`,
    );
  }
  parts.push(pick(TEXTS));
  return parts.join('');
}

const BYTES = Buffer.from('<>/&;#"\'=-!?[] ]xa1\n\r\t');

/**
 * Bytes are changed, taken out, doubled; the first six stay, since framing begins an event with
 * them.
 */
export function mutated(whole: Buffer, random: () => number): Buffer {
  const bytes = [...whole];
  for (let k = Math.floor(random() * 3); k >= 0; k--) {
    const at = 6 + Math.floor(random() * (bytes.length - 6));
    const byte = random() < 0.7 ? (BYTES[Math.floor(random() * BYTES.length)] as number) : Math.floor(random() * 256);
    const length = Math.floor(random() * 3);
    const inserted = random() < 0.2 ? bytes.slice(at, at + 8) : [byte];
    bytes.splice(at, length, ...inserted);
  }
  return Buffer.from(bytes);
}
