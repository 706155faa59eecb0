// Runs the program of stop.sh for the embedded stack.

import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { stopProgram } from '@holdfast/stack/stop';

await runProgram(stopProgram, resolve(import.meta.dirname, '..'));
