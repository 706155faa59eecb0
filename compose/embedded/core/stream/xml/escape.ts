// Text of ours inside XML.

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

/** What is no character of XML is left, for the scanner to refuse. */
export function escapeMarks(text: string): string {
  return MARK.test(text) ? text.replaceAll(MARKS, (char) => ESCAPES[char] ?? '') : text;
}

/** For running text and for values of attributes. What is no character of XML becomes U+FFFD. */
export function escapeXml(text: string): string {
  return escapeMarks(text.toWellFormed()).replaceAll(/[\p{Cc}\ufffe\uffff]/gu, '\ufffd');
}
