// Defines the handover to the role `release-files`, and runs it: source tree, target and release.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { takenHandover } from '@holdfast/kit/command';
import { jsonLog } from '@holdfast/kit/log';
import type { Problem } from '../../../shared/settings/setting.ts';
import { releaseIn } from '../archive/version.ts';
import { bringReleaseFiles, type ReleaseSource } from './files.ts';

export const RELEASE_FILES_VARIABLE = 'HOLDFAST_RELEASE_FILES';
/** The path that a release's scripts expect. */
export const RELEASE_HOME = '/opt/tak';

const handoverSchema = z.object({
  from: z.string(),
  to: z.string(),
  release: z.string(),
  goesBack: z.boolean().optional(),
});

/** Directory of the release; only tests change it. */
export function releaseHome(environment: NodeJS.ProcessEnv): string {
  return environment['HOLDFAST_RELEASE_HOME']?.trim() || RELEASE_HOME;
}

/** `home`: directory of our programs in the image. The release's tree is next to them. */
export function planReleaseFiles(home: string, environment: NodeJS.ProcessEnv, problems: Problem[]): ReleaseSource {
  const from = environment['HOLDFAST_RELEASE_TREE']?.trim() || join(home, 'release/tak');
  const version = join(from, 'version.txt');
  const text = existsSync(version) ? releaseIn(readFileSync(version, 'utf8')) : undefined;
  const release = text ?? environment['CORE_RELEASE']?.trim() ?? '';
  if (!existsSync(join(from, 'takserver.war')))
    problems.push({
      name: 'HOLDFAST_RELEASE_TREE',
      value: from,
      message: 'contains no TAK Server release: takserver.war is missing',
      remedy: 'run ./scripts/setup.sh ARCHIVE, which builds the image of this container from a release archive',
    });
  else if (release === '')
    problems.push({
      name: 'CORE_RELEASE',
      value: undefined,
      message: `must be set, because ${version} does not name the release`,
      remedy: 'run ./scripts/setup.sh ARCHIVE, which writes it to .env',
    });
  const goesBack = environment['HOLDFAST_RELEASE_GOES_BACK'] === 'yes';
  return { from, to: releaseHome(environment), release, ...(goesBack ? { goesBack } : {}) };
}

/** Removes it from the environment. Throws if it is missing. */
export function takeReleaseFiles(environment: NodeJS.ProcessEnv): ReleaseSource {
  return takenHandover(environment, RELEASE_FILES_VARIABLE, handoverSchema, 'start this as container.js release-files');
}

/**
 * The program of the role `release-files`: copies the release in its image to the volume of the
 * core.
 */
export function releaseFiles(environment: NodeJS.ProcessEnv): void {
  const log = jsonLog({ role: 'release-files' });
  const source = takeReleaseFiles(environment);
  const began = performance.now();
  const { before, written, removed, keptAside } = bringReleaseFiles(source);
  if (keptAside.length > 0) log.warn('release.edited_files_kept_aside', { files: keptAside });
  log.info('release.ready', {
    release: source.release,
    before: before ?? null,
    written: written.length,
    removed: removed.length,
    ms: Math.round(performance.now() - began),
  });
  log.flush();
}
