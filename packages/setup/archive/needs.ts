// Reads from the files of a release what it needs (PostgreSQL, schema, Java), and refuses a release
// that Holdfast does not know.

import { Buffer } from 'node:buffer';
import { fromBufferPromise } from 'yauzl';
import { StackError } from '@holdfast/kit/app-error';
import { compareMinors, KNOWN_JAVA, KNOWN_RELEASES, versionOfRelease } from '../../../shared/core/releases.ts';

/** Undefined: its files do not tell. */
export interface ReleaseNeeds {
  /** Major version. More than one if the files name several. */
  postgres: readonly number[];
  /** Number of the newest migration of its schema tool. */
  schema: number | undefined;
  java: number | undefined;
}

export interface KnownNeeds {
  postgres: number;
  schema: number;
  java: number | undefined;
}

/** The bytes of a file below the top folder; undefined if there is none. */
export type ReadReleaseFile = (path: string) => Promise<Buffer | undefined>;

export const SCHEMA_TOOL = 'tak/db-utils/SchemaManager.jar';
const DATABASE_SCRIPT = 'tak/db-utils/configureInDocker.sh';
/** Of files that are read for their text. */
export const MAX_NEEDS_BYTES = 256 * 1024 ** 2;

export async function readNeeds(
  { coreDockerfile, databaseDockerfile }: Record<'coreDockerfile' | 'databaseDockerfile', string>,
  read: ReadReleaseFile,
): Promise<ReleaseNeeds> {
  const text = async (path: string): Promise<string> => withoutComments((await read(path))?.toString('utf8') ?? '');
  const [core, database] = [await text(coreDockerfile), await text(databaseDockerfile)];
  const named = majorsIn(database, POSTGRES);
  // An image may have an older version beside the one that its script starts.
  const started = named.length === 1 ? [] : majorsIn(await text(DATABASE_SCRIPT), POSTGRES);
  const jar = await read(SCHEMA_TOOL);
  return {
    postgres: started.length === 1 ? started : named,
    schema: jar === undefined ? undefined : await schemaNumber(jar),
    java: (majorsIn(core, JAVA).at(-1) ?? majorsIn(database, JAVA).at(-1)) || undefined,
  };
}

const POSTGRES = [
  /^\s*FROM\s+(?:--\S+\s+)?\S*postgres(?:ql)?:(\d+)/gim,
  /^\s*ARG\s+BASE\w*_IMAGE=\S*postgres\S*\s+ARG\s+BASE\w*_TAG=["']?(\d+)/gim,
  /\bpostgresql-?(\d+)(?:-(?:postgis|server|contrib)|\b(?![.-]))/g,
  /\bpostgis\d+_(\d+)\b/g,
  /\bpgsql-(\d+)\b/g,
  /^\s*(?:ENV\s+|ARG\s+)?(?:PG_?(?:VER|VERSION|MAJOR)|version)[= ]["']?(\d+)/gm,
];
const JAVA = [/\btemurin:(\d+)/g, /\bopenjdk-?(\d+)\b/g, /\bjava-(\d+)-openjdk/g, /\bjdk-?(\d+)\b/g];

function majorsIn(text: string, patterns: readonly RegExp[]): number[] {
  const found = patterns.flatMap((pattern) => [...text.matchAll(pattern)].map(([, major]) => Number(major)));
  return [...new Set(found)].toSorted((one, other) => one - other);
}

function withoutComments(text: string): string {
  return text.replaceAll(/^\s*#.*$/gm, '');
}

/** The newest migration in the schema tool; undefined if it has no numbered migrations. */
export async function schemaNumber(jar: Buffer): Promise<number | undefined> {
  try {
    const zip = await fromBufferPromise(jar);
    let newest: number | undefined;
    for await (const { fileName } of zip.eachEntry()) {
      const number = /(?:^|\/)db\/migration\/V(\d{1,6})__[^/]*\.sql$/.exec(fileName)?.[1];
      if (number !== undefined) newest = Math.max(newest ?? 0, Number(number));
    }
    return newest;
  } catch {
    return undefined;
  }
}

/** Throws a StackError that names what is unknown about the release. */
export function checkNeeds(archive: string, version: string, needs: ReleaseNeeds): KnownNeeds {
  const of = `${archive} (TAK Server ${version})`;
  const minor = versionOfRelease(version);
  const newest = KNOWN_RELEASES.at(-1)?.last ?? [0, 0];
  if (minor === undefined || compareMinors(minor, newest) > 0)
    throw new StackError(
      `${of} is newer than the releases that this Holdfast knows: ${knownVersions()}. Nothing was changed.`,
      'upgrade Holdfast first (git pull), or use an archive of a known release',
    );
  const { schema, java } = needs;
  const [postgres, ...others] = needs.postgres;
  if (postgres === undefined || others.length > 0)
    throw new StackError(
      postgres === undefined
        ? `${of} does not say which PostgreSQL its database needs: the Dockerfile of its database names none.`
        : `${of} names PostgreSQL ${needs.postgres.join(' and ')} for its database, so the version that it needs is unknown.`,
      UNALTERED,
    );
  if (schema === undefined)
    throw new StackError(
      `${of} does not say which schema its database needs: ${SCHEMA_TOOL} has no migrations (db/migration/V<number>__*.sql).`,
      UNALTERED,
    );
  if (!KNOWN_RELEASES.some((known) => known.postgres === postgres && isWithin(schema, known.schema)))
    throw new StackError(
      `${of} needs PostgreSQL ${postgres} with schema ${schema}, which this Holdfast doesn't know. Known: ${knownShapes()}.`,
      'upgrade Holdfast first (git pull), or use an archive of a known release',
    );
  if (java !== undefined && !KNOWN_JAVA.includes(java))
    throw new StackError(
      `${of} needs Java ${java}, which this Holdfast doesn't know. Known: Java ${KNOWN_JAVA.join(' and ')}.`,
      'upgrade Holdfast first (git pull), or use an archive of a known release',
    );
  return { postgres, schema, java };
}

const UNALTERED =
  'use the download for Docker as it is, takserver-docker-<version>.zip from https://tak.gov. If it is unaltered, upgrade Holdfast (git pull) or report this';

function isWithin(number: number, { min, max = Infinity }: { min: number; max?: number }): boolean {
  return number >= min && number <= max;
}

function knownVersions(): string {
  return KNOWN_RELEASES.map(({ first, last }) =>
    compareMinors(first, last) === 0 ? first.join('.') : `${first.join('.')} to ${last.join('.')}`,
  ).join(', ');
}

function knownShapes(): string {
  return KNOWN_RELEASES.map(({ postgres, schema: { min, max } }) =>
    max === undefined
      ? `PostgreSQL ${postgres} with schema ${min} or newer`
      : `PostgreSQL ${postgres} with schema ${min} to ${max}`,
  ).join(', ');
}
