// What a person may be called, which password it may have, when it expires, and who is shown in user management.

import { nameKey } from './names.ts';

const USERNAME = /^[A-Za-z0-9._-]{1,64}$/;
/** Of accounts of programs and of administration: never of people, whatever is hidden. */
const RESERVED_PREFIXES = ['svc_', 'adm_'];

/** Why a person may not be called so, in a sentence; undefined when it may. */
export function usernameFault(username: string, hiddenPrefixes: readonly string[]): string | undefined {
  if (!USERNAME.test(username)) return 'must be 1 to 64 letters, digits, dots, underscores or hyphens';
  const prefix = [...RESERVED_PREFIXES, ...hiddenPrefixes].find((each) => beginsWith(username, each));
  if (prefix === undefined) return undefined;
  return `must not begin with ${prefix}: such names belong to programs and to administration; choose another`;
}

/** A name to sign in with made of the name of a person: `Ann Müller` becomes `ann.muller`; empty where nothing can be. */
export function suggestedUsername(name: string): string {
  const plain = name.normalize('NFKD').replaceAll(/\p{M}/gu, '').replaceAll('ß', 'ss').toLowerCase();
  return plain
    .split(/[^a-z0-9_-]+/)
    .filter((word) => word !== '')
    .join('.')
    .slice(0, 64)
    .replace(/^[.]+|[.]+$/g, '');
}

/** True when user management does not show an account of this name. */
export function isHiddenName(username: string, hiddenPrefixes: readonly string[]): boolean {
  return hiddenPrefixes.some((prefix) => beginsWith(username, prefix));
}

/** Without regard to case. */
function beginsWith(username: string, prefix: string): boolean {
  return nameKey(username).startsWith(nameKey(prefix));
}

const LEAST_PASSWORD_CHARACTERS = 12;
export const MOST_PASSWORD_BYTES = 1024;

/** What programs and manuals of this field set, at least as long as a password must be; in lower case. */
const PUBLISHED = new Set([
  'atakatakatak',
  'atakatakatakatak',
  'changemechangeme',
  'changeme1234',
  'administrator',
  'letmein12345',
  'password1234',
  'password12345',
  'password123456',
  'passwordpassword',
  'passw0rd1234',
  'p@ssw0rd1234',
  'qwertyuiop12',
  'takserverpassword',
  'takserver1234',
  'tak-server-password',
  'atakatak1234',
  'atakatak!1234',
  'pass4marti12',
  'pass4marti1234',
  'pass4martipass4marti',
  'adminadminadmin',
  '123456789012',
  '1234567890123',
  'correct horse battery staple',
  'correcthorsebatterystaple',
]);
/** Said in manuals too, and easily lengthened: what is nothing but repetitions of one is refused as well. */
const PUBLISHED_WORDS = ['atakatak', 'atak', 'takserver', 'pass4marti', 'password', 'changeme', 'admin'];

/** True for what manuals and programs of this field publish as a password, and for what is made of such words alone. */
export function isPublishedPassword(password: string): boolean {
  const lower = password.toLowerCase();
  return PUBLISHED.has(lower) || PUBLISHED_WORDS.some((word) => lower.replaceAll(word, '') === '');
}

/** Why this cannot be the password of that person, in a sentence that does not quote it; undefined when it can. */
export function passwordFault(password: string, username: string): string | undefined {
  // First: counting the characters of what is far too long takes its time.
  if (password.length > MOST_PASSWORD_BYTES || new TextEncoder().encode(password).length > MOST_PASSWORD_BYTES)
    return `must have at most ${MOST_PASSWORD_BYTES} bytes`;
  if (Array.from(password).length < LEAST_PASSWORD_CHARACTERS)
    return `must have at least ${LEAST_PASSWORD_CHARACTERS} characters`;
  if (password.includes('\0')) return 'must not contain the character NUL';
  if (!password.isWellFormed()) return 'must be text: a half of a character is in it';
  if (nameKey(password) === nameKey(username)) return 'must not be the user name itself';
  if (isPublishedPassword(password))
    return 'must not be a password that manuals and programs publish; choose one of your own';
  return undefined;
}

/** The attribute of an account that says when it expires. */
export const EXPIRES = 'app_expires';
/** The last second of the year 9999. */
const LAST_SECOND = 253_402_300_799;

/** When an account expires, in seconds of Unix time; null for what is no such number: it never does. */
export function appExpiresOf(attributes: Readonly<Record<string, unknown>>): number | null {
  const value = attributes[EXPIRES];
  if (typeof value !== 'number' || !Number.isFinite(value)) return null;
  const seconds = Math.floor(value);
  return Math.abs(seconds) <= LAST_SECOND ? seconds : null;
}

/** ISO 8601 of seconds of Unix time. */
export function isoOfSeconds(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');
}

/** Seconds of Unix time of an ISO 8601 time in the future; else what is wrong with it. */
export function readExpiry(text: string, now: Date): { seconds: number } | { fault: string } {
  const milliseconds = Date.parse(text);
  const seconds = Math.floor(milliseconds / 1000);
  if (Number.isNaN(milliseconds) || Math.abs(seconds) > LAST_SECOND)
    return { fault: 'must be a time that exists, up to the year 9999' };
  if (milliseconds <= now.getTime() || seconds * 1000 <= now.getTime())
    return { fault: `${text} is past; give a time in the future, or null for none` };
  return { seconds };
}
