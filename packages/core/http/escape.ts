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
