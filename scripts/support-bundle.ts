// Runs the program of support-bundle.sh.

import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { supportBundle } from '@holdfast/setup/support-bundle/program';

await runProgram(supportBundle, resolve(import.meta.dirname, '..'));
