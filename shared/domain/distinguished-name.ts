// Distinguished names as text (RFC 4514), as far as a setting needs it: is it one?

const TYPE = /^\s*([A-Za-z][A-Za-z0-9-]*|\d+(\.\d+)+)\s*$/;
const ESCAPE = /\\([ "#+,;<=>\\]|[0-9A-Fa-f]{2})/g;

/** True for one or more `type=value` parts, joined by commas or plus signs; special characters in values are escaped. */
export function isDistinguishedName(text: string): boolean {
  return text
    .replaceAll(ESCAPE, 'x')
    .split(/[,+]/)
    .every((part) => {
      const separator = part.indexOf('=');
      const value = part.slice(separator + 1).trim();
      return separator > 0 && TYPE.test(part.slice(0, separator)) && value !== '' && !/["\\;<>]/.test(value);
    });
}
