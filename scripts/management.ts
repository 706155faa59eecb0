// Entry of management: where the app and the jobs meet the Node host.

import { resolve } from 'node:path';
import { createApp } from '../functions/app.ts';
import { JOBS } from '../jobs/index.ts';
import { runManagement } from '../shared/runtime/management.ts';

runManagement(resolve(import.meta.dirname, '..'), process.env, { createApp, jobs: JOBS });
