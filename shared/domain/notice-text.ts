// What the operators may say to everybody at once: text that every client shows as it was written, in XML and out of it.

// oxlint-disable-next-line no-control-regex -- what XML has no character for; newline is the one control character that chat shows
const SHOWN = /^[^\u0000-\u0009\u000B-\u001F\u007F-\u009F\uFFFE\uFFFF\p{Cs}]{1,1000}$/u;

/** 1 to 1000 characters, no control characters but newline, no half of a pair. */
export function isNoticeText(text: string): boolean {
  return SHOWN.test(text);
}
