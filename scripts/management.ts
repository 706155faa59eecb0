// Runs management: the app and the jobs on the Node host.

import { resolve } from 'node:path';
import { createApp } from '../functions/app.ts';
import { withQuickAnswers } from '../functions/quick-answers.ts';
import { JOBS } from '../jobs/index.ts';
import { runManagement } from '../shared/runtime/management.ts';

runManagement(resolve(import.meta.dirname, '..'), process.env, {
  createFetch: (deps) => withQuickAnswers(createApp(deps).fetch, deps),
  jobs: JOBS,
});
