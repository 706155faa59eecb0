// The certificate revocation list of the CA: version 2, signed with ECDSA and SHA-384; and
// our own list read back.

import { type KeyObject, sign, verify } from 'node:crypto';
import * as asn1js from 'asn1js';
import * as pkijs from 'pkijs';
import { formatDistinguishedName, parseDistinguishedName } from '@holdfast/kit/distinguished-name';
import { DAY_MS, HOUR_MS } from '@holdfast/kit/time';
import { DerError, INTEGER, SEQUENCE } from '@holdfast/kit/tlv';
import { normalSerial, pemOf } from './keys.ts';
import type { RevocationListTimes, RevokedEntry } from './parts.ts';
import { readRevocationList } from './revocation-list.ts';

/**
 * crl_index.txt: every revoked certificate as a line in OpenSSL's index format, so that `openssl ca
 * -gencrl` understands it. The whole file: state, end, revocation, serial number, file (never
 * known), subject; with tabs between.
 */
export function indexText(revoked: readonly RevokedEntry[]): string {
  return revoked
    .map(({ serial, revokedAt, expiresAt, subject }) => {
      const hex = serial.toUpperCase();
      return `R\t${timeText(expiresAt)}\t${timeText(revokedAt)}\t${hex.length % 2 === 0 ? hex : `0${hex}`}\tunknown\t${lineName(subject)}\n`;
    })
    .join('');
}

/**
 * The revoked certificates, and the lines that are none and no other entry either. Times are whole
 * seconds.
 */
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

/**
 * `CN=ada,OU=CoT,O=Holdfast` as `/O=Holdfast/OU=CoT/CN=ada`; what would end a value or a line is
 * written `\x2F`.
 */
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
  return new TextDecoder(undefined, { ignoreBOM: true }).decode(Uint8Array.from(bytes ?? []));
}

/** For clocks that are behind. */
const BACKDATED_MS = HOUR_MS;
const VALID_DAYS = 7;
const ECDSA_WITH_SHA384 = '1.2.840.10045.4.3.3';
const SHA256_WITH_RSA = '1.2.840.113549.1.1.11';
/** By which a list may be signed; a script of a release takes SHA-256 for every key. */
const HASHES: Record<string, string> = {
  [ECDSA_WITH_SHA384]: 'sha384',
  [SHA256_WITH_RSA]: 'sha256',
  '1.2.840.10045.4.3.2': 'sha256',
  '1.2.840.10045.4.3.4': 'sha512',
  '1.2.840.113549.1.1.12': 'sha384',
  '1.2.840.113549.1.1.13': 'sha512',
};
const AUTHORITY_KEY_IDENTIFIER = '2.5.29.35';
const CRL_NUMBER = '2.5.29.20';
const [UTC_TIME, GENERALIZED_TIME, EXTENSIONS] = [0x17, 0x18, 0xa0];
const SHORT_TIME = '261122023204Z'.length;

export interface ListIssuer {
  /** DER of the CA certificate. */
  certificate: Uint8Array<ArrayBuffer>;
  /** Hex. */
  keyIdentifier: string;
  key: KeyObject;
}

/**
 * Signs the list; times are whole seconds, serial numbers must differ. A key of a CA that was
 * brought may be RSA.
 */
export function signRevocationList(
  issuer: ListIssuer,
  revoked: readonly Pick<RevokedEntry, 'serial' | 'revokedAt'>[],
  number: bigint,
  now: Date,
  validDays = VALID_DAYS,
): { pem: string; times: RevocationListTimes } {
  const second = Math.floor(now.getTime() / 1000) * 1000;
  const times = { thisUpdate: new Date(second - BACKDATED_MS), nextUpdate: new Date(second + validDays * DAY_MS) };
  const isRsa = issuer.key.asymmetricKeyType === 'rsa';
  const algorithm = (
    isRsa
      ? new pkijs.AlgorithmIdentifier({ algorithmId: SHA256_WITH_RSA, algorithmParams: new asn1js.Null() })
      : new pkijs.AlgorithmIdentifier({ algorithmId: ECDSA_WITH_SHA384 })
  ).toSchema();
  const extensions = [
    extension(AUTHORITY_KEY_IDENTIFIER, keyIdentifierValue(issuer.keyIdentifier)),
    extension(CRL_NUMBER, asn1js.Integer.fromBigInt(number)),
  ];
  const content = tagged(SEQUENCE, [
    berOf(new asn1js.Integer({ value: 1 })),
    berOf(algorithm),
    berOf(pkijs.Certificate.fromBER(issuer.certificate).subject.toSchema()),
    time(times.thisUpdate),
    time(times.nextUpdate),
    // An empty sequence is not allowed here.
    ...(revoked.length === 0 ? [] : [tagged(SEQUENCE, revoked.map(entry))]),
    tagged(EXTENSIONS, [berOf(new asn1js.Sequence({ value: extensions }))]),
  ]);
  const signature = Uint8Array.from(sign(isRsa ? 'sha256' : 'sha384', content, issuer.key)).buffer;
  const whole = tagged(SEQUENCE, [content, berOf(algorithm), berOf(new asn1js.BitString({ valueHex: signature }))]);
  return { pem: pemOf('X509 CRL', whole), times };
}

/** What a list says: whom, and under which number; or why it is not taken in. */
export type ReadList =
  | { number: bigint; nextUpdate: Date | undefined; revoked: { serial: string; revokedAt: Date }[] }
  | { refused: 'no revocation list' | 'not signed by this CA' };

/** Reads a list in PEM that `ca` has signed. */
export function readSignedList(pem: string, ca: KeyObject): ReadList {
  const [, base64] = /-----BEGIN X509 CRL-----([^-]+)-----END X509 CRL-----/.exec(pem) ?? [];
  if (base64 === undefined) return { refused: 'no revocation list' };
  try {
    const list = readRevocationList(Buffer.from(base64, 'base64'));
    if (!verify(HASHES[list.algorithm] ?? 'sha384', list.signed, ca, list.signature))
      return { refused: 'not signed by this CA' };
    return { number: list.number(), nextUpdate: list.nextUpdate, revoked: list.revoked() };
  } catch (error) {
    if (error instanceof DerError) return { refused: 'no revocation list' };
    throw error;
  }
}

/**
 * Plain bytes: as objects of the library, ten thousand entries take half a second at each
 * revocation.
 */
function entry({ serial, revokedAt }: Pick<RevokedEntry, 'serial' | 'revokedAt'>): Buffer {
  return tagged(SEQUENCE, [tagged(INTEGER, [integerBytes(serial)]), time(revokedAt)]);
}

function time(value: Date): Buffer {
  const text = timeText(value);
  return tagged(text.length === SHORT_TIME ? UTC_TIME : GENERALIZED_TIME, [Buffer.from(text)]);
}

/** DER: tag, length, content. */
function tagged(tag: number, content: readonly Uint8Array[]): Buffer {
  const length = content.reduce((sum, piece) => sum + piece.length, 0);
  const hex = length.toString(16);
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
  const long = length < 128 ? [] : [0x80 | bytes.length];
  return Buffer.concat([Uint8Array.from([tag, ...long]), bytes, ...content]);
}

function berOf(value: asn1js.AsnType): Uint8Array {
  return new Uint8Array(value.toBER());
}

function extension(extnID: string, value: asn1js.AsnType): asn1js.Sequence {
  return new pkijs.Extension({ extnID, critical: false, extnValue: value.toBER() }).toSchema();
}

function keyIdentifierValue(hex: string): asn1js.Sequence {
  const valueHex = Uint8Array.from(Buffer.from(hex, 'hex')).buffer;
  return new asn1js.Sequence({ value: [new asn1js.Primitive({ idBlock: { tagClass: 3, tagNumber: 0 }, valueHex })] });
}

/** With a leading zero where the number would be negative. */
function integerBytes(serial: string): Buffer {
  const even = serial.length % 2 === 0 ? serial : `0${serial}`;
  return Buffer.from(/^[89a-f]/.test(even) ? `00${even}` : even, 'hex');
}
