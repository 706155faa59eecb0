// Runs the program of unlock.sh.

import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { unlock } from '@holdfast/stack/operator/unlock';

await runProgram(unlock, resolve(import.meta.dirname, '..'));
