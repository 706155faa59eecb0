// Runs the program of rotate-secrets.sh for the embedded stack.

import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { rotateSecrets } from '@holdfast/stack/operator/rotate-secrets';

await runProgram(rotateSecrets, resolve(import.meta.dirname, '..'));
