// Runs the program of simulate.sh.

import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { simulate } from '@holdfast/stack/exercise/simulate';

await runProgram(simulate, resolve(import.meta.dirname, '..'));
