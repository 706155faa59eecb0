// Runs the role `release-files`.

import { releaseFiles } from '@holdfast/setup/release-files/handover';

releaseFiles(process.env);
