// Validates names of people and channels, passwords and expiry dates, and decides which accounts
// are shown.

import { ADMIN_ROLE_GROUP, CHANNEL_PREFIX, nameKey, PROBE_GROUP, UNGROUPED_GROUP } from '@holdfast/kit/names';
import { momentOf, readWallTime, wallTimeAt } from '@holdfast/kit/time';
import { isPublishedPassword } from '../settings/rules.ts';
import type { RoleGroups } from '../sign-in/rules.ts';

const USERNAME = /^[A-Za-z0-9._-]{1,64}$/;
/** Prefixes of program and administration accounts: never of people, whatever is hidden. */
const RESERVED_PREFIXES = ['svc_', 'adm_'];

/** Why this can't be a username, as a predicate; undefined when it can. */
export function usernameFault(username: string, hiddenPrefixes: readonly string[]): string | undefined {
  if (!USERNAME.test(username)) return 'must be 1 to 64 letters, digits, dots, underscores or hyphens';
  const prefix = [...RESERVED_PREFIXES, ...hiddenPrefixes].find((each) => beginsWith(username, each));
  if (prefix === undefined) return undefined;
  return `must not begin with ${prefix}, which is reserved for programs and administration; choose another`;
}

/**
 * Suggests a username from a person's name: `Ann Müller` becomes `ann.muller`; empty when none is
 * possible.
 */
export function suggestedUsername(name: string): string {
  const plain = name.normalize('NFKD').replaceAll(/\p{M}/gu, '').replaceAll('ß', 'ss').toLowerCase();
  return plain
    .split(/[^a-z0-9_-]+/)
    .filter((word) => word !== '')
    .join('.')
    .slice(0, 64)
    .replace(/^[.]+|[.]+$/g, '');
}

/** True when user management hides an account of this name. */
export function isHiddenName(username: string, hiddenPrefixes: readonly string[]): boolean {
  return hiddenPrefixes.some((prefix) => beginsWith(username, prefix));
}

/** Ignores case. */
function beginsWith(username: string, prefix: string): boolean {
  return nameKey(username).startsWith(nameKey(prefix));
}

const MIN_PASSWORD_CHARACTERS = 12;
export const MAX_PASSWORD_BYTES = 1024;

/**
 * Why this can't be that person's password, as a predicate that does not quote it; undefined when
 * it can.
 */
export function passwordFault(password: string, username: string): string | undefined {
  // First: counting the characters of a text that is far too long is slow.
  if (password.length > MAX_PASSWORD_BYTES || new TextEncoder().encode(password).length > MAX_PASSWORD_BYTES)
    return `must have at most ${MAX_PASSWORD_BYTES} bytes`;
  if (Array.from(password).length < MIN_PASSWORD_CHARACTERS)
    return `must have at least ${MIN_PASSWORD_CHARACTERS} characters`;
  if (password.includes('\0')) return 'must not contain the character NUL';
  if (!password.isWellFormed()) return 'must be complete text, but it contains half a character';
  if (nameKey(password) === nameKey(username)) return 'must not be the username itself';
  if (isPublishedPassword(password))
    return 'must not be a password that manuals and programs publish; choose one of your own';
  return undefined;
}

/** The attribute of an account that says when it expires. */
export const EXPIRES = 'app_expires';
/** The last second of the year 9999. */
const LAST_SECOND = 253_402_300_799;

/**
 * When an account expires, in seconds of Unix time; null for an invalid value, which never expires.
 */
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

/** Seconds of Unix time of an ISO 8601 time in the future; else the fault. */
export function readExpiry(text: string, now: Date): { seconds: number } | { fault: string } {
  const milliseconds = Date.parse(text);
  const seconds = Math.floor(milliseconds / 1000);
  if (Number.isNaN(milliseconds) || Math.abs(seconds) > LAST_SECOND)
    return { fault: 'must be a valid time, up to the year 9999' };
  if (milliseconds <= now.getTime() || seconds * 1000 <= now.getTime())
    return { fault: `${text} is in the past; give a time in the future, or null for never` };
  return { seconds };
}

/**
 * The choices for an account's expiry, in menu order: at the end of the day, some days later at the
 * same time, at a given time, or never.
 */
export const ACCESS_ENDS = ['never', 'today', 'days-2', 'days-7', 'days-30', 'date'] as const;

interface Request {
  choice: string;
  /** With the choice `date`: `2026-01-31T14:05`. */
  on: string;
}

interface Where {
  now: Date;
  /** Of the IANA database. */
  timeZone: string;
}

/**
 * ISO 8601, null for never; else the fault, as a sentence. A time in the past is not refused here.
 */
export function accessEnd({ choice, on }: Request, where: Where): { at: string | null } | { fault: string } {
  if (choice === 'never') return { at: null };
  if (choice === 'date') {
    const wall = readWallTime(on);
    if (wall === undefined) return { fault: 'choose the date and time at which access expires' };
    return { at: isoOf(momentOf(wall, where.timeZone)) };
  }
  const at = presetEnd(choice, where);
  return at === undefined ? { fault: 'choose when access expires' } : { at };
}

/** The result of a choice that needs no further input; undefined for the others. */
export function presetEnd(choice: string, { now, timeZone }: Where): string | undefined {
  const wall = { ...wallTimeAt(now.getTime(), timeZone), second: 0 };
  if (choice === 'today') return isoOf(momentOf({ ...wall, day: wall.day + 1, hour: 0, minute: 0 }, timeZone));
  const days = /^days-(\d+)$/.exec(choice)?.[1];
  if (days === undefined || !ACCESS_ENDS.some((each) => each === choice)) return undefined;
  return isoOf(momentOf({ ...wall, day: wall.day + Number(days) }, timeZone));
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z');
}

const REST = /^[A-Za-z0-9._-](?:[A-Za-z0-9 ._-]{0,62}[A-Za-z0-9._-])?$/;

/**
 * Names of channels: groups of people that a device can talk to. They begin with `core_`; devices
 * see the rest. A suffix `_READ` or `_WRITE` makes membership one-way. Returns the whole name of
 * the channel, given with or without the prefix, or the fault.
 */
export function readChannelName(text: string, roles: RoleGroups): { name: string } | { fault: string } {
  const rest = nameKey(text).startsWith(CHANNEL_PREFIX) ? text.slice(CHANNEL_PREFIX.length) : text;
  if (!REST.test(rest))
    return {
      fault: `must be 1 to 64 letters, digits, spaces, dots, underscores or hyphens (${CHANNEL_PREFIX} not counted), without a space at either end`,
    };
  const name = CHANNEL_PREFIX + rest;
  if (givesRole(text, roles) || givesRole(name, roles))
    return { fault: "is the name of a group that grants a role; change the user's role instead" };
  if (isStackOwn(name)) return { fault: 'is reserved for Holdfast; choose another name' };
  return { name };
}

/** True for a group that people and devices know as a channel. */
export function isChannel(name: string, roles: RoleGroups): boolean {
  return name.startsWith(CHANNEL_PREFIX) && !givesRole(name, roles) && !isStackOwn(name);
}

/** True for the groups that grant a role, in any case. */
function givesRole(name: string, { admin, viewer }: RoleGroups): boolean {
  return [ADMIN_ROLE_GROUP, admin, viewer].some((each) => nameKey(each) === nameKey(name));
}

const STACK_OWN = new Set([PROBE_GROUP, UNGROUPED_GROUP].map(withoutDirection));

/** In any direction. */
function isStackOwn(name: string): boolean {
  return STACK_OWN.has(withoutDirection(name));
}

function withoutDirection(name: string): string {
  return nameKey(name).replace(/_(?:read|write)$/, '');
}
