// Checks for, prepares and applies upgrades of an embedded stack.

import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { upgrade } from '@holdfast/stack/upgrade';

await runProgram(upgrade, resolve(import.meta.dirname, '..'));
