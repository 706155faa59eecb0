// Formats and parses text on the CoT wire: ISO 8601 times (UTC by default) and XML escapes.

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?<zone>Z|[+-]\d{2}:?\d{2})?$/;
const MAX_LENGTH = 40;

/** Milliseconds since 1970; undefined for what is no time. */
export function readCotTime(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const usual = usualCotTime(text);
  if (usual !== undefined) return usual;
  if (text.length > MAX_LENGTH) return undefined;
  const match = TIME.exec(text);
  if (match === null) return undefined;
  const value = Date.parse(match.groups?.['zone'] === undefined ? `${text}Z` : text);
  return Number.isNaN(value) ? undefined : value;
}

/**
 * Milliseconds since 1970 of `2026-11-22T05:30:00Z` and `2026-11-22T05:30:00.123Z`, of any month's
 * first 28 days; undefined for all else.
 */
export function usualCotTime(text: string): number | undefined {
  const { length } = text;
  if ((length !== 20 && length !== 24) || text[length - 1] !== 'Z') return undefined;
  const isFormed = text[4] === '-' && text[7] === '-' && text[10] === 'T' && text[13] === ':' && text[16] === ':';
  if (!isFormed || (length === 24 && text[19] !== '.')) return undefined;
  const year = 100 * twoDigits(text, 0) + twoDigits(text, 2);
  const [month, day] = [twoDigits(text, 5), twoDigits(text, 8)];
  const [hour, minute, second] = [twoDigits(text, 11), twoDigits(text, 14), twoDigits(text, 17)];
  const ms = length === 24 ? 10 * twoDigits(text, 20) + (twoDigits(text, 21) % 10) : 0;
  const isUsual = year >= 100 && month >= 1 && month <= 12 && day >= 1 && day <= 28;
  return isUsual && hour <= 23 && minute <= 59 && second <= 59 && ms >= 0
    ? Date.UTC(year, month - 1, day, hour, minute, second, ms)
    : undefined;
}

/** NaN where they are none. */
function twoDigits(text: string, at: number): number {
  const [tens, ones] = [text.charCodeAt(at) - 0x30, text.charCodeAt(at + 1) - 0x30];
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? 10 * tens + ones : Number.NaN;
}

const ESCAPES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
};

const MARK = /[&<>"'\t\n\r]/;
const MARKS = /[&<>"'\t\n\r]/g;

/**
 * Text of ours inside XML.
 * What is no character of XML is left, for the scanner to refuse.
 */
export function escapeMarks(text: string): string {
  return MARK.test(text) ? text.replaceAll(MARKS, (char) => ESCAPES[char] ?? '') : text;
}

/** For running text and for values of attributes. What is no character of XML becomes U+FFFD. */
export function escapeXml(text: string): string {
  return escapeMarks(text.toWellFormed()).replaceAll(/[\p{Cc}\ufffe\uffff]/gu, '\ufffd');
}

const READ: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** Resolves the five entities and references to characters; everything else stays as it is. */
export function unescapeXml(text: string): string {
  return text.replaceAll(
    /&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#x([0-9a-fA-F]{1,6}));/g,
    (whole, name, decimal, hex) => {
      if (typeof name === 'string') return READ[name] ?? whole;
      const code = typeof decimal === 'string' ? Number(decimal) : Number.parseInt(String(hex), 16);
      return code > 0 && code <= 0x10_ff_ff ? String.fromCodePoint(code) : whole;
    },
  );
}

/**
 * What stands between the start and the end tag of the element; a `>` may stand in its attributes.
 */
export function insideOf(element: string): string {
  const quoted = /^<[^"'>]*(?:(?:"[^"]*"|'[^']*')[^"'>]*)*>/.exec(element)?.[0] ?? element;
  return quoted.endsWith('/>') ? '' : element.slice(quoted.length, element.lastIndexOf('</'));
}
