// A zip archive with exactly the entries that are asked for, wrong ones too: names that lead elsewhere, links, lies about sizes.

import { crc32, deflateRawSync } from 'node:zlib';

export interface ZipEntry {
  /** As it stands in the archive; a directory ends with a slash. */
  name: string;
  bytes?: Buffer | string;
  /** Type and permissions as UNIX has them: 0o100644, 0o100755, 0o120777 for a link, whose target are its bytes. */
  mode?: number;
  /** What the archive says that the entry unpacks to, where that is not its size. */
  claimedSize?: number;
  comment?: Buffer;
}

const FILE = 0o100644;
const DIRECTORY = 0o040755;
const MADE_ON_UNIX = (3 << 8) | 20;
const NEEDS = 20;
const NAMES_ARE_UTF8 = 0x0800;
const DEFLATED = 8;
/** 1 January 2026: the same entries make the same bytes. */
const DATE = ((2026 - 1980) << 9) | (1 << 5) | 1;

export function zipArchive(entries: readonly ZipEntry[]): Buffer {
  const parts: Buffer[] = [];
  const index: Buffer[] = [];
  let offset = 0;
  for (const entry of entries) {
    const { local, central } = entryBytes(entry, offset);
    parts.push(local);
    index.push(central);
    offset += local.length;
  }
  const directory = Buffer.concat(index);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, directory, end]);
}

function entryBytes({ name, bytes = '', mode, claimedSize, comment = Buffer.alloc(0) }: ZipEntry, offset: number) {
  const plain = Buffer.from(bytes);
  const packed = deflateRawSync(plain);
  const named = Buffer.from(name);
  const shared = Buffer.alloc(26);
  shared.writeUInt16LE(NEEDS, 0);
  shared.writeUInt16LE(NAMES_ARE_UTF8, 2);
  shared.writeUInt16LE(DEFLATED, 4);
  shared.writeUInt16LE(DATE, 8);
  shared.writeUInt32LE(crc32(plain), 10);
  shared.writeUInt32LE(packed.length, 14);
  shared.writeUInt32LE(claimedSize ?? plain.length, 18);
  shared.writeUInt16LE(named.length, 22);
  const tail = Buffer.alloc(14);
  // The upper half of the outer attributes is the mode of UNIX.
  tail.writeUInt32LE(((mode ?? (name.endsWith('/') ? DIRECTORY : FILE)) << 16) >>> 0, 6);
  tail.writeUInt32LE(offset, 10);
  tail.writeUInt16LE(comment.length, 0);
  return {
    local: Buffer.concat([word(0x04034b50), shared, named, packed]),
    central: Buffer.concat([word(0x02014b50), half(MADE_ON_UNIX), shared, tail, named, comment]),
  };
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function half(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}
