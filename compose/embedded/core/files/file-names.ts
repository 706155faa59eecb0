// Names and types of files as clients give them: what is taken, and how it is written into an answer.

/** Control characters, and marks that turn the direction of a text or cannot be seen. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;
const LONE_SURROGATE = /\p{Surrogate}/u;

/** What is wrong with a text of a client that is kept with a file, in words; undefined: nothing. */
export function textFault(text: string, mostLength: number): string | undefined {
  if (text.length > mostLength) return `has more than ${mostLength} characters`;
  if (UNSEEN.test(text) || LONE_SURROGATE.test(text)) return 'has characters that cannot be shown';
  return undefined;
}

/** The last part of what may be a path of any system. */
export function lastPart(path: string): string {
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
}

/** Types that a browser runs or reads as a page; a file of such a type is only bytes. */
const RUN = /html|xml|svg|script|xsl|pdf|shockwave|multipart|message|wasm|json|css|manifest/;
const TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,80}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,80}$/;
export const BYTES = 'application/octet-stream';

/** `text/plain` of `Text/Plain; charset=x`; undefined for what is no type. */
export function plainType(type: string): string | undefined {
  const [name = ''] = type.toLowerCase().split(';');
  return TYPE.test(name.trim()) ? name.trim() : undefined;
}

/** The type that a download says it has. */
export function servedType(type: string): string {
  const plain = plainType(type);
  return plain === undefined || RUN.test(plain) ? BYTES : plain;
}

/** `attachment; filename="…"`, with the name in UTF-8 where ASCII cannot say it. */
export function contentDisposition(name: string): string {
  const seen = lastPart(name.replaceAll(new RegExp(UNSEEN, 'g'), ' ').toWellFormed()).trim();
  const whole = /^\.*$/.test(seen) ? 'file' : seen;
  const ascii = whole.replaceAll(/[^ -~]|["\\%;]/gu, '_');
  if (ascii === whole) return `attachment; filename="${ascii}"`;
  const utf8 = encodeURIComponent(whole).replaceAll(
    /['()*!]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${ascii}"; filename*=UTF-8''${utf8}`;
}
