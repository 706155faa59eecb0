// Writes preferences of ATAK as a file that devices import, and reads them back as text: one
// `name = value` on each line.

import { AppError } from '@holdfast/kit/app-error';
import { escapeHtml, unescapeXml } from '@holdfast/kit/text';

/** In every profile: the file that the console writes. */
export const PREFERENCES_FILE = 'preferences.pref';
const MAX_PREFERENCES = 500;
const LINE = /^(?:\((?<kind>String|Boolean|Integer|Long|Float)\)\s*)?(?<key>[\w.-]{1,200})\s*=\s*(?<value>.{0,2000})$/u;
const ENTRY = /<entry key="([^"]*)" class="class java\.lang\.(\w+)">([^<]*)<\/entry>/g;

/** Lines that are empty or begin with # say nothing. Throws `invalid` that names the line. */
export function preferencesFile(text: string): string {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  if (lines.length > MAX_PREFERENCES) throw refused(`there can be at most ${MAX_PREFERENCES} preferences`);
  const entries = lines.map((line) => {
    const { kind, key = '', value = '' } = LINE.exec(line)?.groups ?? {};
    if (key === '') throw refused(`"${line.slice(0, 60)}" must be name = value`);
    const type = kind ?? (value === 'true' || value === 'false' ? 'Boolean' : 'String');
    checkValue(key, type, value);
    return `<entry key="${escapeHtml(key)}" class="class java.lang.${type}">${escapeHtml(value)}</entry>`;
  });
  return `<?xml version="1.0" standalone="yes"?>\n<preferences><preference version="1" name="com.atakmap.app.civ_preferences">\n${entries.join('\n')}\n</preference></preferences>\n`;
}

/** As it was written; what is not of the console is left out. */
export function preferencesText(file: string): string {
  return [...file.matchAll(ENTRY)]
    .map(([, key = '', type = '', value = '']) => {
      const plain = unescapeXml(value);
      const usual = plain === 'true' || plain === 'false' ? 'Boolean' : 'String';
      return `${type === usual ? '' : `(${type}) `}${unescapeXml(key)} = ${plain}`;
    })
    .join('\n');
}

function checkValue(key: string, type: string, value: string): void {
  const isNumber = /^[+-]?\d+(\.\d+)?$/.test(value);
  const isFit =
    type === 'String' ||
    (type === 'Boolean' && (value === 'true' || value === 'false')) ||
    (type === 'Float' && isNumber) ||
    (isNumber && !value.includes('.') && type !== 'Boolean');
  if (!isFit) throw refused(`${key} must be a ${type}, not "${value.slice(0, 60)}"`);
}

function refused(message: string): AppError {
  return new AppError('invalid', `preferences: ${message}`, { fields: [{ path: 'preferences', message }] });
}
