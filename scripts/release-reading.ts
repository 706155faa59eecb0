// From the path of an archive to the release in it: what it is called, and that everything is there which is needed of it.

import { basename } from 'node:path';
import { StackError } from '../compose/embedded/stack-error.ts';
import { ReleaseArchive } from './release-archive.ts';
import { recognise, type Release, topFolder, VERSION_FILE } from './release-recognition.ts';

const LONGEST_VERSION_BYTES = 200;

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
    const version = await archive.text(versionFile, LONGEST_VERSION_BYTES);
    return await use(archive, recognise(archive.name, top, new Set(below.keys()), version), top);
  } finally {
    archive.close();
  }
}
