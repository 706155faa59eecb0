// Runs the program of reset-password.sh.

import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { resetPassword } from '@holdfast/stack/operator/reset-password';

await runProgram(resetPassword, resolve(import.meta.dirname, '..'));
