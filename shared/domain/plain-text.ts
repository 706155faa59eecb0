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
