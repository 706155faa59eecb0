// Recognizes the TAK Server release in an archive, and checks that it is complete.

import { basename } from 'node:path';
import { StackError } from '@holdfast/kit/app-error';
import { quoted, ReleaseArchive } from './archive.ts';
import { checkNeeds, type KnownNeeds, MAX_NEEDS_BYTES, readNeeds } from './needs.ts';
import { compareReleases } from './version.ts';

/** The known variants of a release, by the files that build their images. */
export const VARIANTS = {
  docker: { coreDockerfile: 'docker/Dockerfile.takserver', databaseDockerfile: 'docker/Dockerfile.takserver-db' },
  hardened: {
    coreDockerfile: 'docker/Dockerfile.hardened-takserver',
    databaseDockerfile: 'docker/Dockerfile.hardened-takserver-db',
  },
} as const;
export type Variant = keyof typeof VARIANTS;

export interface Release {
  version: string;
  variant: Variant;
  /** Below the top folder. */
  coreDockerfile: string;
  databaseDockerfile: string;
}

export interface KnownRelease extends Release {
  needs: KnownNeeds;
}

export const VERSION_FILE = 'tak/version.txt';
const TOP = /^takserver-docker-(?:(hardened)-)?(\d[A-Za-z0-9.-]*)$/;
const OTHER_VARIANT = /^takserver-docker-(?:hardened-)?[A-Za-z]/;
const VERSION = /^\d{1,4}(?:\.\d{1,4}){1,2}-RELEASE-\d{1,6}$/;
const OLDEST_MAJOR = 5;
const TAKE_ONE = 'use the download for Docker as it is: takserver-docker-<version>.zip from https://tak.gov';

/** Files of a release that the images and our programs use. */
const NEEDED = [
  'tak/CoreConfig.example.xml',
  'tak/certs/cert-metadata.sh',
  'tak/certs/makeCert.sh',
  'tak/certs/makeRootCa.sh',
  'tak/certs/revokeCert.sh',
  'tak/configureInDocker.sh',
  'tak/db-utils/SchemaManager.jar',
  'tak/setenv.sh',
  'tak/takserver-pm.jar',
  'tak/takserver-retention.jar',
  'tak/takserver.war',
  'tak/utils/UserManager.jar',
];

/** The single top folder. Throws a StackError if there is another folder or file next to it. */
export function topFolder(archive: string, names: readonly string[]): string {
  const [first = ''] = names;
  const top = first.split('/')[0] ?? '';
  const beside = names.find((name) => !name.startsWith(`${top}/`));
  if (first === '' || (beside === undefined && !TOP.test(top)))
    throw new StackError(
      OTHER_VARIANT.test(top)
        ? `${archive} is an unknown variant of the release (${quoted(top)}). Known variants: ${known()}.`
        : `${archive} is not a TAK Server release for Docker: its folder is ${quoted(top)}, not takserver-docker-<version>.`,
      TAKE_ONE,
    );
  if (beside !== undefined)
    throw new StackError(
      `${archive} is not a release: ${quoted(beside)} is outside its folder ${quoted(top)}.`,
      TAKE_ONE,
    );
  return top;
}

/** Identifies the release. `names`: files below the top folder. Throws a StackError. */
export function recognize(archive: string, top: string, names: ReadonlySet<string>, versionText: string): Release {
  const version = versionText.trim();
  const [, hardened, named] = TOP.exec(top) ?? [];
  if (!VERSION.test(version) || version !== named)
    throw new StackError(
      `${archive} is an unknown release: ${VERSION_FILE} says ${quoted(version.slice(0, 100))}, its folder is ${quoted(top)}.`,
      `${TAKE_ONE}, such as takserver-docker-5.7-RELEASE-8.zip`,
    );
  if (Number.parseInt(version, 10) < OLDEST_MAJOR)
    throw new StackError(
      `${archive} is TAK Server ${version}. Version 5.0 or newer is needed (PostgreSQL 15 or 18, and the retention service).`,
      'use a newer release',
    );
  const variant: Variant = hardened === undefined ? 'docker' : 'hardened';
  const dockerfiles = VARIANTS[variant];
  const absent = Object.values(dockerfiles).filter((name) => !names.has(name));
  if (absent.length > 0)
    throw new StackError(
      `${archive} has no ${absent.join(' and no ')}, which build its images. Known variants: ${known()}.`,
      TAKE_ONE,
    );
  const missing = NEEDED.filter((name) => !names.has(name));
  if (missing.length > 0) throw new StackError(`${archive} lacks ${missing.join(', ')}.`, TAKE_ONE);
  return { version, variant, ...dockerfiles };
}

/** Throws a StackError if the stack can't be upgraded from its release to this one. */
export function checkUpgrade(
  archive: string,
  to: Release,
  from: { version: string; variant?: Variant | undefined },
): void {
  if (!VERSION.test(from.version))
    throw new StackError(
      `CORE_RELEASE in .env is not a release version: ${quoted(from.version)}.`,
      'set it to the release of this stack, such as CORE_RELEASE=5.7-RELEASE-8',
    );
  if (compareReleases(to.version, from.version) < 0)
    throw new StackError(
      `${archive} is ${to.version}, older than this stack's release ${from.version}. The database can't be downgraded.`,
      `use an archive of ${from.version} or newer`,
    );
  if (from.variant !== undefined && from.variant !== to.variant)
    throw new StackError(
      `${archive} is the variant ${to.variant}, but this stack uses the variant ${from.variant}. Their PostgreSQL may differ and fail to read the database.`,
      `use the archive of the variant ${from.variant}`,
    );
}

function known(): string {
  return Object.entries(VARIANTS)
    .map(([name, files]) => `${name} (${files.coreDockerfile}, ${files.databaseDockerfile})`)
    .join(' and ');
}

const MAX_VERSION_BYTES = 200;

/** Opens the archive, identifies its release, and closes it after `use`. */
export async function withRelease<T>(
  path: string,
  use: (archive: ReleaseArchive, release: KnownRelease, top: string) => Promise<T>,
): Promise<T> {
  const archive = await ReleaseArchive.open(path, basename(path));
  try {
    const top = topFolder(
      archive.name,
      archive.entries.map(({ name }) => name),
    );
    const files = archive.entries.filter(({ isDirectory }) => !isDirectory);
    const below = new Map(files.map((entry) => [entry.name.slice(top.length + 1), entry]));
    const versionFile = below.get(VERSION_FILE);
    if (versionFile === undefined)
      throw new StackError(
        `${archive.name} is not a release: it has no ${VERSION_FILE} in its folder ${top}.`,
        'use the download for Docker as it is: takserver-docker-<version>.zip',
      );
    const version = await archive.text(versionFile, MAX_VERSION_BYTES);
    const release = recognize(archive.name, top, new Set(below.keys()), version);
    const needs = await readNeeds(release, async (name) => {
      const entry = below.get(name);
      return entry === undefined ? undefined : archive.bytesOf(entry, MAX_NEEDS_BYTES);
    });
    return await use(archive, { ...release, needs: checkNeeds(archive.name, release.version, needs) }, top);
  } finally {
    archive.close();
  }
}
