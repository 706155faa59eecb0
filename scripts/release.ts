// Inspects and unpacks a release archive for setup.sh.

import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { release } from '@holdfast/setup/archive/program';

await runProgram(release, resolve(import.meta.dirname, '..'));
