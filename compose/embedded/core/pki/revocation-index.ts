// crl_index.txt: every revoked certificate as a line in OpenSSL's index format, so that `openssl ca -gencrl` understands it.

import { formatDistinguishedName, parseDistinguishedName } from '../../../../shared/domain/distinguished-name.ts';
import type { RevokedEntry } from '../parts.ts';
import { normalSerial } from './keys.ts';

/** The whole file: state, end, revocation, serial number, file (never known), subject; with tabs between. */
export function indexText(revoked: readonly RevokedEntry[]): string {
  return revoked
    .map(({ serial, revokedAt, expiresAt, subject }) => {
      const hex = serial.toUpperCase();
      return `R\t${timeText(expiresAt)}\t${timeText(revokedAt)}\t${hex.length % 2 === 0 ? hex : `0${hex}`}\tunknown\t${lineName(subject)}\n`;
    })
    .join('');
}

/** The revoked certificates, and the lines that are none and no other entry either. Times are whole seconds. */
export function readIndex(text: string): { revoked: RevokedEntry[]; damaged: string[] } {
  const revoked: RevokedEntry[] = [];
  const damaged: string[] = [];
  for (const line of text.split('\n')) {
    if (line === '' || /^[VE]\t/.test(line)) continue;
    const entry = readLine(line);
    if (entry === undefined) damaged.push(line);
    else revoked.push(entry);
  }
  return { revoked, damaged };
}

function readLine(line: string): RevokedEntry | undefined {
  const [state, end = '', when = '', serial = '', , name = ''] = line.split('\t');
  const expiresAt = readTime(end);
  const revokedAt = readTime(when.split(',', 1)[0] ?? '');
  if (state !== 'R' || expiresAt === undefined || revokedAt === undefined || !/^[0-9A-F]+$/i.test(serial))
    return undefined;
  return { serial: normalSerial(serial), revokedAt, expiresAt, subject: nameOfLine(name) };
}

/** As certificates write it too: `261122023204Z`, with four digits for the year from 2050 on. */
export function timeText(time: Date): string {
  const digits = time.toISOString().replaceAll(/[-:T]|\.\d+Z$/g, '');
  return `${time.getUTCFullYear() < 2050 ? digits.slice(2) : digits}Z`;
}

function readTime(text: string): Date | undefined {
  const short = /^\d{12}Z$/.test(text);
  if (!short && !/^\d{14}Z$/.test(text)) return undefined;
  const century = Number(text.slice(0, 2)) < 50 ? '20' : '19';
  const [year, ...parts] = (short ? `${century}${text}` : text).match(/^\d{4}|\d\d/g) ?? [];
  const [month, day, hour, minute, second] = parts;
  const time = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(time.getTime()) ? undefined : time;
}

/** `CN=ada,OU=CoT,O=Holdfast` as `/O=Holdfast/OU=CoT/CN=ada`; what would end a value or a line is written `\x2F`. */
function lineName(subject: string): string {
  const parts = parseDistinguishedName(subject) ?? [[{ type: 'CN', value: subject }]];
  return parts.length === 0
    ? '/'
    : parts
        .toReversed()
        .map((part) => `/${part.map(({ type, value }) => `${type}=${lineValue(value)}`).join('+')}`)
        .join('');
}

function lineValue(value: string): string {
  return value.replaceAll(/[^ -~]+|[/+\\]/g, (characters) =>
    [...new TextEncoder().encode(characters)]
      .map((byte) => `\\x${byte.toString(16).toUpperCase().padStart(2, '0')}`)
      .join(''),
  );
}

function nameOfLine(name: string): string {
  const parts = name
    .split('/')
    .slice(1)
    .filter((part) => part !== '')
    .map((part) =>
      part.split('+').map((pair) => {
        const [type = '', ...value] = pair.split('=');
        return { type, value: valueOfLine(value.join('=')) };
      }),
    );
  return formatDistinguishedName(parts.toReversed());
}

function valueOfLine(text: string): string {
  const bytes = text
    .match(/\\x[0-9A-F]{2}|[^]/g)
    ?.flatMap((piece) =>
      piece.length === 4 ? [Number.parseInt(piece.slice(2), 16)] : [...new TextEncoder().encode(piece)],
    );
  return new TextDecoder().decode(Uint8Array.from(bytes ?? []));
}
