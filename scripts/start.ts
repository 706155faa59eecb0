// Runs the program of start.sh for the embedded stack.

import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { start } from '@holdfast/stack/start';

await runProgram(start, resolve(import.meta.dirname, '..'));
