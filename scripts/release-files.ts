// The one-shot container `release`: brings the files of the TAK Server release in its image onto the volume of the core.

import { jsonLog } from '@holdfast/kit/log';
import { bringReleaseFiles } from '@holdfast/setup/release-files/files';
import { takeReleaseFiles } from '@holdfast/setup/release-files/handover';

const log = jsonLog({ role: 'release-files' });
const { from, to, release } = takeReleaseFiles(process.env);
const began = performance.now();
const { before, written, removed, keptAside } = bringReleaseFiles({ from, to, release });
if (keptAside.length > 0) log.warn('release.edited_files_kept_aside', { files: keptAside });
log.info('release.ready', {
  release,
  before: before ?? null,
  written: written.length,
  removed: removed.length,
  ms: Math.round(performance.now() - began),
});
log.flush();
