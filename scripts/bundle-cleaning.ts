// Takes out of a text whatever must not leave the machine: every value of a secret setting in each form in which programs write
// it, and what looks like a key, a cookie, a token or a password of anybody.

export interface KnownSecret {
  name: string;
  value: string;
}

export interface Cleaned {
  text: string;
  /** What was found, by its name, and how often. */
  found: Map<string, number>;
}

export type Clean = (text: string) => Cleaned;

/** What is shorter is in every text by chance, and is said to be. */
export const LEAST_SEARCHED = 4;
/** A part of base64 that is shorter says nothing. */
const LEAST_ENCODED = 8;

interface Pattern {
  name: string;
  finds: RegExp;
  /** What stays of the match: its groups; the rest is taken out. */
  keeps: (match: readonly string[]) => string;
}

const OUT = '[removed]';

const PATTERNS: readonly Pattern[] = [
  {
    name: 'a private key',
    finds: /-----BEGIN ([A-Z ]*PRIVATE KEY)-----[\s\S]*?(?:-----END \1-----|$)/g,
    keeps: () => `[removed: private key]`,
  },
  {
    name: 'a cookie',
    finds: /((?:set-)?cookie["'\\]*\s*[:=](?!\s*["'\\]*\[removed)\s*["'\\]*)[^"'\n\r]+/gi,
    keeps: ([, head = '']) => `${head}${OUT}`,
  },
  {
    name: 'a session',
    finds: /((?:__Host-|__Secure-)?\b[\w-]*(?:session|csrf|sessid)[\w-]*=)(?!\[removed)[^\s"'\\;,&]{8,}/gi,
    keeps: ([, head = '']) => `${head}${OUT}`,
  },
  {
    name: 'an authorization',
    finds: /\b((?:Bearer|Basic)\s+)(?!\[removed)[A-Za-z0-9._~+/=-]{8,}/gi,
    keeps: ([, head = '']) => `${head}${OUT}`,
  },
  {
    name: 'a signed token',
    finds: /\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*/g,
    keeps: () => OUT,
  },
  {
    name: 'a password in a URL',
    finds: /(:\/\/[^\s/:@"']*:)(?!\[removed)[^\s/@"']+@/g,
    keeps: ([, head = '']) => `${head}${OUT}@`,
  },
  {
    name: 'a password',
    finds:
      /((?:pass(?:word|wd|phrase)?|secret|credential|(?:api|access|private|secret)[_-]?key|\btoken|[_-]token|[_-](?:pass|key))["'\\]*\s*[:=](?!\s*["'\\]*(?:\[removed|\*\*\*|\$\{|null\b|true\b|false\b))\s*["'\\]*)[^\s"'\\,;<>&[\]{}]{4,}/gi,
    keeps: ([, head = '']) => `${head}${OUT}`,
  },
];

/** Known values first, the longest first: a shorter one may be a part of it. */
export function cleanerOf(secrets: readonly KnownSecret[]): Clean {
  const forms = secrets
    .filter(({ value }) => value.length >= LEAST_SEARCHED)
    .flatMap(({ name, value }) => formsOf(value).map((form) => ({ name, form })))
    .toSorted((a, b) => b.form.length - a.form.length);

  return function clean(text) {
    const found = new Map<string, number>();
    const count = (name: string, times: number): void => void found.set(name, (found.get(name) ?? 0) + times);
    let rest = text;
    for (const { name, form } of forms) {
      const parts = rest.split(form);
      if (parts.length === 1) continue;
      count(name, parts.length - 1);
      rest = parts.join(`[removed: ${name}]`);
    }
    for (const { name, finds, keeps } of PATTERNS)
      rest = rest.replace(finds, (...match: unknown[]) => {
        count(name, 1);
        return keeps(match.filter((each) => typeof each === 'string'));
      });
    return { text: rest, found };
  };
}

/** A value as it is, and as programs write it into URLs, JSON, shells, XML and headers. */
export function formsOf(value: string): string[] {
  const json = JSON.stringify(value).slice(1, -1);
  const bytes = Buffer.from(value);
  const forms = [
    value,
    json,
    JSON.stringify(json).slice(1, -1),
    encodeURIComponent(value),
    encodeURIComponent(value).toLowerCase(),
    encodeURI(value),
    new URLSearchParams({ v: value }).toString().slice(2),
    value.replaceAll("'", String.raw`'\''`),
    value.replaceAll("'", "''"),
    value.replaceAll('$', '$$$$'),
    value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;'),
    bytes.toString('hex'),
    ...base64Of(bytes),
  ];
  return [...new Set(forms)].filter((form) => form.length >= LEAST_SEARCHED);
}

/** Wherever the value begins in what was encoded (`user:value`), the middle of it is one of three texts. */
function base64Of(bytes: Buffer): string[] {
  const middles = [0, 1, 2].flatMap((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    const first = [0, 2, 3][before] ?? 0;
    const whole = Math.floor(((before + bytes.length) * 8) / 6);
    const middle = text.slice(first, whole);
    return [middle, middle.replaceAll('+', '-').replaceAll('/', '_')];
  });
  return middles.filter((middle) => middle.length >= LEAST_ENCODED);
}
