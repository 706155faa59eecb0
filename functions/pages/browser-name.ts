// What a session was opened with, in a few words that its person recognises.

const BROWSERS: readonly [RegExp, string][] = [
  [/\bEdgA?\//, 'Edge'],
  [/\b(?:OPR|Opera)\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/(?:Chrome|CriOS|Chromium)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
];
const DEVICES: readonly [RegExp, string][] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\b(?:Macintosh|Mac OS X)\b/, 'Mac'],
  [/\bLinux\b/, 'Linux'],
];
const MOST_CHARACTERS = 60;

/** `Firefox on Android`; what is not known is shown as it is, shortened. */
export function browserName(userAgent: string): string {
  const browser = nameIn(BROWSERS, userAgent);
  const device = nameIn(DEVICES, userAgent);
  if (browser !== undefined && device !== undefined) return `${browser} on ${device}`;
  const text = userAgent.trim();
  if (text === '') return browser ?? device ?? 'Unknown program';
  return browser ?? (text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text);
}

function nameIn(names: readonly [RegExp, string][], userAgent: string): string | undefined {
  return names.find(([pattern]) => pattern.test(userAgent))?.[1];
}
