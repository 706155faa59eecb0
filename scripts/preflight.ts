// Runs the role `preflight`.

import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { preflight } from '@holdfast/setup/containers/preflight';

await runProgram(preflight, resolve(import.meta.dirname, '..'));
