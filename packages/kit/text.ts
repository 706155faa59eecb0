// Text that came from anywhere, made fit for one line, for ASCII channels, and for HTML.

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

/** The text on one line: line ends and other white space are one blank, control and bidi characters are `?`. */
export function oneLine(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\s\u0085]+/gu, ' ')
    .replaceAll(/[\p{Cc}\p{Bidi_Control}]/gu, '?')
    .trim();
}

/** The text on one line of printable ASCII: letters lose their accents, what has no plain form is `?`. */
export function asciiLine(text: string): string {
  return oneLine(text)
    .replaceAll(/[^\x20-\x7e]/gu, (character) => PLAIN.get(character) ?? character)
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^\x20-\x7e]/gu, (character) => PLAIN.get(character) ?? '?');
}

/** Control and bidi characters, and what has no width; without the joiners U+200C and U+200D, which scripts and emoji need. */
const DISGUISE = /(?![\t\n\r])\p{Cc}|[\u00AD\u200B\u2060\uFEFF]|\p{Bidi_Control}/gu;

/** Without what shows nothing or turns the reading direction of what follows: a sign stands in its place. Lines stay lines. */
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

/** The text as it may stand in HTML, between tags or in a quoted attribute. */
export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}

// Addresses of people as others may see them: enough to recognise one's own, not enough to write to it.

/** With a dot in the domain: `<20261121@mx>` is the id of a message. */
const EMAIL = /[\w.!#$%&'*+/?^`{|}~-]{1,64}@(?=[\p{L}\p{N}-]{1,63}\.[\p{L}\p{N}])[\p{L}\p{N}.-]{1,253}/gu;
const TELEPHONE = /(?<!\d)\+\d{7,15}(?!\d)/g;

/** At least this many digits of a telephone number stay hidden. */
const HIDDEN_DIGITS = 5;

/** `d***@example.org` of an e-mail address, `+1555***67` of a telephone number. */
export function maskRecipient(recipient: string): string {
  const at = recipient.lastIndexOf('@');
  if (at !== -1) return `${/^./u.exec(recipient)?.[0] ?? ''}***${recipient.slice(at)}`;
  const digits = recipient.replaceAll(/\D/g, '');
  const head = Math.min(4, Math.max(0, digits.length - 2 - HIDDEN_DIGITS));
  return `+${digits.slice(0, head)}***${digits.slice(-2)}`;
}

/** The text with the recipients masked, however a service spelled them, and everything else that is such an address. */
export function maskAddresses(text: string, recipients: readonly string[] = []): string {
  const known = recipients.reduce((masked, recipient) => {
    return masked.replaceAll(spellingsOf(recipient), () => maskRecipient(recipient));
  }, text);
  return known.replaceAll(EMAIL, maskRecipient).replaceAll(TELEPHONE, maskRecipient);
}

/** An e-mail address plain or encoded for a URL; a telephone number with +, 00 or neither, and with separators. */
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

// Lines of CSV as RFC 4180 has them, harmless in a spreadsheet: a text that would be taken for a formula gets a quote before it.

const FORMULA = /^[\s\p{Cc}]*[=+\-@\uFF0B\uFF0D\uFF1D\uFF20]|^[\t\r\n]/u;

/** One line with its CRLF; null is an empty cell. */
export function csvLine(cells: readonly (string | number | null)[]): string {
  return `${cells.map(cellOf).join(',')}\r\n`;
}

function cellOf(cell: string | number | null): string {
  if (typeof cell !== 'string') return cell === null ? '' : String(cell);
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// What the operators may say to everybody at once: text that every client shows as it was written, in XML and out of it.

// oxlint-disable-next-line no-control-regex -- what XML has no character for; newline is the one control character that chat shows
const SHOWN = /^[^\u0000-\u0009\u000B-\u001F\u007F-\u009F\uFFFE\uFFFF\p{Cs}]{1,1000}$/u;

/** 1 to 1000 characters, no control characters but newline, no half of a pair. */
export function isNoticeText(text: string): boolean {
  return SHOWN.test(text);
}
