// Host names and addresses as they may stand in a setting.

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;

/** True for an IPv4 address in dotted form. */
export function isIpv4(text: string): boolean {
  const parts = text.split('.');
  return parts.length === 4 && parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255);
}

/** True for an IPv6 address without zone and without brackets. */
export function isIpv6(text: string): boolean {
  if (!/^[0-9a-f:.]+$/i.test(text) || !text.includes(':')) return false;
  const halves = text.split('::');
  if (halves.length > 2) return false;
  const groups = halves.flatMap((half) => (half === '' ? [] : half.split(':')));
  const last = groups.at(-1);
  const embedded = last !== undefined && last.includes('.');
  if (embedded && !isIpv4(last)) return false;
  const hex = embedded ? groups.slice(0, -1) : groups;
  if (!hex.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return false;
  const count = hex.length + (embedded ? 2 : 0);
  return halves.length === 2 ? count < 8 : count === 8;
}

/** True for an IPv4 or IPv6 address. */
export function isIpAddress(text: string): boolean {
  return isIpv4(text) || isIpv6(text);
}

/**
 * True for a host name of RFC 1123 (labels of letters, digits and hyphens, at most 253 characters
 * in all).
 */
export function isHostName(text: string): boolean {
  if (text.length > 253) return false;
  const labels = text.split('.');
  const last = labels.at(-1) ?? '';
  return labels.every((label) => LABEL.test(label)) && !/^\d+$/.test(last);
}

/**
 * One spelling per address (`::0` becomes `::`); undefined for text that is none, and for IPv4
 * written as IPv6.
 */
export function normalAddress(text: string): string | undefined {
  if (isIpv4(text)) return text;
  if (!isIpv6(text)) return undefined;
  const normal = new URL(`http://[${text}]`).hostname.slice(1, -1);
  return normal.startsWith('::ffff:') ? undefined : normal;
}

/** True for a host that is this machine: `localhost`, 127.0.0.0/8, ::1 (in brackets or not). */
export function isLoopbackHost(host: string): boolean {
  const name = bareHost(host).toLowerCase();
  return name === 'localhost' || name === '::1' || (isIpv4(name) && name.startsWith('127.'));
}

/** True for the addresses that stand for every interface. */
export function isWildcardAddress(address: string): boolean {
  return address === '0.0.0.0' || address === '::';
}

/** True when listening on `address` takes 127.0.0.1 as well. */
export function coversLoopback(address: string): boolean {
  return isWildcardAddress(address) || address === '127.0.0.1';
}

/**
 * True for a normal address that a machine can have as its own: not multicast, broadcast, reserved
 * or link-local.
 */
export function isUnicastAddress(address: string): boolean {
  return isIpv4(address) ? Number(address.split('.')[0]) < 224 : !/^(ff|fe[89ab])/.test(address);
}

/** The host part of a URL: IPv6 addresses in brackets. */
export function urlHost(address: string): string {
  return isIpv6(address) ? `[${address}]` : address;
}

/**
 * Dots stand between others, nothing is quoted, and the domain is in ASCII (`xn--...` for others).
 */
const ADDRESS =
  /^(?=[^@]{1,64}@)[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*@[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;
/** Of RFC 5321, without the angle brackets. */
const MAX_ADDRESS_LENGTH = 254;
const MAX_NAME_LENGTH = 200;

/** The host of a URL without the brackets of an IPv6 address: the opposite of `urlHost`. */
export function bareHost(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}

/** One or several URLs, separated by commas. */
export function urlsIn(text: string): [string, ...string[]] {
  const [first = '', ...others] = text.split(',').map((part) => part.trim());
  return [first, ...others];
}

/**
 * Email addresses and senders as they may stand in a setting, a mail command and a header without
 * meaning anything else. True for the addresses that mail is sent to and from.
 */
export function isEmailAddress(text: string): boolean {
  return text.length <= MAX_ADDRESS_LENGTH && ADDRESS.test(text);
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
  if (name.length > MAX_NAME_LENGTH) return { fault: `the name must have at most ${MAX_NAME_LENGTH} characters` };
  if (!isEmailAddress(address)) return { fault: 'the part that should be the address is no plain email address' };
  return { name, address };
}

function unquoted(name: string): string {
  const [, inQuotes] = /^"((?:[^"\\]|\\.)*)"$/u.exec(name) ?? [];
  return inQuotes === undefined ? name : inQuotes.replaceAll(/\\(.)/gu, '$1');
}

/**
 * The sender in the form that services take; a name with punctuation of its own meaning is quoted.
 */
export function formatSender({ name, address }: Sender): string {
  if (name === '') return address;
  const shown = /[()<>[\]:;@\\,"]/.test(name) ? `"${name.replaceAll(/["\\]/g, String.raw`\$&`)}"` : name;
  return `${shown} <${address}>`;
}
