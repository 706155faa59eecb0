// The header Range (RFC 9110, 14): one range of bytes; several at once are answered with the whole file.

export interface ByteRange {
  /** First byte, counted from 0. */
  from: number;
  length: number;
}

/** What is asked for of a file of so many bytes; undefined: all of it; `unsatisfiable`: nothing of it. */
export function byteRange(header: string | undefined, size: number): ByteRange | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=\s*(\d{0,15})-(\d{0,15})\s*$/i.exec(header ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  if (first === '') return part(Math.max(0, size - Number(last)), size, size);
  if (last !== '' && Number(last) < Number(first)) return undefined;
  return part(Number(first), last === '' ? size : Number(last) + 1, size);
}

function part(from: number, end: number, size: number): ByteRange | 'unsatisfiable' {
  const length = Math.min(end, size) - from;
  return length > 0 ? { from, length } : 'unsatisfiable';
}
