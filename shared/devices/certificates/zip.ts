// Writes zip files without compression: what goes into a data package is small, or encrypted. A library for it would cost the
// management process nine megabytes from its start on.

/** 1 January 2020, 00:00: the same files give the same bytes. */
const [DATE, TIME] = [(40 << 9) | (1 << 5) | 1, 0];
const VERSION = 20;
const [LOCAL_HEADER, DIRECTORY_HEADER, DIRECTORY_END] = [0x04034b50, 0x02014b50, 0x06054b50];

/** Names are ASCII, with `/` between folders; the files come in their order. */
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
