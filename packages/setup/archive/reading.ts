// From the path of an archive to the release in it: what it is called, and that everything is there which is needed of it.

import { basename } from 'node:path';
import { StackError } from '@holdfast/kit/app-error';
import { quoted, ReleaseArchive } from './archive.ts';
import { compareReleases } from './version.ts';

/** Which release an archive is, and how its images are built: told by its names and its version file alone. */
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

export const VERSION_FILE = 'tak/version.txt';
const TOP = /^takserver-docker-(?:(hardened)-)?(\d[A-Za-z0-9.-]*)$/;
const OTHER_VARIANT = /^takserver-docker-(?:hardened-)?[A-Za-z]/;
const VERSION = /^\d{1,4}(?:\.\d{1,4}){1,2}-RELEASE-\d{1,6}$/;
const OLDEST_MAJOR = 5;
const TAKE_ONE = 'take the download for Docker as it is: takserver-docker-<version>.zip of https://tak.gov';

/** What the images and our own programs use of a release. */
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

/** The one folder that everything lies in; refused when there is another one, or a file beside it. */
export function topFolder(archive: string, names: readonly string[]): string {
  const [first = ''] = names;
  const top = first.split('/')[0] ?? '';
  const beside = names.find((name) => !name.startsWith(`${top}/`));
  if (first === '' || (beside === undefined && !TOP.test(top)))
    throw new StackError(
      OTHER_VARIANT.test(top)
        ? `${archive} is a variant of the release that is not known here (${quoted(top)}): known are ${known()}.`
        : `${archive} is no TAK Server release for Docker: its folder is ${quoted(top)}, not takserver-docker-<version>.`,
      TAKE_ONE,
    );
  if (beside !== undefined)
    throw new StackError(
      `${archive}: ${quoted(beside)} lies beside the folder ${quoted(top)}; a release has one folder alone.`,
      TAKE_ONE,
    );
  return top;
}

/** `names` are those of files, below the top folder. */
export function recognise(archive: string, top: string, names: ReadonlySet<string>, versionText: string): Release {
  const version = versionText.trim();
  const [, hardened, named] = TOP.exec(top) ?? [];
  if (!VERSION.test(version) || version !== named)
    throw new StackError(
      `${archive}: ${VERSION_FILE} says ${quoted(version.slice(0, 100))} in the folder ${quoted(top)}; that is no release which is known here.`,
      `${TAKE_ONE}, such as takserver-docker-5.7-RELEASE-8.zip`,
    );
  if (Number.parseInt(version, 10) < OLDEST_MAJOR)
    throw new StackError(
      `${archive} is TAK Server ${version}; 5.0 or newer is needed, which has PostgreSQL 15 and the retention service.`,
      'take a newer release',
    );
  const variant: Variant = hardened === undefined ? 'docker' : 'hardened';
  const dockerfiles = VARIANTS[variant];
  const absent = Object.values(dockerfiles).filter((name) => !names.has(name));
  if (absent.length > 0)
    throw new StackError(
      `${archive} has no ${absent.join(' and no ')}: how its images are built is not known here. Known are ${known()}.`,
      TAKE_ONE,
    );
  const missing = NEEDED.filter((name) => !names.has(name));
  if (missing.length > 0) throw new StackError(`${archive} lacks ${missing.join(', ')}.`, TAKE_ONE);
  return { version, variant, ...dockerfiles };
}

/** Refuses what cannot follow on the release that the stack was set up from. */
export function checkUpgrade(
  archive: string,
  to: Release,
  from: { version: string; variant?: Variant | undefined },
): void {
  if (!VERSION.test(from.version))
    throw new StackError(
      `CORE_RELEASE is ${quoted(from.version)} in .env, which is no version of a release.`,
      'write there what this stack was set up from, such as CORE_RELEASE=5.7-RELEASE-8',
    );
  if (compareReleases(to.version, from.version) < 0)
    throw new StackError(
      `${archive} is ${to.version}, older than ${from.version}, which this stack was set up from: its database cannot go back.`,
      `give an archive of ${from.version} or newer`,
    );
  if (from.variant !== undefined && from.variant !== to.variant)
    throw new StackError(
      `${archive} is of the variant ${to.variant}, and this stack was set up from the variant ${from.variant}: their PostgreSQL may differ, and the database would not be read.`,
      `take the archive of the variant ${from.variant}`,
    );
}

function known(): string {
  return Object.entries(VARIANTS)
    .map(([name, files]) => `${name} (${files.coreDockerfile}, ${files.databaseDockerfile})`)
    .join(' and ');
}

const MAX_VERSION_BYTES = 200;

/** Opens the archive, and closes it when `use` has done with the release that it is. */
export async function withRelease<T>(
  path: string,
  use: (archive: ReleaseArchive, release: Release, top: string) => Promise<T>,
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
        `${archive.name} has no ${VERSION_FILE} in its folder ${top}: it is no release.`,
        'take the download for Docker as it is: takserver-docker-<version>.zip',
      );
    const version = await archive.text(versionFile, MAX_VERSION_BYTES);
    return await use(archive, recognise(archive.name, top, new Set(below.keys()), version), top);
  } finally {
    archive.close();
  }
}
