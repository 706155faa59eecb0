// Defines the kinds of text a setting may have. Each kind parses text, names what it expects, and
// never echoes the text.

import { Cron } from 'croner';
import { z } from 'zod';
import {
  isHostName,
  isIpAddress,
  isIpv6,
  isLoopbackHost,
  isWildcardAddress,
  normalAddress,
  readSender,
  urlsIn,
} from '@holdfast/kit/addresses';
import { messageOf } from '@holdfast/kit/app-error';
import { parseThinning } from '@holdfast/kit/core-wire';
import { isDistinguishedName } from '@holdfast/kit/distinguished-name';
import { parseDatabaseSize } from '@holdfast/kit/format';
import { readQuartz } from '@holdfast/kit/quartz';
import { Secret } from '@holdfast/kit/secret';

/** Turns the text of one setting into a value. `expects` completes the sentence "must be ...". */
export interface Kind<T> {
  schema: z.ZodType<T, string>;
  expects: string;
  secret: boolean;
}

/**
 * Each schema is built on first use: most settings are unset, and every start would build eighty.
 */
function kind<T>(expects: string, make: () => z.ZodType<T, string>, secret = false): Kind<T> {
  let made: z.ZodType<T, string> | undefined;
  return {
    get schema() {
      return (made ??= make());
    },
    expects,
    secret,
  };
}

function checked(expects: string, accepts: (text: string) => boolean): Kind<string> {
  return kind(expects, () => z.string().refine(accepts));
}

/** Text in which `faultIn` finds no fault. A non-empty fault becomes part of the refusal. */
function reasoned(expects: string, faultIn: (text: string) => string | undefined): Kind<string> {
  return kind(expects, () =>
    z.string().superRefine((text, context) => {
      const message = faultIn(text);
      if (message !== undefined) context.addIssue({ code: 'custom', message, params: { reason: message !== '' } });
    }),
  );
}

/** A whole number within bounds, in plain decimal digits. */
export function wholeNumber(min: number, max: number, of = ''): Kind<number> {
  const expects = `a whole number${of === '' ? '' : ` of ${of}`} from ${min} to ${max}`;
  return kind(expects, () =>
    z
      .string()
      .regex(/^\d{1,15}$/)
      .transform(Number)
      .refine((value) => value >= min && value <= max),
  );
}

/** A decimal fraction within bounds. */
export function fraction(min: number, max: number): Kind<number> {
  return kind(`a number from ${min} to ${max}, such as 0.05`, () =>
    z
      .string()
      .regex(/^(\d{1,9}(\.\d{1,9})?|\.\d{1,9})$/)
      .transform(Number)
      .refine((value) => value >= min && value <= max),
  );
}

/** A PostgreSQL memory size of at least `minBytes`; the text is kept as it is. */
export function databaseSize(minBytes: number, least: string): Kind<string> {
  const maxBytes = (2 ** 31 - 1) * 1024;
  return checked(`a size of ${least} or more with its unit (kB, MB, GB), such as 256MB`, (text) => {
    const bytes = parseDatabaseSize(text);
    return bytes !== undefined && bytes >= minBytes && bytes <= maxBytes;
  });
}

/** A memory limit of a container; the text is kept as it is. */
export function memorySize(minMib: number): Kind<string> {
  const least = minMib % 1024 === 0 ? `${minMib / 1024}g` : `${minMib}m`;
  return checked(`a size of ${least} or more in whole g or m, such as 4g or 6144m`, (text) => {
    const [, count = '', unit = ''] = /^(\d{1,7})([gm])$/.exec(text) ?? [];
    return count !== '' && Number(count) * (unit === 'g' ? 1024 : 1) >= minMib;
  });
}

/** One of a fixed list of words. */
export function oneOf<const T extends string>(...words: [T, ...T[]]): Kind<T> {
  const expects = words.length === 1 ? words[0] : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
  return kind(expects, () =>
    z.string().transform((text, context): T => {
      const word = words.find((candidate) => candidate === text);
      if (word !== undefined) return word;
      context.addIssue({ code: 'custom', message: expects });
      return z.NEVER;
    }),
  );
}

/** `true` or `false`. */
export function trueOrFalse(): Kind<boolean> {
  return kind('true or false', () =>
    z
      .string()
      .regex(/^(true|false)$/)
      .transform((text) => text === 'true'),
  );
}

/** A host name or IP address to listen on; 0.0.0.0 and :: mean every interface. */
export function hostNameOrAddress(): Kind<string> {
  return checked(
    'a host name or an IP address without scheme or port, such as 127.0.0.1',
    (text) => isHostName(text) || isIpAddress(text),
  );
}

/** A host name or IP address that others can use, without scheme and port. */
export function reachableHost(): Kind<string> {
  return checked(
    'a host name or an IP address without scheme or port, such as cot.example.org',
    (text) => isHostName(text) || (isIpAddress(text) && !isWildcardAddress(normalAddress(text) ?? '')),
  );
}

/**
 * A URL with one of the given schemes (`https`, `ldap`). It is displayed, so it must not carry a
 * user or password.
 */
export function url(...schemes: [string, ...string[]]): Kind<string> {
  return checked(`${urlWords(schemes)}, without user and password`, (text) => {
    return isUrl(text, schemes) && new URL(text).username === '' && new URL(text).password === '';
  });
}

/** One such URL, or several of one service; the text is kept as it is. */
export function urls(...schemes: [string, ...string[]]): Kind<string> {
  const one = url(...schemes);
  const expects = `${one.expects}, or several separated by commas`;
  return checked(expects, (text) => urlsIn(text).every((each) => one.schema.safeParse(each).success));
}

/**
 * The base URL of a service that receives a key: https, or http on this machine only. A trailing
 * slash is dropped.
 */
export function keyedUrl(): Kind<string> {
  const expects = `${urlWords(['https', 'http'])}, without user, password, query and fragment`;
  return kind(expects, () => reasoned(expects, keyedUrlFault).schema.transform((text) => text.replace(/\/+$/, '')));
}

function keyedUrlFault(text: string): string | undefined {
  if (!url('https', 'http').schema.safeParse(text).success || /[?#]/.test(text)) return '';
  const { protocol, hostname } = new URL(text);
  if (protocol === 'https:' || isLoopbackHost(hostname)) return undefined;
  return 'http:// would send the key over the network unencrypted; use it only for a server on this machine';
}

/** A URL of something that can be switched off. */
export function urlOrOff(...schemes: [string, ...string[]]): Kind<string> {
  const address = url(...schemes);
  return checked(`off, or ${address.expects}`, (text) => text === 'off' || address.schema.safeParse(text).success);
}

/** A URL that may carry a password: displayed only as set or unset. */
export function secretUrl(...schemes: [string, ...string[]]): Kind<Secret> {
  return kind(
    `${urlWords(schemes)}, with a user before any password and its special characters as %XX`,
    () =>
      z
        .string()
        .refine((text) => isUrl(text, schemes) && (new URL(text).password === '' || new URL(text).username !== ''))
        .transform((text) => new Secret(text)),
    true,
  );
}

function urlWords(schemes: string[]): string {
  return `a URL with ${schemes.map((scheme) => `${scheme}://`).join(' or ')} and a host`;
}

function isUrl(text: string, schemes: string[]): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, port, pathname, username, password } = new URL(text);
  if (!schemes.includes(protocol.slice(0, -1)) || port === '0') return false;
  if (![username, password, pathname].every(decodes)) return false;
  return protocol === 'unix:' ? pathname.length > 1 : hostname !== '';
}

function decodes(part: string): boolean {
  try {
    decodeURIComponent(part);
    return true;
  } catch {
    return false;
  }
}

/** A comma-separated list whose members each satisfy `accepts`. */
export function listOf(member: string, accepts: (text: string) => boolean): Kind<string[]> {
  return kind(`a comma-separated list of ${member}`, () =>
    z
      .string()
      .transform((text) =>
        text
          .split(',')
          .map((part) => part.trim())
          .filter((part) => part !== ''),
      )
      .refine((members) => members.length > 0 && members.every(accepts)),
  );
}

/** `off`, `auto`, or rows such as `1000:120,10000:240`; the text is kept as it is. */
export function thinning(): Kind<string> {
  return checked(
    'off, auto, or rows CLIENTS:SECONDS with more clients in each and 1 to 3600 seconds, such as 1000:120,10000:240',
    (text) => parseThinning(text) !== undefined,
  );
}

/** An address or network such as `10.0.0.7`, `10.0.0.0/24`, `fd00::/64`. */
export function isAddressOrNetwork(text: string): boolean {
  const [address = '', prefix, ...rest] = text.split('/');
  if (rest.length > 0 || !isIpAddress(address)) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (isIpv6(address) ? 128 : 32));
}

/** A distinguished name of RFC 4514. */
export function distinguishedName(): Kind<string> {
  return checked('a distinguished name such as DC=core,DC=holdfast', isDistinguishedName);
}

/** A mail sender; the text is kept as it is. A refusal includes the reason. */
export function mailSender(): Kind<string> {
  return reasoned('an email address, alone or as Name <address>', (text) => {
    const sender = readSender(text);
    return 'fault' in sender ? sender.fault : undefined;
  });
}

/** One line of text that matches a pattern. */
export function text(expects: string, pattern: RegExp): Kind<string> {
  return checked(expects, (value) => pattern.test(value));
}

const MAX_SECRET_BYTES = 1024;

/**
 * A password, key or token: one line, hidden everywhere, no longer than the identity provider
 * accepts.
 */
export function secretText(
  expects = `one line of at most ${MAX_SECRET_BYTES} bytes without control characters`,
  pattern = /^[^\p{Cc}]{1,1024}$/u,
): Kind<Secret> {
  return kind(
    expects,
    () =>
      z
        .string()
        .regex(pattern)
        .refine((value) => new TextEncoder().encode(value).length <= MAX_SECRET_BYTES)
        .transform((value) => new Secret(value)),
    true,
  );
}

/** A secret that is part of a header or a URL. */
export const visibleSecret = secretText('printable ASCII characters without spaces', /^[\x21-\x7e]{1,1024}$/);

const QUARTZ =
  'a Quartz schedule "second minute hour day-of-month month day-of-week [year]" with ? in one day field, such as 0 0 3 * * ?';

/**
 * A seconds-first Quartz expression that fires at least once from now on. A refusal includes the
 * reason.
 */
export function quartzSchedule(): Kind<string> {
  return reasoned(QUARTZ, scheduleFault);
}

function scheduleFault(text: string): string | undefined {
  const { pattern, fault } = readQuartz(text);
  if (pattern === undefined) return fault;
  try {
    const schedule = new Cron(pattern, { alternativeWeekdays: true, paused: true });
    return schedule.nextRun() === null ? 'it never fires again' : undefined;
  } catch (error) {
    return `it can't be read: ${messageOf(error)}`;
  }
}
