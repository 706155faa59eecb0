// Runs the program of emergency-sheet.sh.

import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { emergencySheet } from '@holdfast/stack/operator/emergency-sheet';

await runProgram(emergencySheet, resolve(import.meta.dirname, '..'));
