// What may be called how in a release archive: a name that leads out of it, hides something or falls together with another
// one is refused, before anything is written.

import { Buffer } from 'node:buffer';

export interface NamedEntry {
  /** As it stands in the archive; a directory ends with a slash. */
  name: string;
}

/** As file systems have it. */
const LONGEST_PART_BYTES = 255;
const LONGEST_NAME_BYTES = 1000;
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufffd]/;

/** What is wrong with a name alone, as the end of a sentence. */
export function nameProblem(name: string): string | undefined {
  const parts = (name.endsWith('/') ? name.slice(0, -1) : name).split('/');
  if (CONTROL.test(name)) return 'has control characters or broken text in its name';
  if (name.includes('\\')) return 'has a backslash in its name';
  if (name.startsWith('/') || /^[A-Za-z]:/.test(name)) return 'has an absolute name';
  if (parts.includes('..')) return 'leads out of its folder';
  if (parts.some((part) => part === '' || part === '.')) return 'has an empty part in its name';
  if (Buffer.byteLength(name) > LONGEST_NAME_BYTES) return `has a name longer than ${LONGEST_NAME_BYTES} bytes`;
  if (parts.some((part) => Buffer.byteLength(part) > LONGEST_PART_BYTES))
    return `has a part longer than ${LONGEST_PART_BYTES} bytes in its name`;
  return undefined;
}

/** The first entry whose name falls together with that of another one, ignoring case, and what it falls together with. */
export function namesakes(entries: readonly NamedEntry[]): [name: string, other: string] | undefined {
  const seen = new Map<string, string>();
  const listed = new Set<string>();
  for (const { name } of entries) {
    const path = name.replace(/\/$/, '');
    if (listed.has(path)) return [name, name];
    listed.add(path);
    const parts = path.split('/');
    // Directories are named by what lies in them, too.
    for (let length = 1; length <= parts.length; length += 1) {
      const isDirectory = length < parts.length || name.endsWith('/');
      const each = parts.slice(0, length).join('/') + (isDirectory ? '/' : '');
      const folded = parts.slice(0, length).join('/').normalize('NFC').toLowerCase();
      const other = seen.get(folded) ?? each;
      if (other !== each) return [each, other];
      seen.set(folded, each);
    }
  }
  return undefined;
}
