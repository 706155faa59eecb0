// Builds the zip that gives a device the connection and the CA: a mission package for ATAK, the
// same files without folders for iTAK. With a client certificate, or without one for a device that
// enrolls. The same input gives the same bytes.

import { escapeHtml, oneLine } from '@holdfast/kit/text';
import { USUAL_API_PORT, USUAL_ENROLLMENT_PORT } from '../links.ts';

/** 1 January 2020, 00:00: the same files give the same bytes. */
const [DATE, TIME] = [(40 << 9) | (1 << 5) | 1, 0];
const VERSION = 20;
const [LOCAL_HEADER, DIRECTORY_HEADER, DIRECTORY_END] = [0x04034b50, 0x02014b50, 0x06054b50];

/**
 * Writes zip files without compression: what goes into a data package is small, or encrypted. A
 * library for it would cost the management process nine megabytes from its start on. Names are
 * ASCII, with `/` between folders; the files come in their order.
 */
export function storedZip(files: Readonly<Record<string, Uint8Array>>): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  const directory: Uint8Array[] = [];
  for (const [path, content] of Object.entries(files)) {
    const name = new TextEncoder().encode(path);
    const [checksum, size] = [crc32(content), content.length];
    const common = [...u16(VERSION, 0, 0, TIME, DATE), ...u32(checksum, size, size), ...u16(name.length, 0)];
    const offset = sizeOf(parts);
    parts.push(Uint8Array.from([...u32(LOCAL_HEADER), ...common]), name, content);
    const rest = [...u16(0, 0, 0), ...u32(0, offset)];
    directory.push(Uint8Array.from([...u32(DIRECTORY_HEADER), ...u16(VERSION), ...common, ...rest]), name);
  }
  const count = Object.keys(files).length;
  const end = [...u32(DIRECTORY_END), ...u16(0, 0, count, count), ...u32(sizeOf(directory), sizeOf(parts)), ...u16(0)];
  return joined([...parts, ...directory, Uint8Array.from(end)]);
}

/** Little-endian. */
function u16(...numbers: number[]): number[] {
  return numbers.flatMap((number) => [number & 0xff, (number >> 8) & 0xff]);
}

function u32(...numbers: number[]): number[] {
  return numbers.flatMap((number) => u16(number & 0xffff, number >>> 16));
}

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ 0xedb88320;
  }
  return (crc ^ 0xffffffff) >>> 0;
}

function sizeOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0);
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(sizeOf(parts));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Of every bundle that Holdfast hands out. Everybody knows it: it protects nothing. */
export const BUNDLE_PASSWORD = 'atakatak';

export interface PackageFile {
  /** Other characters than letters, digits and `. _ -` become `_`. */
  fileName: string;
  bytes: Uint8Array;
}

export interface DataPackage {
  app: 'atak' | 'itak';
  uid: string;
  /** What the server is called on the phone. */
  description: string;
  /** Name or address. */
  host: string;
  streamingPort: number;
  /** PKCS#12 with the CA. */
  trust: PackageFile;
  /** PKCS#12 with key and certificate. */
  client?: PackageFile;
  /** The phone asks for name and password, and enrolls. */
  enroll?: { enrollmentPort: number; apiPort: number };
  /** Of the core's API, where the phone does not enroll; default: the usual one. */
  apiPort?: number;
}

const FOLDER = 'certs/';

export function dataPackage(wanted: DataPackage): Uint8Array<ArrayBuffer> {
  const named = withSafeNames(wanted);
  const { app, trust, client } = named;
  const flat = app === 'itak';
  const folder = flat ? '' : FOLDER;
  const content = {
    [`${folder}config.pref`]: encoded(preferences(named)),
    [`${folder}${trust.fileName}`]: trust.bytes,
    ...(client === undefined ? {} : { [`${folder}${client.fileName}`]: client.bytes }),
  };
  const manifest = { 'MANIFEST/manifest.xml': encoded(manifestOf(named, Object.keys(content))) };
  return storedZip(flat ? content : { ...manifest, ...content });
}

/**
 * A name that every file system and every header takes; never empty, never hidden, never another
 * folder.
 */
export function safeFileName(text: string): string {
  const safe = text
    .replaceAll(/[^A-Za-z0-9._-]/g, '_')
    .slice(-100)
    .replace(/^\.+/, '_');
  return safe === '' ? '_' : safe;
}

function encoded(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function withSafeNames(wanted: DataPackage): DataPackage {
  const trust = { ...wanted.trust, fileName: bundleName(wanted.trust.fileName) };
  if (wanted.client === undefined) return { ...wanted, trust };
  const name = bundleName(wanted.client.fileName);
  // Phones put both into one directory.
  const fileName = name.toLowerCase() === trust.fileName.toLowerCase() ? `client-${name}` : name;
  return { ...wanted, trust, client: { ...wanted.client, fileName } };
}

function bundleName(name: string): string {
  const safe = safeFileName(name);
  return /\.p12$/i.test(safe) ? safe : `${safe}.p12`;
}

type EntryClass = 'String' | 'Boolean' | 'Integer';
type Entry = [key: string, value: string, kind?: EntryClass];

function preferences({ description, host, streamingPort, trust, client, enroll, apiPort }: DataPackage): string {
  const address = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
  const usedApiPort = enroll?.apiPort ?? apiPort ?? USUAL_API_PORT;
  const enrollmentPort = enroll?.enrollmentPort ?? USUAL_ENROLLMENT_PORT;
  const streams: Entry[] = [
    ['count', '1', 'Integer'],
    ['description0', description],
    ['enabled0', 'true', 'Boolean'],
    ['connectString0', `${address}:${streamingPort}:ssl`],
    ...locations(trust, client, '0'),
  ];
  if (enroll !== undefined)
    streams.push(
      ['useAuth0', 'true', 'Boolean'],
      ['cacheCreds0', 'Cache credentials'],
      ['enrollForCertificateWithTrust0', 'true', 'Boolean'],
    );
  const app: Entry[] = [
    ['displayServerConnectionWidget', 'true', 'Boolean'],
    ...(enrollmentPort === USUAL_ENROLLMENT_PORT ? [] : [port('apiCertEnrollmentPort', enrollmentPort)]),
    ...(usedApiPort === USUAL_API_PORT ? [] : [port('apiSecureServerPort', usedApiPort)]),
    ...locations(trust, client, ''),
  ];
  return [
    "<?xml version='1.0' encoding='UTF-8' standalone='yes'?>",
    '<preferences>',
    ...preference('cot_streams', streams),
    ...preference('com.atakmap.app_preferences', app),
    '</preferences>',
    '',
  ].join('\n');
}

/** Phones look for these in their own directory `cert`, whatever the folder in the zip. */
function locations(trust: PackageFile, client: PackageFile | undefined, index: '' | '0'): Entry[] {
  const entries: Entry[] = [
    [`caLocation${index}`, `cert/${trust.fileName}`],
    [`caPassword${index}`, BUNDLE_PASSWORD],
  ];
  if (client !== undefined)
    entries.push(
      [`certificateLocation${index}`, `cert/${client.fileName}`],
      [`clientPassword${index}`, BUNDLE_PASSWORD],
    );
  return entries;
}

function port(key: string, number: number): Entry {
  return [key, String(number)];
}

function preference(name: string, entries: readonly Entry[]): string[] {
  return [
    `  <preference version="1" name="${name}">`,
    ...entries.map(
      ([key, value, kind = 'String']) =>
        `    <entry key="${key}" class="class java.lang.${kind}">${xml(value)}</entry>`,
    ),
    '  </preference>',
  ];
}

function manifestOf({ uid, description }: DataPackage, entries: readonly string[]): string {
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<MissionPackageManifest version="2">',
    '  <Configuration>',
    `    <Parameter name="uid" value="${xml(uid)}"/>`,
    `    <Parameter name="name" value="${xml(description)}"/>`,
    '    <Parameter name="onReceiveDelete" value="true"/>',
    '  </Configuration>',
    '  <Contents>',
    ...entries.map((entry) => `    <Content ignore="false" zipEntry="${xml(entry)}"/>`),
    '  </Contents>',
    '</MissionPackageManifest>',
    '',
  ].join('\n');
}

function xml(text: string): string {
  return escapeHtml(oneLine(text).replaceAll(/[\uFFFE\uFFFF]/g, '?'));
}
