// Reads what an Android package says of itself: package name, version and the plugin API, from its
// binary manifest.

import { messageOf } from '@holdfast/kit/app-error';
import { readZipEntry } from '../files/zip-entry.ts';
import { CoreFault } from '../http/answers.ts';
import type { ApkFacts } from '../store/products.ts';

const MANIFEST = 'AndroidManifest.xml';
const LIMITS = { called: MANIFEST, maxBytes: 4_000_000 };
const MAX_TEXT = 500;
const PACKAGE_NAME = /^[A-Za-z]\w*(?:\.[A-Za-z]\w*)+$/;
const MAX_PACKAGE_NAME = 200;

/** Rejects with a CoreFault that says why the file is no package. */
export async function readApk(path: string): Promise<ApkFacts> {
  try {
    return factsOf(elementsOf(await readZipEntry(path, (name) => name === MANIFEST, LIMITS)));
  } catch (cause) {
    throw new CoreFault('invalid', `Invalid Request: the file is no Android package: ${messageOf(cause)}`, { cause });
  }
}

type Value = string | number | undefined;
interface Element {
  name: string;
  attributes: ReadonlyMap<string, Value>;
}

function factsOf(elements: readonly Element[]): ApkFacts {
  const named = (name: string): ReadonlyMap<string, Value> =>
    elements.find((each) => each.name === name)?.attributes ?? new Map();
  const meta = new Map(
    elements
      .filter(({ name }) => name === 'meta-data')
      .map(({ attributes }) => [attributes.get('name'), attributes.get('value')]),
  );
  const manifest = named('manifest');
  const packageName = textOf(manifest.get('package')) ?? '';
  if (!PACKAGE_NAME.test(packageName) || packageName.length > MAX_PACKAGE_NAME)
    throw new RangeError('its manifest has no package name');
  const revision = numberOf(manifest.get('versionCode')) ?? 0;
  return {
    packageName,
    version: textOf(manifest.get('versionName')) ?? String(revision),
    revision,
    label: textOf(named('application').get('label')),
    description: textOf(meta.get('app_desc')),
    pluginApi: textOf(meta.get('plugin-api')),
    minSdk: numberOf(named('uses-sdk').get('minSdkVersion')) ?? 1,
  };
}

/** On one line, without what separates the columns of a list. */
function textOf(value: Value): string | undefined {
  const text = String(value ?? '')
    .replaceAll(/[\p{C}\p{Z},]+/gu, ' ')
    .trim();
  return text === '' ? undefined : text.slice(0, MAX_TEXT).toWellFormed();
}

function numberOf(value: Value): number | undefined {
  const number = Number(value ?? Number.NaN);
  return Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

const DOCUMENT = 0x0003;
const STRINGS = 0x0001;
const RESOURCE_IDS = 0x0180;
const START_ELEMENT = 0x0102;
const UTF8 = 0x100;
const NOTHING = 0xffff_ffff;
const TEXT = 0x03;
const MAX_STRING_BYTES = 4_096;
const NUMBERS: ReadonlySet<number> = new Set([0x10, 0x11, 0x12]);
/** Attributes by the number that Android gives them: their names may be left out. */
const ATTRIBUTES: Readonly<Record<number, string>> = {
  0x0101_0001: 'label',
  0x0101_0003: 'name',
  0x0101_0024: 'value',
  0x0101_020c: 'minSdkVersion',
  0x0101_021b: 'versionCode',
  0x0101_021c: 'versionName',
};

/** Throws a RangeError for what ends early. */
function elementsOf(bytes: Buffer): Element[] {
  if (bytes.readUInt16LE(0) !== DOCUMENT) throw new RangeError('its manifest is not in binary form');
  const elements: Element[] = [];
  let strings: Strings = () => undefined;
  let ids: number[] = [];
  for (let at = bytes.readUInt16LE(2); at + 8 <= bytes.length;) {
    const kind = bytes.readUInt16LE(at);
    const size = bytes.readUInt32LE(at + 4);
    if (size < 8 || at + size > bytes.length) throw new RangeError('its manifest is cut off');
    const chunk = bytes.subarray(at, at + size);
    if (kind === STRINGS) strings = stringsOf(chunk);
    if (kind === RESOURCE_IDS) ids = numbersOf(chunk, chunk.readUInt16LE(2), (size - chunk.readUInt16LE(2)) >> 2);
    if (kind === START_ELEMENT) elements.push(elementOf(chunk, strings, ids));
    at += size;
  }
  return elements;
}

function numbersOf(chunk: Buffer, from: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => chunk.readUInt32LE(from + 4 * index));
}

/**
 * By their numbers. Read when they are asked for: a hostile file names the same one a million
 * times.
 */
type Strings = (index: number) => string | undefined;

function stringsOf(chunk: Buffer): Strings {
  const head = chunk.readUInt16LE(2);
  const count = chunk.readUInt32LE(8);
  const isUtf8 = (chunk.readUInt32LE(16) & UTF8) !== 0;
  const start = chunk.readUInt32LE(20);
  if (head + 4 * count > chunk.length) throw new RangeError('its manifest is cut off');
  return (index) =>
    index < count ? (isUtf8 ? utf8At : utf16At)(chunk, start + chunk.readUInt32LE(head + 4 * index)) : undefined;
}

function utf8At(chunk: Buffer, at: number): string {
  // The length in characters, then in bytes: each in one byte or two.
  const bytesAt = at + (chunk.readUInt8(at) & 0x80 ? 2 : 1);
  const first = chunk.readUInt8(bytesAt);
  const isLong = (first & 0x80) !== 0;
  const length = isLong ? ((first & 0x7f) << 8) | chunk.readUInt8(bytesAt + 1) : first;
  const from = bytesAt + (isLong ? 2 : 1);
  return chunk.toString('utf8', from, from + Math.min(length, MAX_STRING_BYTES));
}

function utf16At(chunk: Buffer, at: number): string {
  const first = chunk.readUInt16LE(at);
  const isLong = (first & 0x8000) !== 0;
  const length = isLong ? (first & 0x7fff) * 0x1_0000 + chunk.readUInt16LE(at + 2) : first;
  const from = at + (isLong ? 4 : 2);
  return chunk.toString('utf16le', from, from + Math.min(2 * length, MAX_STRING_BYTES));
}

function elementOf(chunk: Buffer, strings: Strings, ids: readonly number[]): Element {
  const head = chunk.readUInt16LE(2);
  const [start, size, count] = [8, 10, 12].map((offset) => chunk.readUInt16LE(head + offset)) as [
    number,
    number,
    number,
  ];
  const attributes = new Map<string, Value>();
  for (let index = 0; index < count; index++) {
    const at = head + start + index * size;
    const name = chunk.readUInt32LE(at + 4);
    const raw = chunk.readUInt32LE(at + 8);
    const kind = chunk.readUInt8(at + 15);
    const data = chunk.readUInt32LE(at + 16);
    const text = kind === TEXT ? strings(data) : raw === NOTHING ? undefined : strings(raw);
    attributes.set(ATTRIBUTES[ids[name] ?? 0] ?? strings(name) ?? '', NUMBERS.has(kind) ? data : text);
  }
  return { name: strings(chunk.readUInt32LE(head + 4)) ?? '', attributes };
}
