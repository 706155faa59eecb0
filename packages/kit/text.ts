// Text that came from anywhere, made fit for one line, for ASCII channels, and for HTML.

import { causeOf } from './app-error.ts';

/** Letters and signs whose plain form no decomposition gives. */
const PLAIN: ReadonlyMap<string, string> = new Map(
  (
    `ß=ss ẞ=SS æ=ae Æ=AE œ=oe Œ=OE ø=o Ø=O ł=l Ł=L đ=d Đ=D ð=d Ð=D þ=th Þ=Th ı=i ` +
    `‘=' ’=' ‚=' ‹=< ›=> “=" ”=" „=" «=" »=" ‐=- ‑=- ‒=- –=- —=- −=- •=- ·=- ×=x ÷=/ ⁄=/ ` +
    `€=EUR £=GBP °=deg ≥=>= ≤=<= →=-> ←=<-`
  )
    .split(' ')
    .map((pair) => [pair.slice(0, 1), pair.slice(2)]),
);

/**
 * The text on one line: line ends and other white space are one blank, control and bidi characters
 * are `?`.
 */
export function oneLine(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\s\u0085]+/gu, ' ')
    .replaceAll(/[\p{Cc}\p{Bidi_Control}]/gu, '?')
    .trim();
}

/**
 * The text on one line of printable ASCII: letters lose their accents, what has no plain form is
 * `?`.
 */
export function asciiLine(text: string): string {
  return oneLine(text)
    .replaceAll(/[^\x20-\x7e]/gu, (character) => PLAIN.get(character) ?? character)
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^\x20-\x7e]/gu, (character) => PLAIN.get(character) ?? '?');
}

/**
 * Control and bidi characters, and what has no width; without the joiners U+200C and U+200D, which
 * scripts and emoji need.
 */
const DISGUISE = /(?![\t\n\r])\p{Cc}|[\u00AD\u200B\u2060\uFEFF]|\p{Bidi_Control}/gu;

/**
 * Without what shows nothing or turns the reading direction of what follows: a sign stands in its
 * place. Lines stay lines.
 */
export function withoutDisguise(text: string): string {
  return text.toWellFormed().replaceAll(DISGUISE, '\uFFFD');
}

/** At most `most` characters; what was cut is told by dots. `most` is at least 3. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most - 3).replace(/[\uD800-\uDBFF]$/, '')}...`;
}

/** A message as it begins a sentence. Names, paths and addresses stay as they are. */
export function capitalised(message: string): string {
  return /^[a-z]+(?:[ ,]|: )/.test(message) ? message.charAt(0).toUpperCase() + message.slice(1) : message;
}

/** With a full stop. */
export function ended(message: string): string {
  return message.endsWith('.') ? message : `${message}.`;
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** The text as it may stand in HTML or XML, between tags or in a quoted attribute. */
export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}

const MARKS: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** What `escapeHtml` and other writers of XML made of it. Other entities stay as they are. */
export function unescapeXml(text: string): string {
  return text.replaceAll(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(amp|lt|gt|quot|apos));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return MARKS[String(name).toLowerCase()] ?? whole;
    const code = decimal === undefined ? Number.parseInt(String(hex), 16) : Number(decimal);
    return code <= 0x10_ff_ff ? String.fromCodePoint(code) : whole;
  });
}

/** With a dot in the domain: `<20261121@mx>` is the id of a message. */
const EMAIL = /[\w.!#$%&'*+/?^`{|}~-]{1,64}@(?=[\p{L}\p{N}-]{1,63}\.[\p{L}\p{N}])[\p{L}\p{N}.-]{1,253}/gu;
const TELEPHONE = /(?<!\d)\+\d{7,15}(?!\d)/g;

/** At least this many digits of a telephone number stay hidden. */
const HIDDEN_DIGITS = 5;

/**
 * Addresses of people as others may see them: enough to recognize one's own, not enough to write to
 * it. `d***@example.org` of an email address, `+1555***67` of a telephone number.
 */
export function maskRecipient(recipient: string): string {
  const at = recipient.lastIndexOf('@');
  if (at !== -1) return `${/^./u.exec(recipient)?.[0] ?? ''}***${recipient.slice(at)}`;
  const digits = recipient.replaceAll(/\D/g, '');
  const head = Math.min(4, Math.max(0, digits.length - 2 - HIDDEN_DIGITS));
  return `+${digits.slice(0, head)}***${digits.slice(-2)}`;
}

/**
 * The text with the recipients masked, however a service spelled them, and everything else that is
 * such an address.
 */
export function maskAddresses(text: string, recipients: readonly string[] = []): string {
  const known = recipients.reduce((masked, recipient) => {
    return masked.replaceAll(spellingsOf(recipient), () => maskRecipient(recipient));
  }, text);
  return known.replaceAll(EMAIL, maskRecipient).replaceAll(TELEPHONE, maskRecipient);
}

/**
 * An email address plain or encoded for a URL; a telephone number with +, 00 or neither, and with
 * separators.
 */
function spellingsOf(recipient: string): RegExp {
  if (recipient.includes('@')) {
    const spellings = [recipient, encodeURIComponent(recipient)].map(literal);
    return new RegExp(spellings.join('|'), 'giu');
  }
  const digits = recipient.replaceAll(/\D/g, '').split('');
  return new RegExp(`(?<!\\d)(?:\\+|%2B|00)?${digits.join('[ ().-]{0,3}')}(?!\\d)`, 'giu');
}

function literal(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
}

const FORMULA = /^[\s\p{Cc}]*[=+\-@\uFF0B\uFF0D\uFF1D\uFF20]|^[\t\r\n]/u;

/**
 * Lines of CSV as RFC 4180 has them, harmless in a spreadsheet: a text that would be taken for a
 * formula gets a quote before it. One line with its CRLF; null is an empty cell.
 */
export function csvLine(cells: readonly (string | number | null)[]): string {
  return `${cells.map(cellOf).join(',')}\r\n`;
}

function cellOf(cell: string | number | null): string {
  if (typeof cell !== 'string') return cell === null ? '' : String(cell);
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// oxlint-disable-next-line no-control-regex -- what XML has no character for; newline is the one control character that chat shows
const SHOWN = /^[^\u0000-\u0009\u000B-\u001F\u007F-\u009F\uFFFE\uFFFF\p{Cs}]{1,1000}$/u;

/**
 * What the operators may say to everybody at once: text that every client shows as it was written,
 * in XML and out of it. 1 to 1000 characters, no control characters but newline, no half of a pair.
 */
export function isNoticeText(text: string): boolean {
  return SHOWN.test(text);
}

const MAX_CHARACTERS = 240;
const UNTRUSTED = /CERT|SIGNATURE|UNABLE_TO_|ALTNAME|REVOKED/;
const NOT_TLS = /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)$/;
const FAILURES: Record<string, string> = {
  ECONNREFUSED: 'refused the connection',
  ENOTFOUND: 'has a host name that is not known',
  EAI_AGAIN: 'has a host name that no name server answers for now',
  ECONNRESET: 'closed the connection',
  EPIPE: 'closed the connection',
  UND_ERR_SOCKET: 'closed the connection',
  ETIMEDOUT: 'does not answer',
};

/**
 * What foreign systems say and how they fail, as short lines that people can read and that give no
 * secret away. Foreign text as one line of at most 240 characters, with each of the secrets as
 * `***`.
 */
export function foreignWords(text: string, secrets: readonly string[]): string {
  // The longer ones first: they may hold a shorter one.
  const given = secrets.filter((secret) => secret !== '').toSorted((a, b) => b.length - a.length);
  const shown = given.reduce((all, secret) => all.replaceAll(secret, '***'), text);
  return shortened(oneLine(shown), MAX_CHARACTERS);
}

/**
 * Why a system could not be talked to: a predicate whose subject is the system (`refused the
 * connection`).
 */
export function failureWords(error: unknown, secrets: readonly string[]): string {
  const cause = causeOf(error);
  if (FAILURES[cause] !== undefined) return FAILURES[cause];
  if (NOT_TLS.test(cause)) return 'does not speak TLS';
  if (/^[A-Z_]+$/.test(cause) && UNTRUSTED.test(cause)) return `presents a certificate that is not trusted (${cause})`;
  return `cannot be talked to: ${foreignWords(cause, secrets)}`;
}

/** The UTF-8 bytes of the text in base64. */
export function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

export function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/**
 * The member of `known` with the smallest edit distance to `name`, or undefined when none is close
 * (more than a third of its letters would have to change).
 */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const distance = editDistance(name.toUpperCase(), candidate.toUpperCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return bestDistance <= Math.ceil(name.length / 3) ? best : undefined;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next[j] = Math.min(substitution, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1);
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
