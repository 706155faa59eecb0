// Runs the role `configuration` for our own core: writes the retention files.

import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { syncRetention } from '@holdfast/setup/configuration/sync-retention';

await runProgram(syncRetention, resolve(import.meta.dirname, '..'));
