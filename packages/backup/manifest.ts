// The shape of an archive: its first entry `header.json`, its last one `manifest.json`, and the
// names between them.

import { z } from 'zod';
import { compareVersions, RELEASE } from '@holdfast/kit/release';
import { StackError } from '@holdfast/kit/app-error';

export const FORMAT = 'holdfast-backup';
/** Counts changes of the format that an older release can't read. */
export const FORMAT_VERSION = 1;
export const HEADER_NAME = 'header.json';
export const MANIFEST_NAME = 'manifest.json';

export const DATABASES = ['core', 'identity', 'state'] as const;
export type DatabaseKey = (typeof DATABASES)[number];

const count = z.number().int().nonnegative();
const hex256 = z.string().regex(/^[0-9a-f]{64}$/);

export const headerSchema = z.object({
  format: z.literal(FORMAT),
  version: z.number().int().positive(),
  release: z.string(),
  architecture: z.string(),
  stack: z.enum(['embedded', 'light', 'production']),
  created_at: z.iso.datetime(),
  history: z.boolean(),
  /** The number of each database's last migration; null if its schema isn't ours. */
  schemas: z.partialRecord(z.enum(DATABASES), count.nullable()),
  ca_fingerprint: z.string(),
});
export type Header = z.infer<typeof headerSchema>;

/**
 * How a column's values are written in COPY's text format. `vector`: a key of the table's entry
 * `vectors.copy` (key, tab, bits). `bytes`: as usual, but a value of more than LARGE_BYTES is
 * `@N`, and its bytes are the entries `large/N/...`.
 */
export const columnSchema = z.object({
  name: z.string(),
  kind: z.enum(['plain', 'vector', 'bytes']),
  /** As PostgreSQL names it: `timestamp(3) with time zone`. */
  type: z.string().optional(),
});
export type ArchivedColumn = z.infer<typeof columnSchema>;

export const tableSchema = z.object({
  name: z.string(),
  /** In the order of the fields of a row. */
  columns: z.array(columnSchema),
  rows: count,
  /** Bytes of its rows as text. */
  bytes: count,
  /** True if the rows are left out: history that wasn't wanted. */
  omitted: z.boolean(),
});
export type ArchivedTable = z.infer<typeof tableSchema>;

export const databaseSchema = z.object({
  key: z.enum(DATABASES),
  /** Of the server: `16.14`. */
  postgres: z.string(),
  /** When its snapshot was taken. */
  snapshot_at: z.iso.datetime(),
  /** On the disk of the source. */
  bytes: count,
  tables: z.array(tableSchema),
  sequences: z.array(z.object({ name: z.string(), last_value: z.string(), is_called: z.boolean() })),
});
export type ArchivedDatabase = z.infer<typeof databaseSchema>;

export const manifestSchema = z.object({
  format: z.literal(FORMAT),
  /** When the copy began and ended. */
  began_at: z.iso.datetime(),
  ended_at: z.iso.datetime(),
  /** Every entry before this one. */
  entries: z.array(z.object({ name: z.string(), bytes: count, sha256: hex256 })),
  databases: z.array(databaseSchema),
  files: z.array(z.object({ part: z.string(), files: count, bytes: count })),
});
export type Manifest = z.infer<typeof manifestSchema>;

/** Header and manifest of an archive whose every entry was verified. */
export interface VerifiedArchive {
  header: Header;
  manifest: Manifest;
}

export function rowsOf({ databases }: Pick<Manifest, 'databases'>): number {
  return databases.flatMap(({ tables }) => tables).reduce((sum, { rows }) => sum + rows, 0);
}

/** Throws a StackError if this release can't read the archive. */
export function parseHeader(text: string): Header {
  const document = parseJson(text, HEADER_NAME);
  const marked = z.object({ format: z.literal(FORMAT), version: z.number(), release: z.string() }).safeParse(document);
  if (!marked.success) throw foreign();
  const { version, release } = marked.data;
  if (version > FORMAT_VERSION || (compareVersions(release, RELEASE) ?? 0) > 0) throw tooNew(release);
  const parsed = headerSchema.safeParse(document);
  if (!parsed.success) throw damaged(`${HEADER_NAME} has an unknown shape`);
  return parsed.data;
}

export function parseManifest(text: string): Manifest {
  const parsed = manifestSchema.safeParse(parseJson(text, MANIFEST_NAME));
  if (parsed.success) return parsed.data;
  throw damaged(`${MANIFEST_NAME} has an unknown shape`);
}

function parseJson(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw damaged(`${name} is not JSON`);
  }
}

function tooNew(release: string): StackError {
  return new StackError(
    `The archive was made by Holdfast ${release}. This is Holdfast ${RELEASE}, which can't read it.`,
    `restore it with Holdfast ${release} or a later release`,
  );
}

export function foreign(cause?: unknown): StackError {
  return new StackError(
    'The file is not a backup of Holdfast.',
    'give an archive that Holdfast made (holdfast-….tar.zst.age)',
    cause,
  );
}

export function damaged(how: string, cause?: unknown): StackError {
  return new StackError(
    `The archive is damaged: ${how}.`,
    'copy it again from where it is kept and compare its SHA-256, or use another backup',
    cause,
  );
}

export function cutOff(cause?: unknown): StackError {
  return new StackError(
    'The archive is cut off: its end is missing.',
    'copy it again from where it is kept, or use another backup',
    cause,
  );
}
