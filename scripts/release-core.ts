// Runs the role `release-core`.

import { runReleaseCore } from '@holdfast/setup/release-core/program';

await runReleaseCore(process.env);
