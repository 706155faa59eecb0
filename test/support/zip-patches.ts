// What an archive is made to say that it should not: fields of its index overwritten, the 64 bit form, and a large file.

import { Buffer } from 'node:buffer';
import type { ZipEntry } from './zip-archive.ts';

const CENTRAL = Buffer.from('PK\u0001\u0002');
const LOCAL = Buffer.from('PK\u0003\u0004');
const END_BYTES = 22;
const CENTRAL_BYTES = 46;
const ZIP64_END_BYTES = 56;

export interface Patch {
  /** The end of its name. */
  entry?: string;
  flags?: number;
  method?: number;
  crc?: number;
  offset?: number;
  endEntries?: number;
}

/** The index says something else; what the entry itself says goes with it. */
export function patched(archive: Buffer, { entry, flags, method, crc, offset, endEntries }: Patch): Buffer {
  const bytes = Buffer.from(archive);
  if (endEntries !== undefined) {
    bytes.writeUInt16LE(endEntries, bytes.length - END_BYTES + 8);
    bytes.writeUInt16LE(endEntries, bytes.length - END_BYTES + 10);
  }
  if (entry === undefined) return bytes;
  const central = centralOf(bytes, entry);
  const local = bytes.readUInt32LE(central + 42);
  if (!bytes.subarray(local, local + 4).equals(LOCAL)) throw new Error('the index leads to no entry');
  if (flags !== undefined) {
    bytes.writeUInt16LE(bytes.readUInt16LE(central + 8) | flags, central + 8);
    bytes.writeUInt16LE(bytes.readUInt16LE(local + 6) | flags, local + 6);
  }
  if (method !== undefined) {
    bytes.writeUInt16LE(method, central + 10);
    bytes.writeUInt16LE(method, local + 8);
  }
  if (crc !== undefined) {
    bytes.writeUInt32LE(crc, central + 16);
    bytes.writeUInt32LE(crc, local + 14);
  }
  if (offset !== undefined) bytes.writeUInt32LE(offset, central + 42);
  return bytes;
}

function centralOf(bytes: Buffer, entry: string): number {
  let at = bytes.indexOf(CENTRAL);
  while (at !== -1) {
    const name = bytes.toString('utf8', at + CENTRAL_BYTES, at + CENTRAL_BYTES + bytes.readUInt16LE(at + 28));
    if (name.endsWith(entry)) return at;
    at = bytes.indexOf(CENTRAL, at + 1);
  }
  throw new Error(`there is no entry ${entry}`);
}

/** The same archive with its end in the 64 bit form, which every field of the old end points to. */
export function withZip64(archive: Buffer): Buffer {
  const end = archive.length - END_BYTES;
  const [entries, size, offset] = [
    archive.readUInt16LE(end + 10),
    archive.readUInt32LE(end + 12),
    archive.readUInt32LE(end + 16),
  ];
  const record = Buffer.alloc(ZIP64_END_BYTES);
  record.write('PK\u0006\u0006', 'latin1');
  record.writeBigUInt64LE(BigInt(ZIP64_END_BYTES - 12), 4);
  record.writeUInt16LE(45, 12);
  record.writeUInt16LE(45, 14);
  record.writeBigUInt64LE(BigInt(entries), 24);
  record.writeBigUInt64LE(BigInt(entries), 32);
  record.writeBigUInt64LE(BigInt(size), 40);
  record.writeBigUInt64LE(BigInt(offset), 48);
  const locator = Buffer.alloc(20);
  locator.write('PK\u0006\u0007', 'latin1');
  locator.writeBigUInt64LE(BigInt(end), 8);
  locator.writeUInt32LE(1, 16);
  const old = Buffer.from(archive.subarray(end));
  old.writeUInt16LE(0xffff, 8);
  old.writeUInt16LE(0xffff, 10);
  old.writeUInt32LE(0xffffffff, 12);
  old.writeUInt32LE(0xffffffff, 16);
  return Buffer.concat([archive.subarray(0, end), record, locator, old]);
}

/** A file of zeros, which is small as long as it is packed. */
export function largeEntry(name: string, bytes: number): ZipEntry {
  return { name, bytes: Buffer.alloc(bytes) };
}
