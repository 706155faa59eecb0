// Runs the program of backup.sh for the embedded stack.

import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { backupProgram } from '@holdfast/stack/operator/backup';

await runProgram(backupProgram, resolve(import.meta.dirname, '..'));
