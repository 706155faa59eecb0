// Makes Android packages: a zip with a manifest in binary form, as Android's tools write it.

import { strToU8, zipSync } from 'fflate';

export interface MadeApk {
  packageName?: string;
  revision?: number;
  version?: string;
  label?: string;
  /** Its plugin-api; undefined: it is an app. */
  api?: string;
  description?: string;
  /** Without the names of attributes, which Android knows by number. */
  nameless?: boolean;
  utf16?: boolean;
}

const IDS: Record<string, number> = {
  label: 0x0101_0001,
  name: 0x0101_0003,
  value: 0x0101_0024,
  minSdkVersion: 0x0101_020c,
  versionCode: 0x0101_021b,
  versionName: 0x0101_021c,
};
const NOTHING = 0xffff_ffff;

export function madeApk(input: MadeApk = {}): Uint8Array<ArrayBuffer> {
  return zipSync({ 'classes.dex': strToU8('dex'), 'AndroidManifest.xml': binaryManifest(input) });
}

export function binaryManifest(input: MadeApk): Uint8Array<ArrayBuffer> {
  const { packageName = 'org.example.plugin', revision = 7, version = '1.2, beta', label = 'Märker', api } = input;
  const meta = (name: string, value: string | undefined): [string, [string, string | number][]][] =>
    value === undefined
      ? []
      : [
          [
            'meta-data',
            [
              ['name', name],
              ['value', value],
            ],
          ],
        ];
  const elements: [string, [string, string | number][]][] = [
    [
      'manifest',
      [
        ['versionCode', revision],
        ['versionName', version],
        ['package', packageName],
      ],
    ],
    ['uses-sdk', [['minSdkVersion', 21]]],
    ['application', [['label', label]]],
    ...meta('plugin-api', api),
    ...meta('app_desc', input.description),
  ];
  const known = Object.keys(IDS);
  const texts = [
    ...new Set(elements.flatMap(([name, given]) => [name, 'package', ...given.map(([, v]) => String(v))])),
  ];
  const strings = [...known, ...texts.filter((text) => !known.includes(text))];
  const written = strings.map((text) => (input.nameless === true && known.includes(text) ? '' : text));
  const at = (text: string): number => strings.indexOf(text);
  const ids = Buffer.concat(known.map((name) => u32(IDS[name] ?? 0)));
  const chunks = [
    pool(written, input.utf16 === true),
    Buffer.concat([u16(0x0180), u16(8), u32(8 + ids.length), ids]),
    ...elements.map(([name, given]) => element(at(name), given, at)),
  ];
  const body = Buffer.concat(chunks);
  return new Uint8Array(Buffer.concat([u16(0x0003), u16(8), u32(8 + body.length), body]));
}

function element(name: number, given: readonly [string, string | number][], at: (text: string) => number): Buffer {
  const attributes = given.map(([key, value]) => {
    const isNumber = typeof value === 'number';
    const text = isNumber ? NOTHING : at(value);
    return Buffer.concat([
      u32(NOTHING),
      u32(at(key)),
      u32(text),
      u16(8),
      Buffer.from([0, isNumber ? 0x10 : 0x03]),
      u32(isNumber ? value : text),
    ]);
  });
  const head = Buffer.concat([u32(1), u32(NOTHING), u32(NOTHING), u32(name), u16(20), u16(20), u16(given.length)]);
  const rest = Buffer.concat([head, u16(0), u16(0), u16(0), ...attributes]);
  return Buffer.concat([u16(0x0102), u16(16), u32(8 + rest.length), rest]);
}

function pool(strings: readonly string[], isUtf16: boolean): Buffer {
  const data = strings.map((text) => {
    const bytes = Buffer.from(text, isUtf16 ? 'utf16le' : 'utf8');
    return isUtf16
      ? Buffer.concat([u16(text.length), bytes, u16(0)])
      : Buffer.concat([Buffer.from([text.length, bytes.length]), bytes, Buffer.from([0])]);
  });
  let offset = 0;
  const offsets = data.map((each) => {
    const own = offset;
    offset += each.length;
    return u32(own);
  });
  const padding = Buffer.alloc((4 - (offset % 4)) % 4);
  const start = 28 + 4 * strings.length;
  const rest = Buffer.concat([
    u32(strings.length),
    u32(0),
    u32(isUtf16 ? 0 : 0x100),
    u32(start),
    u32(0),
    ...offsets,
    ...data,
    padding,
  ]);
  return Buffer.concat([u16(0x0001), u16(28), u32(8 + rest.length), rest]);
}

function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
}
