// Runs the connection check of a running stack.

import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { prove } from '@holdfast/stack/operator/prove';

await runProgram(prove, resolve(import.meta.dirname, '..'));
