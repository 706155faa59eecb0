// E-mail addresses and senders as they may stand in a setting, a mail command and a header without meaning anything else.

/** Dots stand between others, nothing is quoted, and the domain is in ASCII (`xn--...` for others). */
const ADDRESS =
  /^(?=[^@]{1,64}@)[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*@[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;
/** Of RFC 5321, without the angle brackets. */
const LONGEST_ADDRESS = 254;
const LONGEST_NAME = 200;

/** True for the addresses that mail is sent to and from. */
export function isEmailAddress(text: string): boolean {
  return text.length <= LONGEST_ADDRESS && ADDRESS.test(text);
}

export interface Sender {
  /** Empty when there is only an address. */
  name: string;
  address: string;
}

/** Who mail is from (`address` or `Name <address>`), or why it cannot be from that. */
export function readSender(text: string): Sender | { fault: string } {
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)) return { fault: 'it must be one line without control characters' };
  if (!text.isWellFormed()) return { fault: 'it is no text' };
  const [, named = '', inBrackets = text] = /^([^<>]*)<([^<>]*)>$/u.exec(text.trim()) ?? [];
  const [name, address] = [unquoted(named.trim()), inBrackets.trim()];
  if (name.length > LONGEST_NAME) return { fault: `the name must have at most ${LONGEST_NAME} characters` };
  if (!isEmailAddress(address)) return { fault: 'the part that should be the address is no plain e-mail address' };
  return { name, address };
}

function unquoted(name: string): string {
  const [, inQuotes] = /^"((?:[^"\\]|\\.)*)"$/u.exec(name) ?? [];
  return inQuotes === undefined ? name : inQuotes.replaceAll(/\\(.)/gu, '$1');
}

/** The sender in the form that services take; a name with punctuation of its own meaning is quoted. */
export function senderInWords({ name, address }: Sender): string {
  if (name === '') return address;
  const shown = /[()<>[\]:;@\\,"]/.test(name) ? `"${name.replaceAll(/["\\]/g, String.raw`\$&`)}"` : name;
  return `${shown} <${address}>`;
}
