// Runs the program of renew-ca.sh.

import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { renewCa } from '@holdfast/stack/renew-ca';

await runProgram(renewCa, resolve(import.meta.dirname, '..'));
